//! Reads the headers of a git patch as a stream: which path went from which blob to which.

mod header;

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Mode};

use self::header::Header;
use crate::lines::{BoundedLine, LineBuffer};

/// The longest header line: two quoted paths of the longest kind that a system allows.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// One file of a patch. A side without a mode is not there; without a name for the blob it is the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedFile {
    /// Its path.
    pub path: RepoPath,
    /// The mode before.
    pub old_mode: Option<Mode>,
    /// The mode after.
    pub new_mode: Option<Mode>,
    /// The blob before and after, where the patch names them; all zeros for a side that is not there.
    pub blobs: Option<(String, String)>,
}

/// The text is not a patch as git writes it with full blob names and without renames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadPatch {
    /// The line, from 1.
    pub line: u64,
    /// The problem.
    pub problem: String,
}

/// Reads a patch chunk by chunk.
#[derive(Debug)]
pub struct PatchReader {
    lines: LineBuffer,
    inner: Inner,
}

#[derive(Debug)]
struct Inner {
    at: u64,
    most: usize,
    files: Vec<PatchedFile>,
    state: PatchState,
    bad: Option<BadPatch>,
}

#[derive(Debug)]
enum PatchState {
    /// Before the first file.
    Start,
    /// In the lines that say what happens to a file.
    Header(Header),
    /// In a hunk, with this many lines of each side to come.
    Hunk { old: u64, new: u64 },
    /// In the encoded bytes of a binary file.
    Binary,
    /// After the line that says only that binary files differ.
    Differ,
}

impl PatchReader {
    /// A reader that refuses a patch with more than `most` files, so that its memory is bounded.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let inner = Inner { at: 0, most, files: Vec::new(), state: PatchState::Start, bad: None };
        Self { lines: LineBuffer::new(MAX_HEADER_BYTES), inner }
    }

    /// Reads the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        let Self { lines, inner } = self;
        if inner.bad.is_none() {
            lines.push(chunk, &mut |line| inner.line(line));
        }
    }

    /// The files of the patch, in its order.
    pub fn finish(mut self) -> Result<Vec<PatchedFile>, BadPatch> {
        let Self { lines, inner } = &mut self;
        lines.finish(&mut |line| inner.line(line));
        inner.at += 1;
        inner.end_of_file();
        match self.inner.bad {
            Some(bad) => Err(bad),
            None => Ok(self.inner.files),
        }
    }
}

/// Reads the headers of a whole patch.
pub fn parse_headers(patch: &[u8]) -> Result<Vec<PatchedFile>, BadPatch> {
    let mut reader = PatchReader::new(patch.len());
    reader.push(patch);
    reader.finish()
}

impl Inner {
    fn line(&mut self, line: BoundedLine<'_>) {
        self.at += 1;
        if self.bad.is_some() {
            return;
        }
        if let Err(problem) = self.take(line) {
            self.bad = Some(BadPatch { line: self.at, problem });
        }
    }

    fn take(&mut self, line: BoundedLine<'_>) -> Result<(), String> {
        if !line.ended {
            return Err("the last line has no end".to_owned());
        }
        if let PatchState::Hunk { old, new } = &mut self.state
            && (*old > 0 || *new > 0)
        {
            let side = |count: &mut u64| count.checked_sub(1).map(|less| *count = less);
            let counted = match line.bytes.first() {
                Some(b' ') => side(old).and(side(new)),
                Some(b'-') => side(old),
                Some(b'+') => side(new),
                Some(b'\\') => Some(()),
                _ => None,
            };
            return counted.ok_or_else(|| "the hunk has other lines than its header says".to_owned());
        }
        if line.bytes.starts_with(b"diff --git ") {
            if line.cut {
                return Err("the header is too long".to_owned());
            }
            self.end_header()?;
            self.state = PatchState::Header(Header::open(&line.bytes[b"diff --git ".len()..])?);
            return Ok(());
        }
        match &mut self.state {
            PatchState::Header(_) | PatchState::Hunk { .. } if line.bytes.starts_with(b"@@ -") => {
                let (old, new) = header::hunk(line.bytes).ok_or("not the header of a hunk")?;
                self.end_header()?;
                self.state = PatchState::Hunk { old, new };
            }
            PatchState::Header(_) if line.bytes == b"GIT binary patch" => {
                self.end_header()?;
                self.state = PatchState::Binary;
            }
            PatchState::Header(_)
                if line.bytes.starts_with(b"Binary files ") && line.bytes.ends_with(b" differ") =>
            {
                self.end_header()?;
                self.state = PatchState::Differ;
            }
            PatchState::Header(header) => header.line(line.bytes)?,
            PatchState::Hunk { .. } if line.bytes.starts_with(b"\\") => {}
            PatchState::Binary if header::is_binary_line(line.bytes) => {}
            _ => return Err("expected `diff --git`".to_owned()),
        }
        Ok(())
    }

    /// A hunk or header must be complete at the end of the patch.
    fn end_of_file(&mut self) {
        if self.bad.is_some() {
            return;
        }
        let cut = matches!(self.state, PatchState::Hunk { old, new } if old > 0 || new > 0);
        let ended = if cut { Err("the last hunk is cut".to_owned()) } else { self.end_header() };
        self.bad = ended.err().map(|problem| BadPatch { line: self.at, problem });
    }

