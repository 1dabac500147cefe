//! The built-in forbidden paths: one table that people can read, and from which the docs are made.

mod table;

use std::sync::LazyLock;

use self::table::GROUPS;
pub use self::table::Group;

/// One built-in forbidden path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenPath {
    /// A gitignore-style glob; letters of either case match each other.
    pub pattern: &'static str,
    /// Why an agent must not change it unasked.
    pub why: &'static str,
    /// Whether a contract's `lift_paths` can lift it.
    pub lift: Lift,
    /// Whether it also decides what verification does, where it is lifted.
    pub decides_verification: bool,
}

/// Whether a contract can lift a built-in forbidden path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lift {
    /// `lift_paths` lifts it where it names it.
    ByContract,
    /// Nothing lifts it.
    Never,
}

static BUILT_IN: LazyLock<Vec<ForbiddenPath>> = LazyLock::new(|| {
    let of_group = |group: &Group| {
        let Group { why, lift, decides_verification, .. } = *group;
        group.patterns.iter().map(move |&pattern| ForbiddenPath { pattern, why, lift, decides_verification })
    };
    GROUPS.iter().flat_map(of_group).collect()
});

/// Every built-in forbidden path.
#[must_use]
pub fn built_in() -> &'static [ForbiddenPath] {
    &BUILT_IN
}

/// The same, in groups by tool and reason.
#[must_use]
pub fn groups() -> &'static [Group] {
    GROUPS
}

/// Why a built-in pattern is forbidden.
pub(crate) fn why(pattern: &str) -> &'static str {
    built_in()
        .iter()
        .find(|path| path.pattern == pattern)
        .map_or("it is on the built-in list", |path| path.why)
}

/// The patterns of the built-in list that can, or cannot, be lifted.
pub(crate) fn patterns(lift: Lift) -> impl Iterator<Item = &'static str> {
    built_in().iter().filter(move |path| path.lift == lift).map(|path| path.pattern)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_pattern_is_unique() {
        let mut folded = BTreeSet::new();
        for path in built_in() {
            assert!(folded.insert(path.pattern.to_ascii_lowercase()), "{}", path.pattern);
        }
    }

    #[test]
    fn only_the_two_states_are_never_lifted() {
        assert_eq!(patterns(Lift::Never).collect::<Vec<_>>(), [".git", ".herma"]);
    }

    #[test]
    fn every_tool_specific_group_names_its_source() {
        for group in groups().iter().filter(|group| !group.tool.is_empty()) {
            assert!(group.source.starts_with("https://"), "{group:?}");
        }
    }
}
