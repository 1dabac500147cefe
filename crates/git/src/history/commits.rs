//! Walks commits from the base, without git's own walk: its order is by time, and a depth counts generations.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;

use crate::error::GitError;
use crate::git::Git;
use crate::git_dir::is_id;

/// The commits within a depth.
pub(super) struct Walked {
    pub(super) commits: HashSet<String>,
    /// Those that have parents outside.
    boundary: BTreeSet<String>,
}

impl Walked {
    pub(super) fn into_boundary(self) -> Vec<String> {
        self.boundary.into_iter().collect()
    }
}

/// The commits that a clone of this depth has: generation by generation, up to the commits at which the repository's own history
/// ends.
pub(super) fn walk(
    git: &Git,
    git_dir: &Path,
    base: &str,
    depth: u32,
    shallow: &BTreeSet<String>,
) -> Result<Walked, GitError> {
    let fail = || GitError::file("read commits from", git_dir);
    let mut running = git.call(git_dir, ["cat-file", "--batch"]).spawn()?;
    let mut stdin = running.take_stdin().ok_or_else(|| GitError::unexpected("cat-file", b"no stdin"))?;
    let (_, stdout) = running.streams();
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    let mut ask = |id: &str| {
        stdin.write_all(format!("{id}\n").as_bytes()).map_err(fail())?;
        let mut head = String::new();
        stdout.read_line(&mut head).map_err(fail())?;
        let size = commit_size(&head).ok_or_else(|| GitError::unexpected("cat-file", head.as_bytes()))?;
        let mut content = vec![0; size + 1];
        stdout.read_exact(&mut content).map_err(fail())?;
        Ok::<_, GitError>(parents(&content))
    };
    let mut walked = Walked { commits: HashSet::from([base.to_owned()]), boundary: BTreeSet::new() };
    let mut generation = vec![base.to_owned()];
    for left in (0..depth).rev() {
        let mut next = Vec::new();
        for commit in generation {
            let parents = if shallow.contains(&commit) { None } else { Some(ask(&commit)?) };
            let is_cut = match &parents {
                None => true,
                // As git does, also where another line of the history has the parents.
                Some(parents) => left == 0 && !parents.is_empty(),
            };
            if is_cut {
                walked.boundary.insert(commit);
                continue;
            }
            let new = parents.into_iter().flatten().filter(|id| walked.commits.insert(id.clone()));
            next.extend(new);
        }
        generation = next;
        if generation.is_empty() {
            break;
        }
    }
    drop(stdin);
    drop(stdout);
    running.finish()?;
    Ok(walked)
}

/// The time of a commit, in seconds; zero where it is before 1970 or cannot be read.
pub(super) fn time(git: &Git, git_dir: &Path, commit: &str) -> Result<u64, GitError> {
    let content = git.call(git_dir, ["cat-file", "commit", commit]).checked()?.stdout;
    let committer = head_lines(&content).find_map(|line| line.strip_prefix(b"committer "));
    let line = String::from_utf8_lossy(committer.unwrap_or_default()).into_owned();
    Ok(line.rsplit(' ').nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(0))
}

/// `<id> commit <size>\n`
fn commit_size(head: &str) -> Option<usize> {
    let mut words = head.trim_end().split(' ');
    (words.nth(1)? == "commit").then_some(())?;
    words.next()?.parse().ok()
}

fn parents(commit: &[u8]) -> Vec<String> {
    let parents = head_lines(commit).filter_map(|line| line.strip_prefix(b"parent "));
    parents.map(|id| String::from_utf8_lossy(id).into_owned()).filter(|id| is_id(id)).collect()
}

/// The lines before the message.
fn head_lines(commit: &[u8]) -> impl Iterator<Item = &[u8]> {
    commit.split(|b| *b == b'\n').take_while(|line| !line.is_empty())
}
