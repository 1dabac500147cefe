//! The compiled patterns against the simple ones, over random patterns and trees.

use herma_core::report::PathRule;
use herma_rules::{PathRules, pattern_within};
use proptest::prelude::*;

use crate::facts::{Tree, terms};
use crate::reference;

fn pattern() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a", "b", "A", "ab", ".", "*", "?", "**", "[ab]", "[!a]", "[^b]", "[a-c]", "\\a", "\\*", "-", "é",
    ]);
    let part = prop_oneof![
        3 => prop::collection::vec(token, 1..4).prop_map(|tokens| tokens.concat()),
        1 => Just("**".to_owned()),
    ];
    (any::<bool>(), prop::collection::vec(part, 1..5), any::<bool>()).prop_map(|(start, parts, end)| {
        format!("{}{}{}", if start { "/" } else { "" }, parts.join("/"), if end { "/" } else { "" })
    })
}

fn usable(pattern: &str) -> bool {
    // The contract refuses `.` and `..` as names, the rules three stars in a row.
    let names = |part: &str| part != "." && part != "..";
    pattern.split('/').all(names) && !pattern.contains("***")
}

fn a_path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[abA]{1,3}",
        1 => prop::sample::select(vec!["*", "a-b", "a.b", "é", "\\", "c"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(name, 1..5).prop_map(|names| names.join("/"))
}

fn edited(paths: &[String]) -> Tree {
    paths.iter().fold(Tree::default(), Tree::edit)
}

/// The paths that break a rule, each once, in order.
fn with(rule: PathRule, tree: &Tree, terms: &herma_core::contract::Terms) -> Vec<String> {
    tree.broken(terms).into_iter().filter(|(_, broken)| *broken == rule).map(|(path, _)| path).collect()
}

/// The paths for which `judged` holds, each once, in order.
fn those(paths: &[String], judged: impl Fn(&str) -> bool) -> Vec<String> {
    let mut those: Vec<String> = paths.iter().filter(|path| judged(path)).cloned().collect();
    those.sort();
    those.dedup();
    those
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn allowed_is_what_the_simple_matcher_allows(
        patterns in prop::collection::vec(pattern().prop_filter("usable", |p| usable(p)), 1..4),
        paths in prop::collection::vec(a_path(), 1..12),
    ) {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let not_allowed = those(&paths, |path| !patterns.iter().any(|p| reference::covers(p, path)));
        prop_assert_eq!(with(PathRule::NotAllowed, &edited(&paths), &terms(&patterns, &[], &[])), not_allowed);
    }

    #[test]
    fn forbidden_is_what_the_simple_matcher_forbids_in_any_case(
        patterns in prop::collection::vec(pattern().prop_filter("usable", |p| usable(p)), 1..4),
        paths in prop::collection::vec(a_path(), 1..12),
    ) {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let forbidden = those(&paths, |path| {
            patterns.iter().any(|p| reference::covers(&p.to_lowercase(), &path.to_lowercase()))
        });
        prop_assert_eq!(with(PathRule::Forbidden, &edited(&paths), &terms(&["**"], &patterns, &[])), forbidden);
    }

    #[test]
    fn a_pattern_within_another_allows_no_path_more(
        outer in pattern().prop_filter("usable", |p| usable(p)),
        below in pattern().prop_filter("usable", |p| usable(p)),
        paths in prop::collection::vec(a_path(), 1..12),
    ) {
        let directory = outer.trim_end_matches("/**").trim_end_matches('/');
        for inner in [below.clone(), format!("{directory}/{}", below.trim_start_matches('/')), format!("{directory}/**")] {
            for outer in [outer.clone(), format!("{directory}/**")].iter().filter(|p| usable(p)) {
                let (Ok(wide), Ok(narrow)) = (outer.parse(), inner.parse()) else { continue };
                if usable(&inner) && pattern_within(&wide, &narrow) {
                    let more = those(&paths, |path| reference::covers(&inner, path) && !reference::covers(outer, path));
                    prop_assert_eq!(more, Vec::<String>::new(), "{} {}", outer, inner);
                }
            }
        }
    }

    #[test]
    fn no_pattern_and_no_path_is_too_strange(
        text in "[ab*?!^\\[\\]\\\\/.é-]{1,12}",
        bytes in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        let (Ok(_), Some(at)) = (text.parse::<herma_core::contract::Pattern>(), herma_core::RepoPath::new(bytes))
        else { return Ok(()) };
        if let Ok(rules) = PathRules::compile(&terms(&[&text], &[&text], &[&text])) {
            let judged = rules.judge(&Tree::default().add(at.as_bytes()).0);
            prop_assert!(judged.iter().all(|violation| violation.path == at));
        }
    }
}
