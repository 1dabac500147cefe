//! Added and removed lines of a patch, file by file.

use schemars::JsonSchema;
use serde::Serialize;

/// A changed file of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileStat {
    /// Its path, as the patch writes it.
    pub path: String,
    /// The number of added lines; none for a binary file.
    pub added: Option<u64>,
    /// The number of removed lines; none for a binary file.
    pub removed: Option<u64>,
}

/// Counts the lines of a patch in git's format.
#[must_use]
pub fn patch_stat(patch: &str) -> Vec<FileStat> {
    let mut files: Vec<FileStat> = Vec::new();
    // The lines that are left of a hunk: a line of content can look like a header.
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in patch.lines() {
        let inside = old > 0 || new > 0;
        if inside {
            let file = files.last_mut();
            match line.as_bytes().first() {
                Some(b'+') => {
                    new = new.saturating_sub(1);
                    count(file.and_then(|file| file.added.as_mut()));
                }
                Some(b'-') => {
                    old = old.saturating_sub(1);
                    count(file.and_then(|file| file.removed.as_mut()));
                }
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
        } else if let Some(names) = line.strip_prefix("diff --git ") {
            files.push(FileStat { path: new_name(names), added: Some(0), removed: Some(0) });
        } else if let Some(range) = line.strip_prefix("@@ -") {
            (old, new) = lengths(range);
        } else if (line == "GIT binary patch" || line.starts_with("Binary files "))
            && let Some(file) = files.last_mut()
        {
            (file.added, file.removed) = (None, None);
        }
    }
    files
}

fn count(counter: Option<&mut u64>) {
    if let Some(counter) = counter {
        *counter += 1;
    }
}

/// The path of `a/PATH b/PATH`; both are the same, as herma's patches have no renames.
fn new_name(names: &str) -> String {
    let half = names.len() / 2;
    let second = names.get(half..).unwrap_or(names).trim_start();
    let path = second.strip_prefix('"').and_then(|inside| inside.strip_suffix('"')).unwrap_or(second);
    path.strip_prefix("b/").unwrap_or(path).to_owned()
}

/// The two lengths of `1,2 +3,4 @@`; a missing one is 1.
fn lengths(range: &str) -> (u64, u64) {
    let length = |part: &str| match part.split_once(',') {
        Some((_, length)) => length.parse().unwrap_or(0),
        None => 1,
    };
    let mut parts = range.split(' ');
    let old = parts.next().map_or(0, length);
    (old, parts.next().map_or(0, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_content_are_counted_and_headers_are_not() {
        let patch = "diff --git a/src/a b.rs b/src/a b.rs\nindex 1..2 100644\n--- a/src/a b.rs\n+++ b/src/a b.rs\n\
                     @@ -1,3 +1,3 @@\n one\n--- a/x\n+++ b/x\n three\n\\ No newline at end of file\n\
                     diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\
                     diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nnew file mode 100644\nGIT binary patch\nliteral 3\n";
        let stat = |path: &str, added, removed| FileStat { path: path.to_owned(), added, removed };
        assert_eq!(
            patch_stat(patch),
            [
                stat("src/a b.rs", Some(1), Some(1)),
                stat("new", Some(1), Some(0)),
                stat("\\303\\244", None, None)
            ]
        );
        assert_eq!(patch_stat(""), []);
    }
}
