//! Fuzzes the path rules.

use herma_core::contract::{Pattern, Patterns, Terms};
use herma_core::report::{ChangedFile, Entry, Mode, PathRule};
use herma_core::{Contract, RepoPath};
use herma_rules::PathRules;

/// The first three lines are the patterns of `allowed_paths`, `forbidden_paths` and `lift_paths`, separated by blanks;
/// the rest is a path. Whatever the patterns say, a deny wins and `.git` stays forbidden.
pub fn paths(input: &[u8]) {
    let mut lines = input.splitn(4, |b| *b == b'\n');
    let mut patterns = || patterns(lines.next().unwrap_or_default());
    let (allowed, forbidden, lifted) = (patterns(), patterns(), patterns());
    let Some(path) = RepoPath::new(lines.next().unwrap_or_default()) else { return };
    let Ok(allowed) = Patterns::try_from(allowed) else { return };
    let mut terms =
        Terms { allowed_paths: allowed, forbidden_paths: forbidden, lift_paths: lifted, ..terms() };
    let Ok(rules) = PathRules::compile(&terms) else { return };

    let entry = || Some(Entry { mode: Mode::File, id: "1".repeat(40) });
    let change = ChangedFile { path: path.clone(), old: None, new: entry() };
    let broken = |rules: &PathRules| {
        let violations = rules.judge_name(&change);
        assert!(violations.iter().all(|v| v.path == path && !v.detail.is_empty()), "{violations:?}");
        violations.iter().map(|v| v.rule).collect::<Vec<_>>()
    };
    let before = broken(&rules);
    assert_eq!(before.contains(&PathRule::UnprintableName), path.name_problem().is_some());
    if path.components().any(|name| name.eq_ignore_ascii_case(b".git")) {
        assert!(before.contains(&PathRule::Forbidden), "{path} is never lifted");
    }
    let Some(own) = spell_out(&path) else { return };
    terms.forbidden_paths.push(own.clone());
    terms.allowed_paths = Patterns::try_from(vec![own.clone()]).expect("one pattern");
    let rules = PathRules::compile(&terms).expect("a path that is spelled out is a pattern");
    let after = broken(&rules);
    assert!(!after.contains(&PathRule::NotAllowed), "`{own}` must allow {path}");
    assert!(after.contains(&PathRule::Forbidden), "`{own}` must forbid {path}: a deny wins over an allow");
}

fn patterns(line: &[u8]) -> Vec<Pattern> {
    let line = String::from_utf8_lossy(line);
    line.split(' ').filter_map(|text| text.parse().ok()).collect()
}

/// The pattern that matches this very path, where there is one: some names cannot be written in a contract.
fn spell_out(path: &RepoPath) -> Option<Pattern> {
    let text = std::str::from_utf8(path.as_bytes()).ok()?;
    let escape = |c: char| if r"*?[]\!#".contains(c) { format!("\\{c}") } else { c.to_string() };
    let pattern: String = text.chars().map(escape).collect();
    format!("/{pattern}").parse().ok()
}

fn terms() -> Terms {
    let text = b"---\nid: a\ntitle: b\ntarget: { fixture: c }\nstage: 2\nallowed_paths: [d]\n---\ne\n";
    Contract::parse(text).expect("a small contract").terms
}
