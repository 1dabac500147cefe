//! Directories that git takes for a bare repository. Inside one, git follows its `config`, which can name programs.
//!
//! git's `is_git_directory` asks for a valid `HEAD`, and for `objects` and `refs`, which a file `commondir` can place
//! elsewhere. The rule looks at the names only: the content of `HEAD` can change later, and what git finds behind a link
//! or in `commondir` depends on the machine.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Entry, Mode};

use crate::names::{fold_path, folds_to};

/// The names that make a directory a repository, in lower case: many file systems find them in any case.
pub(crate) const PIECES: [&str; 4] = [HEAD, OBJECTS, REFS, COMMONDIR];
const HEAD: &str = "head";
const OBJECTS: &str = "objects";
const REFS: &str = "refs";
const COMMONDIR: &str = "commondir";

/// A directory that git takes for a repository, and the change by which it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BareRepository<'a> {
    pub(crate) changed: &'a RepoPath,
    /// The directory; none for the root.
    pub(crate) dir: Option<RepoPath>,
}

/// The parts of a repository found in a directory with a `HEAD`.
#[derive(Default)]
struct RepositoryParts {
    objects: bool,
    refs: bool,
    commondir: bool,
}

impl RepositoryParts {
    fn are_complete(&self) -> bool {
        self.commondir || (self.objects && self.refs)
    }
}

/// Every directory that git takes for a repository, in the tree or in the base that the changes were made to, and that has
/// a change in it; also one of which only the last piece is new. `files` are the files and links of the changed tree,
/// `submodules` its other entries.
pub(crate) fn find<'a>(
    changes: &'a [ChangedFile],
    files: &[RepoPath],
    submodules: &[RepoPath],
) -> Vec<BareRepository<'a>> {
    let mut repositories = in_tree(files.iter(), submodules.iter());
    // Only where a change takes something away can the base have a repository that the result does not have.
    if changes.iter().any(takes_away) {
        let added: HashSet<&RepoPath> =
            changes.iter().filter(|change| change.old.is_none()).map(|change| &change.path).collect();
        let kept = files.iter().filter(|path| !added.contains(path));
        let old = |submodule: bool| {
            let is_old = move |change: &&ChangedFile| {
                change.old.as_ref().is_some_and(|old| is_submodule(old) == submodule)
            };
            changes.iter().filter(is_old).map(|change| &change.path)
        };
        repositories.extend(in_tree(kept.chain(old(false)), submodules.iter().chain(old(true))));
    }
    first_changes(changes, repositories.into_iter().map(|dir| (dir, None)).collect())
}

/// The directories of a tree that git takes for a repository, folded.
fn in_tree<'p>(
    files: impl Iterator<Item = &'p RepoPath> + Clone,
    submodules: impl Iterator<Item = &'p RepoPath>,
) -> BTreeSet<Vec<u8>> {
    let mut dirs: BTreeMap<Vec<u8>, RepositoryParts> = files
        .clone()
        .filter(|path| folds_to(path.name(), HEAD) && can_be_opened(path))
        .map(|path| {
            (path.parent().map_or_else(Vec::new, |dir| fold_path(dir.as_bytes())), RepositoryParts::default())
        })
        .collect();
    if dirs.is_empty() {
        return BTreeSet::new();
    }
    for path in files.chain(submodules).filter(|path| can_be_opened(path)) {
        for PathStep { dir, name, is_last } in steps(&fold_path(path.as_bytes())) {
            if let Some(piece) = piece(name)
                && let Some(pieces) = dirs.get_mut(dir)
            {
                pieces.objects |= piece == OBJECTS;
                pieces.refs |= piece == REFS;
                pieces.commondir |= piece == COMMONDIR && is_last;
            }
        }
    }
    dirs.into_iter().filter(|(_, pieces)| pieces.are_complete()).map(|(dir, _)| dir).collect()
}

/// Whether a file of the base is gone, or a submodule now.
fn takes_away(change: &ChangedFile) -> bool {
    change
        .old
        .as_ref()
        .is_some_and(|old| change.new.as_ref().is_none_or(|new| is_submodule(new) != is_submodule(old)))
}

fn is_submodule(entry: &Entry) -> bool {
    entry.mode == Mode::Submodule
}

/// The first change of a piece of each repository, else the first one in it.
fn first_changes<'a>(
    changes: &'a [ChangedFile],
    mut repositories: BTreeMap<Vec<u8>, Option<(bool, &'a RepoPath)>>,
) -> Vec<BareRepository<'a>> {
    if repositories.is_empty() {
        return Vec::new();
    }
    for path in changes.iter().map(|change| &change.path).filter(|path| can_be_opened(path)) {
        for PathStep { dir, name, .. } in steps(&fold_path(path.as_bytes())) {
            if let Some(first) = repositories.get_mut(dir) {
                let this = (piece(name).is_none(), path);
                *first = Some(first.map_or(this, |other| other.min(this)));
            }
        }
    }
    let found = repositories.into_iter().filter_map(|(dir, first)| Some((dir, first?.1)));
    found
        .map(|(dir, changed)| {
            let depth = if dir.is_empty() { 0 } else { dir.split(|b| *b == b'/').count() };
            let spelled: Vec<&[u8]> = changed.components().take(depth).collect();
            BareRepository { changed, dir: RepoPath::new(spelled.join(&b'/')) }
        })
        .collect()
}

