//! The lines of a git patch that say what happens to one file.

use herma_core::RepoPath;
use herma_core::report::Mode;

use super::PatchedFile;

/// The state of a file's header.
#[derive(Debug)]
pub(super) struct Header {
    path: RepoPath,
    old_mode: Option<Mode>,
    new_mode: Option<Mode>,
    both_modes: Option<Mode>,
    added: bool,
    deleted: bool,
    blobs: Option<(String, String)>,
}

impl Header {
    /// From the rest of the line `diff --git a/PATH b/PATH`.
    pub(super) fn open(names: &[u8]) -> Result<Self, String> {
        let path = two_names(names).ok_or("expected the same path twice, as `a/PATH b/PATH`")?;
        Ok(Self {
            path,
            old_mode: None,
            new_mode: None,
            both_modes: None,
            added: false,
            deleted: false,
            blobs: None,
        })
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let text = |rest: &[u8]| std::str::from_utf8(rest).unwrap_or_default().to_owned();
        let mode = |rest: &[u8]| Mode::parse(&text(rest)).ok_or_else(|| "not a mode of git".to_owned());
        if let Some(rest) = line.strip_prefix(b"old mode ") {
            self.old_mode = Some(mode(rest)?);
        } else if let Some(rest) = line.strip_prefix(b"new mode ") {
            self.new_mode = Some(mode(rest)?);
        } else if let Some(rest) = line.strip_prefix(b"new file mode ") {
            (self.new_mode, self.added) = (Some(mode(rest)?), true);
        } else if let Some(rest) = line.strip_prefix(b"deleted file mode ") {
            (self.old_mode, self.deleted) = (Some(mode(rest)?), true);
        } else if let Some(rest) = line.strip_prefix(b"index ") {
            let rest = text(rest);
            let (names, mode) = rest.split_once(' ').map_or((rest.as_str(), None), |(n, m)| (n, Some(m)));
            let (old, new) = names.split_once("..").ok_or("`index` without two names")?;
            if !is_full_name(old) || !is_full_name(new) || old.len() != new.len() || self.blobs.is_some() {
                return Err("`index` without full names".to_owned());
            }
            self.blobs = Some((old.to_owned(), new.to_owned()));
            if let Some(digits) = mode {
                self.both_modes = Some(Mode::parse(digits).ok_or("not a mode of git")?);
            }
        } else if let Some(rest) = line.strip_prefix(b"--- ") {
            self.named(rest, b'a', self.added)?;
        } else if let Some(rest) = line.strip_prefix(b"+++ ") {
            self.named(rest, b'b', self.deleted)?;
        } else {
            return Err("not a line of a header, or a rename".to_owned());
        }
        Ok(())
    }

    /// The names after `---` and `+++` are those that `git apply` goes by, so they must not say another thing.
    fn named(&self, name: &[u8], prefix: u8, nothing: bool) -> Result<(), String> {
        // Git ends a name that holds a blank with a tab.
        let name = name.strip_suffix(b"\t").unwrap_or(name);
        let same = || one_name(name, prefix).is_some_and(|path| path == self.path);
        let sound = if nothing { name == b"/dev/null" } else { same() };
        sound.then_some(()).ok_or_else(|| "the header names two different paths".to_owned())
    }

    pub(super) fn close(self) -> Result<PatchedFile, String> {
        let Self { path, old_mode, new_mode, both_modes, added, deleted, blobs } = self;
        let (old_mode, new_mode) = match (added, deleted, old_mode, new_mode, both_modes) {
            (true, false, None, new @ Some(_), None) => (None, new),
            (false, true, old @ Some(_), None, None) => (old, None),
            (false, false, old @ Some(_), new @ Some(_), None) => (old, new),
            (false, false, None, None, both @ Some(_)) => (both, both),
            _ => return Err(format!("the header of {path} does not say one thing about its mode")),
        };
        let sound = match &blobs {
            Some((old, new)) => is_nothing(old) == added && is_nothing(new) == deleted,
            None => !added && !deleted && old_mode != new_mode,
        };
        if !sound {
            return Err(format!("the header of {path} does not name its blobs"));
        }
        Ok(PatchedFile { path, old_mode, new_mode, blobs })
    }
}

/// Whether the name says that there is no blob.
pub(super) fn is_nothing(blob: &str) -> bool {
    blob.bytes().all(|b| b == b'0')
}

fn is_full_name(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The lines of each side, from `@@ -1,2 +3,4 @@`.
pub(super) fn hunk(line: &[u8]) -> Option<(u64, u64)> {
    let rest = line.strip_prefix(b"@@ -")?;
    let end = rest.windows(3).position(|w| w == b" @@")?;
    let (old, new) = std::str::from_utf8(&rest[..end]).ok()?.split_once(" +")?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let count = |range: &str| match range.split_once(',') {
        Some((start, count)) => digits(start).and(digits(count)),
        None => digits(range).and(Some(1)),
    };
    let counts: (u64, u64) = (count(old)?, count(new)?);
    Some(counts).filter(|(old, new)| *old > 0 || *new > 0)
}

/// Whether the line is valid in git's encoding of a binary file, whose data contains no blanks.
pub(super) fn is_binary_line(line: &[u8]) -> bool {
    let data = line.strip_prefix(b"literal ").or_else(|| line.strip_prefix(b"delta ")).unwrap_or(line);
    data.iter().all(u8::is_ascii_graphic)
}

fn two_names(names: &[u8]) -> Option<RepoPath> {
    if names.starts_with(b"\"") {
        let close = closing_quote(names)?;
        let (first, second) = (&names[..=close], names.get(close + 1..)?.strip_prefix(b" ")?);
        let path = one_name(first, b'a')?;
        return (one_name(second, b'b')? == path).then_some(path);
    }
    // Blanks are not quoted, but both names have the same length.
    let middle = names.len() / 2;
    let (first, second) = (names.get(..middle)?, names.get(middle..)?.strip_prefix(b" ")?);
    let path = one_name(first, b'a')?;
    (one_name(second, b'b')? == path).then_some(path)
}

fn one_name(name: &[u8], prefix: u8) -> Option<RepoPath> {
    let bytes = match name.strip_prefix(b"\"") {
        Some(rest) => unquote(rest.strip_suffix(b"\"")?)?,
        None => name.to_vec(),
    };
    let path = bytes.strip_prefix(&[prefix, b'/'])?;
    RepoPath::new(path)
}

fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Undoes git's quoting of names.
fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            quoted @ (b'"' | b'\\') => quoted,
            first @ b'0'..=b'3' => {
                let mut digit = || rest.next().filter(|d| (b'0'..=b'7').contains(d)).map(|d| d - b'0');
                (first - b'0') * 64 + digit()? * 8 + digit()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}
