//! Removes absolute paths from texts: reports and messages name a target, never its location.

use std::path::{Path, PathBuf};

/// The replacement for an absolute path.
const PLACEHOLDER: &str = "<path>";

/// The text without absolute paths. git's messages have no fixed format, so where the end of a path is unclear,
/// more than the path is removed.
pub(crate) fn text(said: &str) -> String {
    said.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = path_start(rest, shown.ends_with(PLACEHOLDER)) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        shown.push_str(PLACEHOLDER);
        rest = &from[path_length(before.chars().next_back(), from)..];
    }
    shown + rest
}

/// The start of an absolute path: a slash with no name before it and a name after it. Right after a path none
/// starts.
fn path_start(text: &str, after_path: bool) -> Option<usize> {
    let mut before = after_path.then_some('>');
    for (at, c) in text.char_indices() {
        let in_name = before.is_some_and(|b| b.is_alphanumeric() || matches!(b, '.' | '_' | '-' | '/' | '>'));
        let followed = text[at + c.len_utf8()..].chars().next().is_some_and(|next| !next.is_whitespace());
        if c == '/' && !in_name && followed {
            return Some(at);
        }
        before = Some(c);
    }
    None
}

/// The length of the path at the start of `text`. In quotes it ends at the last such quote; else at the last colon,
/// if no slash follows it.
fn path_length(quote: Option<char>, text: &str) -> usize {
    let closing = match quote {
        Some('`') => text.rfind(['`', '\'']),
        Some(quote @ ('\'' | '"')) => text.rfind(quote),
        _ => text.rfind(": ").filter(|at| !text[*at..].contains('/')),
    };
    closing.unwrap_or(text.len())
}

/// The part of a path that may be shown: from its git directory on, or its file name. A relative path tells no
/// location.
pub(crate) fn path(path: &Path) -> PathBuf {
    if path.is_relative() {
        return path.to_owned();
    }
    let parts: Vec<_> = path.components().collect();
    let from = parts.iter().rposition(|part| part.as_os_str() == ".git").unwrap_or(parts.len().max(1) - 1);
    parts[from..].iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_absolute_path_is_left() {
        for (said, shown) in [
            (
                "fatal: /home/me/r/.git/index: index file smaller than expected",
                "fatal: <path>: index file smaller than expected",
            ),
            (
                "fatal: bad config line 9 in file /home/me/r/.git/config",
                "fatal: bad config line 9 in file <path>",
            ),
            (
                "Unable to create '/home/me/a b/main.lock': File exists.",
                "Unable to create '<path>': File exists.",
            ),
            ("'/home/it's me/x': no", "'<path>': no"),
            ("error: object file /home/me: too/x is empty", "error: object file <path>"),
            (
                "error: unable to open /home/a: b/c: Permission denied",
                "error: unable to open <path>: Permission denied",
            ),
            ("could not open `/home/me/x' (in /home/me)", "could not open `<path>' (in <path>"),
            ("warning: one\nfatal: in /home/me\nhint: two", "warning: one\nfatal: in <path>\nhint: two"),
            ("url=file:///home/me", "url=file:<path>"),
            ("\"/home/m\\303\\251/x\" and '/home/you'", "\"<path>\" and '<path>'"),
        ] {
            assert_eq!(text(said), shown);
            assert!(!text(said).contains("home"), "{said}");
        }
    }

    #[test]
    fn text_that_is_no_absolute_path_stays() {
        for said in [
            "fatal: bad object refs/heads/main",
            "the target/refs/heads/main.lock exists",
            "either / or",
            "../up and ./here",
            "",
        ] {
            assert_eq!(text(said), said);
        }
    }

    #[test]
    fn a_file_is_named_from_its_git_directory_on_or_by_its_name() {
        for (given, shown) in [
            ("/home/me/r/.git/refs/heads/pipe", ".git/refs/heads/pipe"),
            ("/home/.git/me/r/.git/index", ".git/index"),
            ("/home/me/runs/1/workspace", "workspace"),
            ("src/main.rs", "src/main.rs"),
            ("/", "/"),
        ] {
            assert_eq!(path(Path::new(given)), Path::new(shown), "{given}");
        }
    }
}