    fn end_header(&mut self) -> Result<(), String> {
        let PatchState::Header(header) = std::mem::replace(&mut self.state, PatchState::Start) else {
            return Ok(());
        };
        let file = header.close()?;
        // A path that changes its kind, from file to link, is a deletion followed by an addition.
        if let Some(last) = self.files.last_mut()
            && last.path == file.path
            && last.new_mode.is_none()
            && file.old_mode.is_none()
            && let (Some((_, gone)), Some((_, new))) = (&mut last.blobs, &file.blobs)
        {
            gone.clone_from(new);
            last.new_mode = file.new_mode;
            return Ok(());
        }
        if self.files.len() >= self.most {
            return Err(format!("more than {} files", self.most));
        }
        self.files.push(file);
        Ok(())
    }
}

impl PatchedFile {
    /// Whether the patch does to this path exactly what the report says.
    #[must_use]
    pub fn agrees_with(&self, file: &ChangedFile) -> bool {
        let modes = (file.old.as_ref().map(|e| e.mode), file.new.as_ref().map(|e| e.mode));
        if self.path != file.path || modes != (self.old_mode, self.new_mode) {
            return false;
        }
        match (&self.blobs, &file.old, &file.new) {
            (None, Some(old), Some(new)) => old.id == new.id,
            (Some((before, after)), old, new) => {
                let same = |blob: &str, entry: &Option<herma_core::report::Entry>| {
                    entry.as_ref().map_or_else(|| header::is_nothing(blob), |e| e.id == blob)
                };
                same(before, old) && same(after, new)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn file(path: &[u8], old: Option<Mode>, new: Option<Mode>, blobs: Option<(&str, &str)>) -> PatchedFile {
        let path = RepoPath::new(path).unwrap();
        let blobs = blobs.map(|(old, new)| (old.to_owned(), new.to_owned()));
        PatchedFile { path, old_mode: old, new_mode: new, blobs }
    }

    #[test]
    fn each_kind_of_change_is_read() {
        use Mode::{Executable, File, Symlink};
        let patch = format!(
            "diff --git a/a b b/a b\nindex {A}..{B} 100644\n--- a/a b\t\n+++ b/a b\t\n@@ -1,2 +1 @@ f\n x\n--- a/y\n\
             \\ No newline at end of file\n\
             diff --git a/new b/new\nnew file mode 100755\nindex {NONE}..{B}\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\
             diff --git a/empty b/empty\ndeleted file mode 100644\nindex {A}..{NONE}\n\
             diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n\
             diff --git \"a/\\303\\244\\n\" \"b/\\303\\244\\n\"\nindex {A}..{B} 120000\n--- \"a/\\303\\244\\n\"\n+++ \"b/\\303\\244\\n\"\n@@ -1 +1 @@\n-a\n+b\n\
             diff --git a/kind b/kind\ndeleted file mode 100644\nindex {A}..{NONE}\n--- a/kind\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
             diff --git a/kind b/kind\nnew file mode 120000\nindex {NONE}..{B}\n--- /dev/null\n+++ b/kind\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n\
             diff --git a/bin b/bin\nindex {A}..{B} 100644\nGIT binary patch\nliteral 3\nKcmZQz\n\nliteral 1\nIcmZPo\n\n"
        );
        let expected = [
            file(b"a b", Some(File), Some(File), Some((A, B))),
            file(b"new", None, Some(Executable), Some((NONE, B))),
            file(b"empty", Some(File), None, Some((A, NONE))),
            file(b"mode", Some(File), Some(Executable), None),
            file("\u{e4}\n".as_bytes(), Some(Symlink), Some(Symlink), Some((A, B))),
            file(b"kind", Some(File), Some(Symlink), Some((A, B))),
            file(b"bin", Some(File), Some(File), Some((A, B))),
        ];
        assert_eq!(parse_headers(patch.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn ambiguous_patches_are_refused() {
        let head =
            format!("diff --git a/f b/f\nindex {A}..{B} 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n");
        parse_headers(head.as_bytes()).unwrap();
        for (what, patch) in [
            ("a second file without its header", format!("{head}--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n")),
            ("two different names", head.replace("+++ b/f", "+++ b/g")),
            ("a rename", head.replace("diff --git a/f b/f", "diff --git a/f b/g")),
            ("short blob names", head.replace(A, "1111111")),
            ("a path that leaves", head.replace("a/f b/f", "a/../f b/../f")),
            ("a cut hunk", head.replace("+b\n", "")),
            ("a torn line", head.trim_end().to_owned()),
            ("text before", format!("hello\n{head}")),
            ("text after", format!("{head}hello\n")),
            ("an addition of something", head.replace("index", "new file mode 100644\nindex")),
        ] {
            assert!(parse_headers(patch.as_bytes()).is_err(), "{what}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(lines in prop::collection::vec(
            "(diff --git |a/f b/f|\"|\\\\|index |1{40}|\\.\\.| 100644|@@ -1 \\+1 @@|--- |\\+\\+\\+ |[ -~]){0,6}\n", 0..12)) {
            let _ = parse_headers(lines.concat().as_bytes());
        }
    }
}
