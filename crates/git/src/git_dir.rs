//! herma's own git directory of a run: it records baseline and result out of the agent's reach.

mod content;

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::Arc;

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Entry, Mode};
use herma_destination::tool::Streaming;

use crate::error::GitError;
use crate::git::Git;
use crate::identity::Identity;
use crate::object::{ObjectFormat, tree_id};
use crate::tree_entry::TreeEntry;
use crate::walk::read_entry;

pub(crate) use self::content::{CheckoutContent, LfsFile, Submodule};

/// The prefix of each path for `git check-ignore`, which has no literal pathspecs: a path with it has no magic.
const HERE: &[u8] = b"./";

/// herma's own git directory of a run.
#[derive(Clone, Debug)]
pub struct GitDir {
    git: Git,
    dir: PathBuf,
    format: ObjectFormat,
    /// The files of checkouts that are no blobs of the tree.
    pub(crate) content: Arc<CheckoutContent>,
}

/// The parentless commit that a workspace starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The commit id.
    pub commit: String,
    /// The tree id.
    pub tree: String,
}

/// One commit of the collected tree on the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultCommit {
    /// The commit id.
    pub commit: String,
    /// The tree id.
    pub tree: String,
}

/// A file of a new repository.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// Its path.
    pub path: &'a RepoPath,
    /// Its mode.
    pub mode: Mode,
    /// Its content; a symlink's target.
    pub content: &'a [u8],
}

impl GitDir {
    /// Makes the directory. `objects_of` is another repository's object directory that may be read from.
    ///
    /// It is written by hand rather than by `git init`, which is slower and copies the user's templates.
    pub fn create(
        git: &Git,
        dir: &Path,
        format: ObjectFormat,
        objects_of: Option<&Path>,
    ) -> Result<Self, GitError> {
        skeleton(dir, format, true)?;
        if let Some(objects) = objects_of {
            let mut line = objects.as_os_str().as_encoded_bytes().to_vec();
            line.push(b'\n');
            let file = dir.join("objects/info/alternates");
            std::fs::write(&file, line).map_err(GitError::file("write", file))?;
        }
        Ok(Self { git: git.clone(), dir: dir.to_owned(), format, content: Arc::default() })
    }

    /// The directory that [`GitDir::create`] made in an earlier process.
    #[must_use]
    pub fn open(git: &Git, dir: &Path, format: ObjectFormat) -> Self {
        Self { git: git.clone(), dir: dir.to_owned(), format, content: Arc::default() }
    }

