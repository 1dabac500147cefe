//! Matches paths against one of herma's own tables of patterns. The tables are long and every run needs them, so they are
//! looked up by name instead of being compiled to globs.

use std::collections::HashMap;

use crate::glob::PathKind;

/// A table of patterns: `NAME`, `NAME/` for directories only, a name with one `*`, and `**/DIRECTORY/NAME`. All match at any
/// depth, with ASCII letters of either case.
#[derive(Debug)]
pub(crate) struct PatternTable {
    names: HashMap<Vec<u8>, Vec<PatternEntry>>,
    starred: Vec<(Vec<u8>, Vec<u8>, PatternEntry)>,
    /// The last name of a pattern with several, with what comes before it.
    paths: HashMap<Vec<u8>, Vec<(Vec<u8>, PatternEntry)>>,
}

#[derive(Clone, Copy, Debug)]
struct PatternEntry {
    pattern: &'static str,
    directory: bool,
}

impl PatternTable {
    pub(crate) fn new(patterns: impl IntoIterator<Item = &'static str>) -> Self {
        let mut table = Self { names: HashMap::new(), starred: Vec::new(), paths: HashMap::new() };
        for pattern in patterns {
            let small = pattern.to_ascii_lowercase();
            let (text, directory) = match small.strip_suffix('/') {
                Some(text) => (text, true),
                None => (&*small, false),
            };
            let entry = PatternEntry { pattern, directory };
            let text = text.strip_prefix("**/").unwrap_or(text);
            let bytes = |text: &str| text.as_bytes().to_vec();
            if let Some((above, name)) = text.rsplit_once('/') {
                table.paths.entry(bytes(name)).or_default().push((bytes(above), entry));
            } else if let Some((before, after)) = text.split_once('*') {
                table.starred.push((bytes(before), bytes(after), entry));
            } else {
                table.names.entry(bytes(text)).or_default().push(entry);
            }
        }
        table
    }

    /// The pattern that matches this very path, regardless of the directories above it.
    pub(crate) fn hit(&self, path: &[u8], kind: PathKind) -> Option<&'static str> {
        let path = path.to_ascii_lowercase();
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], &path[..]),
        };
        let fits = |entry: &&PatternEntry| !entry.directory || kind == PathKind::Directory;
        let named = self.names.get(name).into_iter().flatten().find(fits);
        let below = || {
            let ends = |(end, _): &&(Vec<u8>, PatternEntry)| {
                let before = above.strip_suffix(&end[..]);
                before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
            };
            self.paths.get(name).into_iter().flatten().filter(ends).map(|(_, entry)| entry).find(fits)
        };
        let starred = || {
            let matches = |(before, after, _): &&(Vec<u8>, Vec<u8>, PatternEntry)| {
                name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
            };
            self.starred.iter().filter(matches).map(|(_, _, entry)| entry).find(fits)
        };
        named.or_else(below).or_else(starred).map(|entry| entry.pattern)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::forbidden_paths;
    use crate::glob::{Globs, LetterCase};
    use crate::verification_files;

    fn all() -> Vec<&'static str> {
        forbidden_paths::built_in()
            .iter()
            .map(|path| path.pattern)
            .chain(verification_files::patterns())
            .collect()
    }

    #[test]
    fn every_pattern_has_a_shape_that_the_table_knows() {
        for pattern in all() {
            let text = pattern.strip_suffix('/').unwrap_or(pattern);
            let text = text.strip_prefix("**/").unwrap_or(text);
            let stars = text.matches('*').count();
            let has_path = text.contains('/');
            assert!(stars <= 1 && !(has_path && stars > 0) && !text.contains(['?', '[', '\\']), "{pattern}");
            assert!(!has_path || pattern.starts_with("**/"), "{pattern}");
        }
    }

    /// A path near the patterns: names of them, and others, with letters of either case.
    fn path() -> impl Strategy<Value = String> {
        let names: Vec<String> = all()
            .iter()
            .flat_map(|pattern| pattern.split('/').map(|name| name.replace('*', "x")).collect::<Vec<_>>())
            .filter(|name| !name.is_empty() && name != "xx")
            .chain(["a", "src", "x.y"].map(str::to_owned))
            .collect();
        let name = (proptest::sample::select(names), any::<bool>(), any::<bool>()).prop_map(
            |(name, upper, more)| {
                let name = if upper { name.to_uppercase() } else { name };
                if more { format!("{name}z") } else { name }
            },
        );
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
    }

    proptest! {
        #[test]
        fn the_table_matches_what_the_globs_match(path in path(), directory in any::<bool>()) {
            let kind = if directory { PathKind::Directory } else { PathKind::Leaf };
            let table = PatternTable::new(all());
            let globs = Globs::compile(all(), LetterCase::Any).unwrap();
            let (found, expected) = (table.hit(path.as_bytes(), kind), globs.hit(path.as_bytes(), kind));
            prop_assert_eq!(found.is_some(), expected.is_some(), "{:?} {:?}", found, expected);
        }
    }
}
