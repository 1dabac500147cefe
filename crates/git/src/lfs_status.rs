//! Compares files that `git status` lists with their Git LFS pointers: herma runs no filter.

use std::collections::BTreeSet;
use std::path::Path;

use herma_core::RepoPath;

use crate::error::GitError;
use crate::git::Git;
use crate::object::ObjectFormat;
use crate::pointer::{MAX_BYTES, Pointer};
use crate::target_file;

/// How many paths of `git status` are compared with their pointers.
const MAX_COMPARED: usize = 10_000;

/// A work tree and its repository.
#[derive(Clone, Copy)]
pub(crate) struct WorkTree<'a> {
    pub(crate) git: &'a Git,
    pub(crate) root: &'a Path,
    pub(crate) common_dir: &'a Path,
}

/// The output of `git status` without LFS files whose content is the one that the index points to: without its filter, git takes
/// such a file for modified.
pub(crate) fn without_unchanged(place: WorkTree<'_>, status: Vec<u8>) -> Result<Vec<u8>, GitError> {
    let modified: Vec<&[u8]> =
        status.split(|b| *b == 0).filter_map(|line| line.strip_prefix(b" M ")).take(MAX_COMPARED).collect();
    if modified.is_empty() {
        return Ok(status);
    }
    let mut unchanged: BTreeSet<Vec<u8>> = BTreeSet::new();
    for paths in modified.chunks(500) {
        let paths = paths.iter().map(|path| std::os::unix::ffi::OsStrExt::from_bytes(path));
        let paths = paths.map(|path: &std::ffi::OsStr| path.to_owned());
        let listed = place.git.call_in(place.root, ["ls-files", "-s", "-z", "--"]).args(paths).checked()?;
        // `<mode> <id> <stage>\t<path>`
        let staged: Vec<(&str, &[u8])> = listed
            .stdout
            .split(|b| *b == 0)
            .filter_map(|line| {
                let tab = line.iter().position(|b| *b == b'\t')?;
                let head = std::str::from_utf8(&line[..tab]).ok()?;
                Some((head.split(' ').nth(1)?, &line[tab + 1..]))
            })
            .collect();
        for (id, path) in staged {
            if is_unchanged(place, id, path)? {
                unchanged.insert([b" M ", path].concat());
            }
        }
    }
    let lines = status.split(|b| *b == 0).filter(|line| !line.is_empty() && !unchanged.contains(*line));
    Ok(lines.flat_map(|line| [line, b"\0"].concat()).collect())
}

fn is_unchanged(place: WorkTree<'_>, id: &str, path: &[u8]) -> Result<bool, GitError> {
    let small = small_blobs(place.git, place.common_dir, &BTreeSet::from([id]))?;
    let Some(id) = small.first() else { return Ok(false) };
    let blob = place.git.call(place.common_dir, ["cat-file", "blob", id]).checked()?.stdout;
    let Some(pointer) = Pointer::parse(&blob) else { return Ok(false) };
    let file = RepoPath::new(path).and_then(|path| target_file::open(place.root, &path));
    let Some((file, bytes)) = file.filter(|(_, bytes)| *bytes == pointer.bytes) else { return Ok(false) };
    let format = ObjectFormat::Sha256;
    Ok(target_file::copy(file, bytes, format, std::io::sink())
        .is_ok_and(|(digest, _)| digest == pointer.digest))
}

/// Those of these blobs that are small enough to be pointers.
pub(crate) fn small_blobs(git: &Git, git_dir: &Path, ids: &BTreeSet<&str>) -> Result<Vec<String>, GitError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let stdin: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
    let call = git.call(git_dir, ["cat-file", "--batch-check=%(objectname) %(objectsize)"]);
    let sizes = call.stdin(stdin.into_bytes()).checked()?.stdout;
    let sizes = String::from_utf8_lossy(&sizes).into_owned();
    let is_small = |bytes: &str| bytes.parse().is_ok_and(|bytes: u64| bytes <= MAX_BYTES);
    let small = sizes.lines().filter_map(|line| line.split_once(' ')).filter(|(_, bytes)| is_small(bytes));
    Ok(small.map(|(id, _)| id.to_owned()).collect())
}