    /// The hash of its object ids.
    #[must_use]
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Records `files` as one parentless commit.
    pub fn import(&self, files: &[NewFile<'_>]) -> Result<Baseline, GitError> {
        let mut import =
            FastImport::start(self, NewCommit { message: "baseline", parent: None, seconds: 0 })?;
        for file in files {
            import.modify(file.path, file.mode, file.content)?;
        }
        let (commit, tree) = import.finish()?;
        Ok(Baseline { commit, tree })
    }

    /// Whether the tree with this id exists.
    pub(crate) fn has_tree(&self, tree: &str) -> bool {
        self.git
            .call(&self.dir, ["cat-file", "-t", tree])
            .checked()
            .is_ok_and(|kind| kind.stdout == b"tree\n")
    }

    /// The size of a blob, as a checkout has it; none if it is not there.
    #[must_use]
    pub fn blob_bytes(&self, entry: &TreeEntry) -> Option<u64> {
        if let Some(file) = self.content.lfs_file(entry) {
            return std::fs::metadata(&file.copy).ok().map(|meta| meta.len());
        }
        let size = self.git.call(&self.dir, ["cat-file", "-s", &entry.entry.id]).checked().ok()?;
        String::from_utf8(size.stdout).ok()?.trim_end().parse().ok()
    }

    /// Creates a parentless commit of an existing tree.
    pub fn adopt(&self, tree: &str) -> Result<Baseline, GitError> {
        let output = self.git.call(&self.dir, ["commit-tree", "-m", "baseline", tree]).checked()?;
        Ok(Baseline { commit: one_id("commit-tree", &output.stdout)?, tree: tree.to_owned() })
    }

    /// Creates a commit of a tree on `parent`.
    pub(crate) fn commit_on(&self, parent: &str, tree: &str, message: &str) -> Result<String, GitError> {
        let args = ["commit-tree", "-p", parent, "-F", "-", tree];
        one_id("commit-tree", &self.git.call(&self.dir, args).stdin(message).checked()?.stdout)
    }

    /// Creates a commit of a tree on `parent` with a person as its author.
    pub(crate) fn commit_as(
        &self,
        parent: &str,
        tree: &str,
        message: &str,
        (author, second): (&Identity, i64),
    ) -> Result<String, GitError> {
        let date = format!("@{second} +0000");
        let mut call = self.git.call(&self.dir, ["commit-tree", "-p", parent, "-F", "-", tree]);
        for role in ["AUTHOR", "COMMITTER"] {
            call = call
                .env(format!("GIT_{role}_NAME"), &author.name)
                .env(format!("GIT_{role}_EMAIL"), &author.email)
                .env(format!("GIT_{role}_DATE"), &date);
        }
        one_id("commit-tree", &call.stdin(message).checked()?.stdout)
    }

    /// Every path of a tree.
    pub fn entries(&self, tree: &str) -> Result<Vec<TreeEntry>, GitError> {
        let output = self.git.call(&self.dir, ["ls-tree", "-r", "-z", "--full-tree", tree]).checked()?;
        let lines = output.stdout.split(|b| *b == 0).filter(|line| !line.is_empty());
        lines.map(|line| tree_entry(line).ok_or_else(|| GitError::unexpected("ls-tree", line))).collect()
    }

    /// Records the collected changes as one commit on the baseline. Contents are read from `root` again; the caller
    /// compares the resulting ids with those it hashed.
    pub fn commit_changes(
        &self,
        baseline: &Baseline,
        root: &Path,
        changes: &[ChangedFile],
    ) -> Result<ResultCommit, GitError> {
        let commit = NewCommit { message: "result", parent: Some(&baseline.commit), seconds: 0 };
        let mut import = FastImport::start(self, commit)?;
        // Deletions first: a path may have been a file and be a directory now.
        for change in changes.iter().filter(|c| c.new.is_none()) {
            import.delete(&change.path)?;
        }
        for change in changes {
            if let Some(new) = change.new.as_ref().filter(|new| new.mode != Mode::Submodule) {
                import.modify(&change.path, new.mode, &read_entry(root, &change.path, new.mode)?)?;
            }
        }
        let (commit, tree) = import.finish()?;
        Ok(ResultCommit { commit, tree })
    }

    /// Creates a commit of changes on `parent`. Their contents are objects already.
    pub(crate) fn commit_known<'a>(
        &self,
        parent: &str,
        seconds: u64,
        changes: impl IntoIterator<Item = &'a ChangedFile>,
    ) -> Result<ResultCommit, GitError> {
        let mut import =
            FastImport::start(self, NewCommit { message: "checkout", parent: Some(parent), seconds })?;
        let (new, deleted): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.new.is_some());
        // Deletions first: a path may have been a file and be a directory now.
        for change in deleted {
            import.delete(&change.path)?;
        }
        for change in new {
            if let Some(new) = &change.new {
                import.modify_known(&change.path, new)?;
            }
        }
        let (commit, tree) = import.finish()?;
        Ok(ResultCommit { commit, tree })
    }

    /// Writes the patch between two trees with full ids and binary content, so that it applies anywhere.
    pub fn diff(&self, from: &str, to: &str, mut out: impl Write) -> Result<(), GitError> {
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            from,
            to,
        ];
        let mut running = self.git.call(&self.dir, args).spawn()?;
        running.close_stdin();
        let (_, stdout) = running.streams();
        io::copy(stdout, &mut out).map_err(GitError::file("copy the patch from", &self.dir))?;
        running.finish()?;
        Ok(())
    }

    /// Which of `paths` the ignore rules of `checkout` cover. The checkout is herma's own, never the agent's.
    ///
    /// Nothing is ignored at a path where `entries`, which the checkout was made of, has a symbolic link: git refuses to
    /// look behind links.
    pub fn ignored(
        &self,
        checkout: &Path,
        entries: &[TreeEntry],
        paths: &[RepoPath],
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        let links: BTreeSet<&[u8]> =
            entries.iter().filter(|e| e.entry.mode == Mode::Symlink).map(|e| e.path.as_bytes()).collect();
        let behind_link = |path: &RepoPath| {
            let slashes = path.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'/');
            !links.is_empty() && slashes.map(|(at, _)| &path.as_bytes()[..at]).any(|dir| links.contains(dir))
        };
        let mut work_tree = std::ffi::OsString::from("--work-tree=");
        work_tree.push(checkout);
        let mut stdin = Vec::new();
        for path in paths.iter().filter(|path| !behind_link(path)) {
            stdin.extend_from_slice(HERE);
            stdin.extend_from_slice(path.as_bytes());
            stdin.push(0);
        }
        if stdin.is_empty() {
            return Ok(BTreeSet::new());
        }
        let args: [std::ffi::OsString; 5] =
            [work_tree, "check-ignore".into(), "--no-index".into(), "--stdin".into(), "-z".into()];
        let call = self.git.call(&self.dir, args).env("GIT_LITERAL_PATHSPECS", "0");
        let output = call.cwd(checkout).stdin(stdin).output()?;
        // Exit code 1 means that none is ignored.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(GitError::unexpected("check-ignore", &output.stderr));
        }
        let names = output.stdout.split(|b| *b == 0).filter(|name| !name.is_empty());
        let path = |name: &[u8]| RepoPath::new(name.strip_prefix(HERE)?);
        names.map(|name| path(name).ok_or_else(|| GitError::unexpected("check-ignore", name))).collect()
    }
}

