//! Cuts a file into the pieces that the rules apply to: comments, messages, code and prose, line by line.

use crate::rust_source::{Part, only};

/// The kind of text that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// A comment of a source file.
    Comment,
    /// A string literal.
    Message,
    /// Names.
    Code,
    /// A document.
    Prose,
}

/// A line of one scope.
pub(crate) struct Piece {
    pub(crate) line: usize,
    pub(crate) scope: Scope,
    pub(crate) text: String,
}

/// The pieces of a file, by the ending of its name.
pub(crate) fn pieces(path: &str, text: &str) -> Vec<Piece> {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "rs" => rust(text),
        "md" => markdown(text),
        _ => hash_comments(text),
    }
}

fn rust(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (part, scope) in
        [(Part::Comment, Scope::Comment), (Part::Literal, Scope::Message), (Part::Code, Scope::Code)]
    {
        let only = only(text, part);
        let lines = only.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        pieces.extend(lines.map(|(at, line)| {
            let line_text = line.trim().trim_start_matches(['/', '!', '"']).trim_start();
            Piece { line: at + 1, scope, text: without_quotes(line_text, scope) }
        }));
    }
    pieces
}

/// Names in backquotes are quoted, not said.
fn without_quotes(line: &str, scope: Scope) -> String {
    if matches!(scope, Scope::Code | Scope::Message) {
        return line.to_owned();
    }
    line.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "x" }).collect()
}

fn markdown(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut in_block = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block && !line.starts_with('#') {
            let prose = line.trim_start_matches(['-', '*', '>', '|', ' ']);
            pieces.push(Piece {
                line: at + 1,
                scope: Scope::Prose,
                text: without_quotes(prose, Scope::Prose),
            });
        }
    }
    pieces
}

fn hash_comments(text: &str) -> Vec<Piece> {
    let comments = text.lines().enumerate().filter_map(|(at, line)| {
        let comment = line.trim_start().strip_prefix('#')?.trim_start_matches(['#', '!']).trim_start();
        Some(Piece { line: at + 1, scope: Scope::Comment, text: without_quotes(comment, Scope::Comment) })
    });
    comments.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_scope_and_quoted_names_are_left_out() {
        let found = pieces("a.rs", "/// Opens `a gate` now.\nlet fence = \"repair it\";\n");
        let told: Vec<(usize, Scope, &str)> =
            found.iter().map(|piece| (piece.line, piece.scope, piece.text.as_str())).collect();
        assert_eq!(told[0], (1, Scope::Comment, "Opens x now."));
        assert_eq!(told[1].1, Scope::Message);
        assert!(told[1].2.starts_with("repair it"));
        assert_eq!(told[2].1, Scope::Code);
        let prose = pieces("a.md", "# What\ntext\n```\ncode\n```\n- item\n");
        let prose: Vec<&str> = prose.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(prose, ["text", "item"]);
    }
}
