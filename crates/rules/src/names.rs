//! Names that some file system takes for one: what is `.git` to HFS+ or NTFS is `.git` to us.

use unicode_normalization::UnicodeNormalization as _;

/// Code points that HFS+ leaves out when it compares names.
const IGNORED_BY_HFS: [char; 17] = [
    '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
    '\u{202e}', '\u{2060}', '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}', '\u{206f}',
    '\u{feff}',
];

/// A path with every name folded.
pub(crate) fn fold_path(path: &[u8]) -> Vec<u8> {
    each_name(path, |name| if is_dot_git(name) { b".git".to_vec() } else { fold_name(name) })
}

/// A path with its letters folded as [`fold_pattern`] folds those of a pattern, and nothing else.
pub(crate) fn fold_letters(path: &[u8]) -> Vec<u8> {
    each_name(path, letters)
}

/// A path with every name changed. It has as many `/` as the path, so that their directories correspond.
fn each_name(path: &[u8], change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut changed = Vec::with_capacity(path.len());
    for (at, name) in path.split(|b| *b == b'/').enumerate() {
        if at > 0 {
            changed.push(b'/');
        }
        match change(name) {
            // A result that is no valid name is kept unchanged: a path has no empty components and no `.` or `..`.
            nothing if matches!(&*nothing, b"" | b"." | b"..") => changed.extend(name),
            name => changed.extend(name),
        }
    }
    changed
}

/// A pattern with its non-ASCII letters folded; the others are left to the glob, which matches them in any case. It holds
/// nothing that is left out: a contract cannot.
pub(crate) fn fold_pattern(pattern: &str) -> String {
    let fold = |c: char| if c.is_ascii() { c.to_string() } else { fold_text(c.encode_utf8(&mut [0; 4])) };
    pattern.chars().map(fold).collect()
}

/// Whether some file system takes this name for `piece`, which is in lower case.
pub(crate) fn folds_to(name: &[u8], piece: &str) -> bool {
    // Most names differ in their first byte; a character that HFS+ ignores is not ASCII.
    let may_be = |first: &u8| !first.is_ascii() || first.eq_ignore_ascii_case(&piece.as_bytes()[0]);
    name.first().is_some_and(may_be) && fold_name(name) == piece.as_bytes()
}

/// Whether git refuses a symbolic link of this name: some file system takes it for `.gitmodules`.
#[must_use]
pub fn is_dot_gitmodules(name: &[u8]) -> bool {
    fold_name(without_stream(name)) == GITMODULES.as_bytes() || ntfs_short_name_of(name) == Some(GITMODULES)
}

const GITMODULES: &str = ".gitmodules";
/// Files that git reads, with the beginning of the short names that NTFS gives them: the first four files get `gitmod~1` to
/// `gitmod~4`, later ones a hash, as in `gi7eba~1`. The hashes are those of git's `is_ntfs_dot_generic`.
const NTFS_SHORT_NAMES: [(&str, &str, &str); 4] = [
    (GITMODULES, "gitmod", "gi7eba"),
    (".gitattributes", "gitatt", "gi7d29"),
    (".gitignore", "gitign", "gi250a"),
    (".mailmap", "mailma", "maba30"),
];

/// The file of git that NTFS can open by this short name.
pub(crate) fn ntfs_short_name_of(name: &[u8]) -> Option<&'static str> {
    let base = without_stream(name);
    if !base.contains(&b'~') {
        return None;
    }
    let folded = fold_name(base);
    let tilde = folded.iter().position(|b| *b == b'~')?;
    let (start, number) = (folded.get(..tilde)?, folded.get(tilde + 1..)?);
    let is_short = folded.len() >= 8 && !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let begins =
        |short: &str, hashed: &str| start == short.as_bytes() || hashed.as_bytes().starts_with(start);
    NTFS_SHORT_NAMES
        .into_iter()
        .find(|(_, short, hashed)| is_short && begins(short, hashed))
        .map(|(dot_file, ..)| dot_file)
}

/// The name without the stream that NTFS reads behind a colon.
fn without_stream(name: &[u8]) -> &[u8] {
    name.split(|b| *b == b':').next().unwrap_or(name)
}

/// Whether some file system takes this name for `.git`.
#[must_use]
pub fn is_dot_git(name: &[u8]) -> bool {
    // NTFS reads a backslash as a separator and what follows a colon as a stream of the file.
    name.split(|b| *b == b'\\')
        .any(|part| matches!(fold_name(without_stream(part)).as_slice(), b".git" | b"git~1"))
}

/// Lower case, without what HFS+ ignores and without the dots and blanks at the end that Windows drops.
fn fold_name(name: &[u8]) -> Vec<u8> {
    let mut folded = letters(name);
    let end = folded.iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(folded.len(), |last| last + 1);
    folded.truncate(end);
    folded
}

fn letters(name: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        folded.extend(fold_text(chunk.valid()).into_bytes());
        folded.extend(chunk.invalid());
    }
    folded
}

/// Upper case first: some letters, like `ſ`, only meet their twin that way. Decomposed before and composed (NFC) after, so that
/// canonically equal names meet, as on HFS+ and APFS, and `?` of a pattern still matches one composed letter.
fn fold_text(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let kept = text.chars().filter(|c| !IGNORED_BY_HFS.contains(c));
    kept.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguises_of_dot_git_are_seen() {
        for name in [
            ".git",
            ".GIT",
            ".g\u{200c}it",
            ".git.",
            ".git ",
            "git~1",
            "GIT~1",
            ".git::$INDEX_ALLOCATION",
            "x\\.git",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name}");
        }
        for name in [".gitignore", "git", ".gitx", "x.git", "git~2", ".github"] {
            assert!(!is_dot_git(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn disguises_of_dot_gitmodules_are_seen() {
        for name in [".gitmodules", ".GitModules. ", ".gitmodules::$DATA", "GITMOD~1", "gi7eba~1", "gi7eb~10"]
        {
            assert!(is_dot_gitmodules(name.as_bytes()), "{name}");
        }
        for name in ["gitmodules", ".gitmodules.txt", "gitmod", "gitmod~", "gitmod~x", "gi7ebb~1", "x~1"] {
            assert!(!is_dot_gitmodules(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn short_names_of_other_files_that_git_reads_are_seen() {
        for (name, dot_file) in [
            ("gitmod~1", ".gitmodules"),
            ("GITATT~1", ".gitattributes"),
            ("gitatt~4 .", ".gitattributes"),
            ("gi7d29~1", ".gitattributes"),
            ("gi7d2~10::$DATA", ".gitattributes"),
            ("GITIGN~1", ".gitignore"),
            ("gi250a~9", ".gitignore"),
            ("MAILMA~1", ".mailmap"),
            ("maba30~1", ".mailmap"),
        ] {
            assert_eq!(ntfs_short_name_of(name.as_bytes()), Some(dot_file), "{name}");
        }
        for name in ["gitatt", "gitatt~", "gitatt~a", "gitattr~1", "mailmap~1", "notes~1", "main.rs~", "~1"] {
            assert_eq!(ntfs_short_name_of(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn folding_keeps_directories_and_bytes() {
        assert_eq!(fold_path("Ärger/\u{212a}ey/ſ./...".as_bytes()), "\u{e4}rger/key/s/...".as_bytes());
        assert_eq!(fold_path(b"A\xff/B"), b"a\xff/b");
        for stays in ["\u{200c}", ".\u{200c}", ".\u{200c}."] {
            assert_eq!(fold_letters(stays.as_bytes()), stays.as_bytes(), "{}", stays.escape_unicode());
        }
    }
}
