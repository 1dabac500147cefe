//! Whether one allowed path is within another, decided from the patterns alone.

use herma_core::contract::Pattern;

/// Patterns that match every path.
const EVERYTHING: [&str; 5] = ["*", "**", "/**", "**/*", "/*"];
/// Characters that mean more than themselves in a pattern.
const SPECIAL: [char; 5] = ['*', '?', '[', ']', '\\'];

/// Whether every path that `inner` allows is one that `outer` allows. `false` also if the patterns alone do not show it.
#[must_use]
pub fn pattern_within(outer: &Pattern, inner: &Pattern) -> bool {
    let (outer, inner) = (outer.as_str(), inner.as_str());
    if outer == inner || EVERYTHING.contains(&outer) {
        return true;
    }
    // A class can match a `/`, and an escape can hide one.
    if inner.contains(['[', '\\']) {
        return false;
    }
    let below = outer.strip_suffix("/**");
    let directory = below.unwrap_or(outer);
    // Without a `/` at its start or in its middle a pattern matches at any depth.
    let anchored = below.is_some() || directory.trim_end_matches('/').contains('/');
    let directory = directory.strip_prefix('/').unwrap_or(directory).trim_end_matches('/');
    if !anchored || directory.is_empty() || directory.contains(SPECIAL) {
        return false;
    }
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    inner.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(outer: &str, inner: &str) -> bool {
        pattern_within(&outer.parse().unwrap(), &inner.parse().unwrap())
    }

    #[test]
    fn a_part_of_a_directory_is_within_it() {
        for (outer, inner) in [
            ("src/**", "src/a/**"),
            ("src/**", "/src/a.rs"),
            ("/src/**", "src/*.rs"),
            ("**", "docs/**"),
            ("docs/a", "docs/a/b.md"),
            ("*.md", "*.md"),
        ] {
            assert!(within(outer, inner), "{outer} {inner}");
        }
        for (outer, inner) in [
            ("src/**", "**"),
            ("src/**", "src"),
            ("src/**", "src/"),
            ("src/**", "srcs/**"),
            ("src/**", "lib/src/**"),
            ("src", "src/a"),
            ("src/*", "src/a/b"),
            ("*.md", "a.md"),
            ("a*/**", "ab/**"),
        ] {
            assert!(!within(outer, inner), "{outer} {inner}");
        }
    }
}
