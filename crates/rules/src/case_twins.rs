//! Paths that differ only in how their names are spelled: on many machines only one of them can exist.

use std::collections::{BTreeMap, HashMap, HashSet};

use herma_core::RepoPath;

use crate::glob::{PathKind, prefixes};
use crate::names::fold_path;

/// Each of `added` that has a twin in the tree, with the twin. A directory above it counts like the path itself.
pub(crate) fn find<'a>(added: &[&'a RepoPath], tree: &[RepoPath]) -> Vec<(&'a RepoPath, RepoPath)> {
    // Only what was added is looked up, so that a large tree with few changes costs one pass and little memory.
    let folded: Vec<Vec<u8>> = added.iter().map(|path| fold_path(path.as_bytes())).collect();
    // By folded and then by exact spelling: almost always there is one, which is no twin of itself.
    let mut wanted: HashMap<&[u8], BTreeMap<&'a [u8], Vec<&'a RepoPath>>> = HashMap::new();
    for (path, folded) in added.iter().copied().zip(&folded) {
        for (spelled, folded) in parts(path.as_bytes()).zip(parts(folded)) {
            wanted.entry(folded).or_default().entry(spelled).or_default().push(path);
        }
    }
    let mut twins = Vec::new();
    let mut seen = HashSet::new();
    for other in if added.is_empty() { &[] } else { tree } {
        let folded = fold_path(other.as_bytes());
        for (spelled, folded) in parts(other.as_bytes()).zip(parts(&folded)) {
            for (own, paths) in wanted.get(folded).into_iter().flatten() {
                if *own != spelled && seen.insert((*own, spelled)) {
                    twins.extend(paths.iter().filter_map(|path| Some((*path, RepoPath::new(spelled)?))));
                }
            }
        }
    }
    twins.sort();
    // One twin says enough about a path.
    twins.dedup_by_key(|(path, _)| *path);
    twins
}

/// The directories above a path and the path itself.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    prefixes(path, PathKind::Leaf).map(|(prefix, _)| prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twins(added: &[&str], rest: &[&str]) -> Vec<String> {
        let paths = |texts: &[&str]| texts.iter().map(|t| RepoPath::new(*t).unwrap()).collect::<Vec<_>>();
        let added = paths(added);
        let tree = [added.clone(), paths(rest)].concat();
        find(&added.iter().collect::<Vec<_>>(), &tree).iter().map(|(a, b)| format!("{a} {b}")).collect()
    }

    #[test]
    fn files_and_directories_have_twins() {
        assert_eq!(twins(&["readme.md"], &["README.md"]), ["readme.md README.md"]);
        assert_eq!(twins(&["Src/new.rs"], &["src/old.rs"]), ["Src/new.rs src"]);
        assert_eq!(twins(&["SRC"], &["src/old.rs"]), ["SRC src"]);
        assert_eq!(twins(&["straße/x"], &["STRASSE/y"]), ["straße/x STRASSE"]);
        assert_eq!(twins(&["a", "A"], &[]), ["A a", "a A"]);
        // The same name composed (NFC) and decomposed (NFD).
        assert_eq!(twins(&["caf\u{e9}"], &["cafe\u{301}"]), ["caf\u{e9} cafe\u{301}"]);
        assert_eq!(twins(&["\u{d55c}/x"], &["\u{1112}\u{1161}\u{11ab}/y"]).len(), 1);
        assert_eq!(twins(&["CAF\u{c9}"], &["cafe\u{301}/y"]).len(), 1);
    }

    /// Quadratic work would take sixteen times as long for four times as many files.
    #[test]
    fn many_new_files_in_deep_directories_cost_in_proportion() {
        let cost = |files: usize| {
            let dir = "some/deeply/nested/directory/of/the/tree/";
            let added: Vec<_> = (0..files).map(|n| RepoPath::new(format!("{dir}{n}")).unwrap()).collect();
            let fastest = (0..3).map(|_| {
                let started = std::time::Instant::now();
                assert!(find(&added.iter().collect::<Vec<_>>(), &added).is_empty());
                started.elapsed()
            });
            fastest.min().unwrap()
        };
        let (few, many) = (cost(1000), cost(4000));
        assert!(many < few * 10, "{few:?} for 1000 files, {many:?} for 4000");
    }

    #[test]
    fn an_identical_name_is_no_case_twin() {
        assert!(twins(&["src/new.rs"], &["src/old.rs", "src2/new.rs"]).is_empty());
        assert!(twins(&[], &["a", "A"]).is_empty());
    }
}
