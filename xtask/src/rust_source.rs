//! Splits Rust source into code, comments and string literals, line by line, and leaves test code out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::TaskError;

/// Which part of a source file a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Code,
    Comment,
    Literal,
}

/// One part of a source; the other parts are blanks, so that lines and columns stay.
pub(crate) fn only(source: &str, part: Part) -> String {
    let parts = parts(source);
    source
        .chars()
        .zip(parts)
        .map(|(character, of)| if of == part || character == '\n' { character } else { ' ' })
        .collect()
}

/// The part that each character belongs to.
fn parts(source: &str) -> Vec<Part> {
    let characters: Vec<char> = source.chars().collect();
    let mut parts = Vec::with_capacity(characters.len());
    while parts.len() < characters.len() {
        let at = parts.len();
        let (part, length) = token(&characters[at..], characters[..at].last().copied());
        parts.extend(std::iter::repeat_n(part, length.max(1)));
    }
    parts.truncate(characters.len());
    parts
}

/// The part and the length of what begins here.
fn token(rest: &[char], before: Option<char>) -> (Part, usize) {
    let in_name = before.is_some_and(|character| character.is_alphanumeric() || character == '_');
    match rest {
        ['/', '/', ..] => (Part::Comment, rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())),
        ['/', '*', ..] => (Part::Comment, block_comment(rest)),
        ['"', ..] => (Part::Literal, quoted(rest, '"')),
        ['b', '"', ..] if !in_name => (Part::Literal, 1 + quoted(&rest[1..], '"')),
        ['r', '"' | '#', ..] if !in_name => raw(rest, 1),
        ['b', 'r', '"' | '#', ..] if !in_name => raw(rest, 2),
        ['\'', '\\', ..] => (Part::Literal, quoted(rest, '\'')),
        ['\'', _, '\'', ..] => (Part::Literal, 3),
        _ => (Part::Code, 1),
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            character if character == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A raw string whose prefix has this length, or a raw identifier.
fn raw(rest: &[char], prefix: usize) -> (Part, usize) {
    let hashes = rest[prefix..].iter().take_while(|character| **character == '#').count();
    let start = prefix + hashes;
    if rest.get(start) != Some(&'"') {
        return (Part::Code, start);
    }
    let closes = |at: usize| {
        rest[at] == '"' && rest[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    let end = (start + 1..rest.len()).find(|at| closes(*at));
    (Part::Literal, end.map_or(rest.len(), |end| end + 1 + hashes))
}

/// The code without items that are compiled only for tests. Names of test modules in files of their own go to `files`.
pub(crate) fn without_tests(code: &str, files: &mut BTreeSet<String>) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        let end = item_end(item);
        let words: Vec<&str> = item[..end].split_whitespace().collect();
        if let Some(name) = words.iter().position(|word| *word == "mod").and_then(|at| words.get(at + 1))
            && let Some(name) = name.strip_suffix(';')
        {
            files.insert(name.to_owned());
        }
        // Lines must stay where they are.
        kept.extend(rest[at..at + MARK.len() + end].chars().filter(|character| *character == '\n'));
        rest = &item[end..];
    }
    kept.push_str(rest);
    kept
}

/// The end of the item that begins here: its `;` or its closing brace.
pub(crate) fn item_end(item: &str) -> usize {
    let (mut braces, mut others) = (0_i32, 0_i32);
    for (at, character) in item.char_indices() {
        match character {
            '(' | '[' => others += 1,
            ')' | ']' => others -= 1,
            '{' => braces += 1,
            '}' => braces -= 1,
            ';' if braces == 0 && others == 0 => return at + 1,
            _ => continue,
        }
        if character == '}' && braces <= 0 {
            return at + 1;
        }
    }
    item.len()
}

/// Every Rust file below a directory, sorted.
pub(crate) fn rust_files(dir: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else { return Ok(files) };
    for entry in entries {
        let path = entry.map_err(TaskError::file(dir))?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_told_apart_from_code() {
        let source = "let a = \"// no\"; // yes \"x\"\nlet r = r#\"a\"b\"#; let c = '\"'; fn f<'a>() {}";
        let code = only(source, Part::Code);
        assert!(!code.contains("no") && !code.contains("yes") && code.contains("fn f<'a>() {}"), "{code}");
        assert_eq!(only(source, Part::Comment).trim(), "// yes \"x\"");
        assert!(only(source, Part::Literal).contains("r#\"a\"b\"#"));
    }

    #[test]
    fn test_modules_are_left_out() {
        let mut files = BTreeSet::new();
        let code =
            "use a;\n#[cfg(test)]\nmod tests {\n fn x() { [1; 2]; }\n}\nfn y() {}\n#[cfg(test)]\nmod more;\n";
        let kept = without_tests(code, &mut files);
        assert!(!kept.contains("fn x") && kept.contains("fn y"), "{kept}");
        assert_eq!(kept.lines().count(), code.lines().count());
        assert_eq!(files, BTreeSet::from(["more".to_owned()]));
    }
}