/// The repositories that the changes make all by themselves: what can be seen without the rest of the tree.
pub(crate) fn find_in_changes(changes: &[ChangedFile]) -> Vec<BareRepository<'_>> {
    let new = |submodule: bool| -> Vec<RepoPath> {
        let is_new =
            |change: &&ChangedFile| change.new.as_ref().is_some_and(|new| is_submodule(new) == submodule);
        changes.iter().filter(is_new).map(|change| change.path.clone()).collect()
    };
    find(changes, &new(false), &new(true))
}

/// One name of a folded path, and the directory that it is in.
struct PathStep<'a> {
    dir: &'a [u8],
    name: &'a [u8],
    is_last: bool,
}

fn steps(path: &[u8]) -> impl Iterator<Item = PathStep<'_>> {
    let mut start: usize = 0;
    path.split(|b| *b == b'/').map(move |name| {
        let dir = &path[..start.saturating_sub(1)];
        start += name.len() + 1;
        PathStep { dir, name, is_last: start > path.len() }
    })
}

fn piece(name: &[u8]) -> Option<&'static str> {
    PIECES.into_iter().find(|piece| piece.as_bytes() == name)
}

/// A longer path can be in no checkout. A forged list of changes can have one, and judging it would take long.
fn can_be_opened(path: &RepoPath) -> bool {
    path.as_bytes().len() < 4096
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::new(text).unwrap()
    }

    /// The changes that are refused in a tree of these files, of which those with a `+` are new, those with a `-` were
    /// removed and those with a `~` have other content.
    fn refused(tree: &[&str]) -> Vec<String> {
        let entry = |there: bool| there.then(|| Entry { mode: Mode::File, id: String::new() });
        let name = |text: &str| path(text.trim_start_matches(['+', '-', '~']));
        let change = |text: &&str| ChangedFile {
            path: name(text),
            old: entry(!text.starts_with('+')),
            new: entry(!text.starts_with('-')),
        };
        let changes: Vec<_> =
            tree.iter().filter(|text| text.starts_with(['+', '-', '~'])).map(change).collect();
        let files: Vec<_> =
            tree.iter().filter(|text| !text.starts_with('-')).map(|text| name(text)).collect();
        find(&changes, &files, &[]).iter().map(|found| found.changed.to_string()).collect()
    }

    #[test]
    fn a_change_inside_a_repository_of_the_base_that_takes_a_piece_away() {
        assert_eq!(refused(&["d/HEAD", "d/objects/x", "-d/refs/x", "+d/config"]), ["d/refs/x"]);
        assert_eq!(refused(&["-d/HEAD", "d/objects/x", "d/refs/x", "~d/config"]), ["d/HEAD"]);
        assert_eq!(refused(&["-d/HEAD", "-d/objects/x", "-d/refs/x"]), ["d/HEAD"]);
        assert_eq!(refused(&["d/HEAD", "-d/commondir"]), ["d/commondir"]);
        assert_eq!(refused(&["-HEAD", "objects/x", "refs", "+README"]), ["HEAD"]);
        assert!(refused(&["d/HEAD", "-d/objects/x", "+d/refs/x"]).is_empty(), "neither tree has all pieces");
        assert!(refused(&["d/HEAD", "d/objects/x", "d/refs/x", "-e/refs/x"]).is_empty());
    }

    #[test]
    fn a_repository_and_one_that_a_change_completes() {
        assert_eq!(refused(&["+d/HEAD", "+d/config", "+d/objects/x", "+d/refs/x"]), ["d/HEAD"]);
        assert_eq!(refused(&["d/HEAD", "d/objects/x", "+d/refs/heads/x"]), ["d/refs/heads/x"]);
        assert_eq!(refused(&["+d/HEAD", "d/objects/x", "d/refs/heads/x"]), ["d/HEAD"]);
        assert_eq!(refused(&["d/HEAD", "+d/commondir"]), ["d/commondir"]);
        assert_eq!(refused(&["+HEAD", "+objects/x", "+refs"]), ["HEAD"]);
        assert_eq!(refused(&["+d/head", "+d/Objects", "+d/REFS/x"]), ["d/Objects"]);
        assert_eq!(refused(&["+d/HEAD.", "+d/ob\u{200c}jects/x", "+D/refs/x"]), ["D/refs/x"]);
        assert_eq!(refused(&["d/HEAD", "d/objects/x", "d/refs/x", "+d/config"]), ["d/config"]);
    }

    #[test]
    fn unchanged_and_unrelated_files_are_not_included() {
        for tree in [
            &["+d/HEAD", "+d/objects/x"][..],
            &["+d/HEAD/x", "+d/objects/x", "+d/refs/x"],
            &["+d/HEAD", "+e/objects/x", "+d/refs/x"],
            &["+d/HEAD", "+d/commondir/x"],
            &["+d/HEAD", "+dobjects/x", "+d/e/refs/x", "+d/e/objects/x"],
            &["d/HEAD", "d/objects/x", "d/refs/x", "+e"],
            &["d/HEAD", "d/objects/x", "d/refs/x", "+dd/x"],
        ] {
            assert!(refused(tree).is_empty(), "{tree:?}");
        }
    }
}