/// The files that make an empty directory a git directory.
pub(crate) fn skeleton(dir: &Path, format: ObjectFormat, bare: bool) -> Result<(), GitError> {
    // git creates the directories of tags and other refs on demand.
    for sub in ["objects/info", "objects/pack", "refs/heads", "info"] {
        let path = dir.join(sub);
        std::fs::create_dir_all(&path).map_err(GitError::file("make", path))?;
    }
    let extension = match format {
        ObjectFormat::Sha1 => "",
        ObjectFormat::Sha256 => "[extensions]\n\tobjectformat = sha256\n",
    };
    let version = u8::from(format == ObjectFormat::Sha256);
    let config = format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = {bare}\n\
         [gc]\n\tauto = 0\n{extension}"
    );
    // This file outranks every `.gitattributes`, so contents are stored verbatim: no filters, no conversions.
    let attributes = "* -text -eol -ident -filter -working-tree-encoding !diff !merge\n";
    for (name, content) in
        [("HEAD", "ref: refs/heads/main\n"), ("config", config.as_str()), ("info/attributes", attributes)]
    {
        let path = dir.join(name);
        std::fs::write(&path, content).map_err(GitError::file("write", path))?;
    }
    Ok(())
}

/// One `git fast-import`: blobs, tree and commit in one process.
struct FastImport {
    running: Streaming,
    stdin: io::BufWriter<ChildStdin>,
    dir: PathBuf,
    format: ObjectFormat,
}

/// The head of an imported commit.
#[derive(Clone, Copy)]
struct NewCommit<'a> {
    message: &'a str,
    parent: Option<&'a str>,
    seconds: u64,
}

