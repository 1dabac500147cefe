//! Checks whether anything in the target depends on the objects of a landing.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use super::Landing;
use super::pack::Pack;
use super::pack_index::PackIndex;
use crate::error::GitError;
use crate::git_dir::is_id;
use crate::object::ObjectFormat;
use crate::plain::has_plain_paths;
use crate::source::SourceRepo;

/// The roots of git's own reachability walk, in all work trees.
const WALK: [&str; 9] = [
    "rev-list",
    "--objects",
    "--no-object-names",
    "--missing=allow-any",
    "--ignore-missing",
    "--all",
    "--reflog",
    "--indexed-objects",
    "--stdin",
];

/// The directories in which a rebase or a sequence of picks records commits.
const UNDER_WAY: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

impl SourceRepo {
    /// Removes the pack of `landing`, unless something depends on it.
    pub(super) fn remove_pack(&self, landing: &Landing) -> Result<(), GitError> {
        if has_plain_paths(&self.common_dir).is_err() {
            return Ok(());
        }
        let dir = self.pack_dir();
        let pack = Pack { dir: &dir, name: &landing.pack };
        // git sees no pack without both files, so nothing depends on it.
        if !pack.is_seen() {
            return pack.take_out();
        }
        let Some(index) = PackIndex::open(&pack.file("idx"), ObjectFormat::of_id(&landing.commit))? else {
            return Ok(());
        };
        if pack.is_wanted()? || self.is_listed(&pack, landing) || self.has_grafts() {
            return Ok(());
        }
        let ids = index.ids().map_err(GitError::file("read", pack.file("idx")))?;
        let ours: HashSet<String> = self.only_in(&pack, ids)?.iter().map(hex::encode).collect();
        let cut_off = self.cut_off_parents()?;
        for git_dir in self.git_dirs()? {
            if self.reaches(&git_dir, &cut_off, &ours)? {
                return Ok(());
            }
        }
        pack.take_out()
    }

    /// Whether git has recorded the pack or its commit in a file of its own.
    fn is_listed(&self, pack: &Pack<'_>, landing: &Landing) -> bool {
        let info = self.common_dir.join("objects/info");
        let commit = hex::decode(&landing.commit).unwrap_or_default();
        let packs = [pack.dir.join("multi-pack-index"), pack.dir.join("multi-pack-index.d")];
        let graphs = [info.join("commit-graph"), info.join("commit-graphs")];
        packs.iter().any(|path| mentions(path, landing.pack.as_bytes()))
            || graphs.iter().any(|path| mentions(path, &commit))
    }

    /// The git directories of all work trees.
    fn git_dirs(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut dirs = vec![self.common_dir.clone()];
        let linked = self.common_dir.join("worktrees");
        match std::fs::read_dir(&linked) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(GitError::file("list", linked)(e)),
            Ok(entries) => {
                for entry in entries {
                    let path = entry.map_err(GitError::file("list", &linked))?.path();
                    if path.join("HEAD").exists() {
                        dirs.push(path);
                    }
                }
            }
        }
        Ok(dirs)
    }

    /// Whether one of `ids` can be reached in `git_dir`, from its own refs and files or from `further` commits.
    fn reaches(&self, git_dir: &Path, further: &[String], ids: &HashSet<String>) -> Result<bool, GitError> {
        let fail = || GitError::file("walk the objects of", git_dir);
        let mut running = self.git.call(git_dir, WALK).spawn()?;
        if let Some(mut stdin) = running.take_stdin() {
            let from = [&noted(git_dir)[..], further, &[String::new()]].concat();
            stdin.write_all(from.join("\n").as_bytes()).map_err(fail())?;
        }
        let (_, stdout) = running.streams();
        for line in BufReader::with_capacity(1 << 16, stdout).lines() {
            if ids.contains(line.map_err(fail())?.as_str()) {
                return Ok(true);
            }
        }
        running.finish()?;
        Ok(false)
    }
}

/// Every object that a file of `git_dir` outside of the refs names: `MERGE_HEAD` and the like, a rebase in
/// progress.
fn noted(git_dir: &Path) -> Vec<String> {
    let below = UNDER_WAY.iter().map(|name| git_dir.join(name));
    let listed =
        std::iter::once(git_dir.to_owned()).chain(below).filter_map(|dir| std::fs::read_dir(dir).ok());
    let files = listed.flatten().flatten().map(|entry| entry.path());
    let small =
        files.filter(|path| std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.len() < 1 << 20));
    let mut ids = Vec::new();
    for content in small.filter(|path| !path.ends_with("index")).filter_map(|path| std::fs::read(path).ok()) {
        let text = String::from_utf8_lossy(&content).into_owned();
        ids.extend(text.split_whitespace().filter(|word| is_id(word)).map(str::to_owned));
    }
    ids
}

/// Whether a file, or one in a directory, contains these bytes. An unreadable one counts as if it did.
fn mentions(path: &Path, wanted: &[u8]) -> bool {
    if path.is_dir() {
        return std::fs::read_dir(path)
            .map_or(true, |entries| entries.flatten().any(|entry| mentions(&entry.path(), wanted)));
    }
    match std::fs::read(path) {
        Ok(content) => content.windows(wanted.len()).any(|window| window == wanted),
        Err(e) => e.kind() != std::io::ErrorKind::NotFound,
    }
}
