//! Names of files through links: a file behind a link is also found under the link's name.

use std::collections::BTreeSet;
use std::ops::Bound;

use herma_core::RepoPath;

use crate::symlinks;
use crate::tree_facts::TreeFacts;

/// The number of such names that are checked: links can produce an unbounded number.
const MAX_ALIASES: usize = 100_000;

/// A name that a link gives to a path.
pub(crate) struct Alias<'a> {
    /// The change to report: the link, or the path behind it.
    pub(crate) changed: &'a RepoPath,
    pub(crate) link: &'a RepoPath,
    pub(crate) name: RepoPath,
}

/// Every such name that a change made, or behind which something changed; else the link at which they became too many.
pub(crate) fn find(facts: &TreeFacts) -> Result<Vec<Alias<'_>>, &RepoPath> {
    let changed: BTreeSet<&RepoPath> = facts.changes.iter().map(|change| &change.path).collect();
    let all: BTreeSet<&RepoPath> = facts.paths.iter().collect();
    let mut found = Vec::new();
    for link in facts.links.keys() {
        // One that leads out of the tree is no name for anything in it, and judged for that.
        let Ok(target) = symlinks::follow(link, &facts.links) else { continue };
        let is_new = changed.contains(link);
        for (path, rest) in below(if is_new { &all } else { &changed }, &target) {
            let Some(name) = RepoPath::new([link.as_bytes(), b"/", rest].concat()) else { continue };
            if found.len() == MAX_ALIASES {
                return Err(link);
            }
            found.push(Alias { changed: if is_new { link } else { path }, link, name });
        }
    }
    Ok(found)
}

/// The paths below a directory, each with what follows the directory; the root's has no name.
fn below<'a>(paths: &BTreeSet<&'a RepoPath>, directory: &[u8]) -> Vec<(&'a RepoPath, &'a [u8])> {
    let start = if directory.is_empty() { Vec::new() } else { [directory, b"/"].concat() };
    let first = RepoPath::new(directory);
    let from = first.as_ref().map_or(Bound::Unbounded, Bound::Included);
    paths
        .range::<RepoPath, _>((from, Bound::Unbounded))
        .skip_while(|path| path.as_bytes() < &start[..])
        .map_while(|path| Some((*path, path.as_bytes().strip_prefix(&start[..])?)))
        .collect()
}