impl FastImport {
    fn start(git_dir: &GitDir, head: NewCommit<'_>) -> Result<Self, GitError> {
        let NewCommit { message, parent, seconds } = head;
        let args = ["fast-import", "--quiet", "--done", "--date-format=raw", "--force"];
        let mut running = git_dir.git.call(&git_dir.dir, args).spawn()?;
        let stdin = running.take_stdin().ok_or_else(|| GitError::unexpected("fast-import", b"no stdin"))?;
        let mut import = Self {
            running,
            stdin: io::BufWriter::with_capacity(1 << 16, stdin),
            dir: git_dir.dir.clone(),
            format: git_dir.format,
        };
        let length = message.len();
        let from = parent.map(|parent| format!("from {parent}\n")).unwrap_or_default();
        let head = format!(
            "feature done\ncommit refs/herma/{message}\nmark :1\ncommitter herma <herma@herma.invalid> {seconds} +0000\n\
             data {length}\n{message}\n{from}"
        );
        import.send(head.as_bytes())?;
        Ok(import)
    }

    fn modify(&mut self, path: &RepoPath, mode: Mode, content: &[u8]) -> Result<(), GitError> {
        let head = format!("M {} inline {}\ndata {}\n", mode.as_str(), quoted(path), content.len());
        self.send(head.as_bytes())?;
        self.send(content)?;
        self.send(b"\n")
    }

    fn modify_known(&mut self, path: &RepoPath, entry: &Entry) -> Result<(), GitError> {
        self.send(format!("M {} {} {}\n", entry.mode.as_str(), entry.id, quoted(path)).as_bytes())
    }

    fn delete(&mut self, path: &RepoPath) -> Result<(), GitError> {
        self.send(format!("D {}\n", quoted(path)).as_bytes())
    }

    /// Ends the stream and reads the ids of commit and tree.
    fn finish(mut self) -> Result<(String, String), GitError> {
        self.send(b"\nget-mark :1\nls :1 \"\"\ndone\n")?;
        let flushed = self.stdin.flush();
        drop(self.stdin);
        let mut answer = Vec::new();
        let (_, stdout) = self.running.streams();
        stdout.read_to_end(&mut answer).map_err(GitError::file("read fast-import's answer in", &self.dir))?;
        self.running.finish()?;
        flushed.map_err(GitError::file("write to fast-import in", &self.dir))?;
        parse_import(&answer, self.format).ok_or_else(|| GitError::unexpected("fast-import", &answer))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        self.stdin.write_all(bytes).map_err(GitError::file("write to fast-import in", &self.dir))
    }
}

/// A path in fast-import syntax, always quoted.
fn quoted(path: &RepoPath) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("\"");
    for byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            0x20..=0x7e => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

fn parse_import(answer: &[u8], format: ObjectFormat) -> Option<(String, String)> {
    let text = std::str::from_utf8(answer).ok()?;
    let mut lines = text.lines();
    let commit = lines.next()?.to_owned();
    // `040000 tree <id>\t` for a tree, `missing` for the empty one.
    let tree = match lines.next()?.split_whitespace().nth(2) {
        Some(id) => id.to_owned(),
        None => tree_id(format, &[]),
    };
    (is_id(&commit) && is_id(&tree)).then_some((commit, tree))
}

pub(crate) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

pub(crate) fn one_id(command: &'static str, stdout: &[u8]) -> Result<String, GitError> {
    let text = String::from_utf8_lossy(stdout);
    let id = text.trim_end();
    if is_id(id) { Ok(id.to_owned()) } else { Err(GitError::unexpected(command, stdout)) }
}

/// `<mode> <type> <id>\t<path>`
fn tree_entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|b| *b == b'\t')?;
    let mut head = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = Mode::parse(head.next()?)?;
    let id = head.nth(1).filter(|id| is_id(id))?.to_owned();
    Some(TreeEntry { path: RepoPath::new(&line[tab + 1..])?, entry: Entry { mode, id } })
}
