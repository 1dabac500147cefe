//! Checks statements of the pages about the repository: links, named files, items and tests, and the scripts.

use std::path::Path;

use regex::Regex;

use crate::pages;
use crate::transcripts::check_script;

#[test]
fn every_link_inside_the_repository_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut wrong = Vec::new();
    for page in pages::all() {
        let dir = pages::top().join(&page.path).parent().unwrap().to_owned();
        for found in link.captures_iter(&page.text) {
            let target = found[1].split('#').next().unwrap_or_default();
            let outside = target.contains("://") || target.is_empty();
            if !outside && !dir.join(target).exists() {
                wrong.push(format!("{}: {target}", page.path));
            }
        }
    }
    assert!(wrong.is_empty(), "these links lead nowhere:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_and_test_that_a_page_names_is_there() {
    let named = Regex::new(r"`((?:crates|docs|scripts|fuzz|\.ci)/[^`\s]*)`").unwrap();
    let mut wrong = Vec::new();
    for page in pages::all() {
        for found in named.captures_iter(&page.text) {
            if let Err(why) = is_there(&found[1]) {
                wrong.push(format!("{}: {why}", page.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The number of rows at the time of writing; a row is removed only together with the property it states.
const MIN_INVARIANTS: usize = 60;

#[test]
fn every_invariant_names_its_code_and_an_existing_test() {
    let page = pages::named("docs/invariants.md");
    let rows: Vec<&str> =
        page.text.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
    assert!(rows.len() >= MIN_INVARIANTS, "docs/invariants.md has only {} rows", rows.len());
    let path = Regex::new(r"`(crates/[^`\s]*)`").unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, code, tests] = cells[..] else { panic!("not three cells: {row}") };
        if !path.is_match(code) {
            wrong.push(format!("no code is named: {row}"));
        }
        let mut tests = path.captures_iter(tests).peekable();
        if tests.peek().is_none() {
            wrong.push(format!("no test is named: {row}"));
        }
        wrong.extend(tests.filter_map(|test| is_test(&test[1]).err()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A map that takes ten minutes to read.
const MAX_MAP_LINES: usize = 150;

#[test]
fn the_map_is_short_and_lists_every_crate() {
    let map = pages::named("ARCHITECTURE.md").text;
    assert!(map.lines().count() <= MAX_MAP_LINES, "ARCHITECTURE.md has more than {MAX_MAP_LINES} lines");
    for entry in std::fs::read_dir(pages::top().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(map.contains(&format!("`{name}`")), "ARCHITECTURE.md does not list the crate `{name}`");
    }
}

/// The number of terms that the glossary must explain.
const MIN_TERMS: usize = 40;

#[test]
fn every_term_of_the_glossary_names_an_item_that_its_file_declares() {
    let page = pages::named("docs/glossary.md");
    let rows: Vec<&str> =
        page.text.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
    assert!(rows.len() >= MIN_TERMS, "docs/glossary.md has only {} terms", rows.len());
    let item = Regex::new(r"`(crates/[^`\s]*::[^`\s]*)`").unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let code = row.trim_matches('|').rsplit(" | ").next().unwrap_or_default();
        if !item.is_match(code) {
            wrong.push(format!("no item is named: {row}"));
        }
        wrong.extend(item.captures_iter(code).filter_map(|found| is_there(&found[1]).err()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `PATH::NAME`, where `NAME` is a function below `#[test]` or an attribute macro for tests in that file.
fn is_test(named: &str) -> Result<(), String> {
    let (path, name) = named.split_once("::").ok_or_else(|| format!("{named} names no test"))?;
    let text = std::fs::read_to_string(pages::top().join(path)).map_err(|e| format!("{path}: {e}"))?;
    let unit =
        Regex::new(&format!(r"#\[(?:\w+::)?test\b[^\n]*\]\n(?:\s*#\[[^\n]*\]\n)*\s*(?:async )?fn {name}\b"))
            .unwrap();
    let property = Regex::new(&format!(r"(?s)proptest!.*#\[test\]\s*fn {name}\b")).unwrap();
    let found = unit.is_match(&text) || property.is_match(&text);
    found.then_some(()).ok_or_else(|| format!("{path} has no test {name}"))
}

/// `PATH`, or `PATH::NAME` for an item that it declares; a path with `*` or `<` is a shape, not a path.
fn is_there(named: &str) -> Result<(), String> {
    if named.contains(['*', '<']) {
        return Ok(());
    }
    let (path, item) = named.split_once("::").map_or((named, None), |(path, item)| (path, Some(item)));
    let file = pages::top().join(path);
    let Some(item) = item else {
        return file.exists().then_some(()).ok_or_else(|| format!("there is no {path}"));
    };
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{path}: {e}"))?;
    let declared = Regex::new(&format!(r"\b(fn|const|static|struct|enum|trait|type|mod) {item}\b")).unwrap();
    declared.is_match(&text).then_some(()).ok_or_else(|| format!("{path} has no {item}"))
}

#[test]
fn ci_runs_the_readmes_test_command_the_real_agents_and_health() {
    for script in ["scripts/test", "scripts/agents", "scripts/health", ".ci/run"] {
        check_script(&pages::top().join(script)).unwrap();
    }
    let ci = std::fs::read_to_string(pages::top().join(".ci/run")).unwrap();
    let is_code = |line: &&str| !line.starts_with('#') && !line.starts_with("set -") && !line.is_empty();
    let code: Vec<&str> = ci.lines().filter(is_code).collect();
    assert!(code[0].ends_with("/../scripts\""), "{code:?}");
    assert_eq!(code[1..], ["\"$scripts/test\"", "\"$scripts/agents\"", "exec \"$scripts/health\""]);
}

#[test]
fn the_test_command_runs_everything_that_it_says() {
    let script = std::fs::read_to_string(pages::top().join("scripts/test")).unwrap();
    for wanted in [
        "set -euo pipefail",
        "cargo fmt --all --check",
        "cargo clippy --workspace --all-targets --locked --quiet -- -D warnings",
        "cargo xtask architecture",
        "cargo xtask language",
        "cargo xtask commits",
        "cargo test --workspace --locked",
        "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps --locked",
        "cargo deny --locked check",
    ] {
        assert!(script.contains(wanted), "scripts/test does not run `{wanted}`");
    }
}

#[test]
fn the_license_is_the_one_that_cargo_names() {
    let license = std::fs::read_to_string(pages::top().join("LICENSE")).unwrap();
    assert!(license.contains("Apache License") && license.contains("Version 2.0, January 2004"));
    assert_eq!(env!("CARGO_PKG_LICENSE"), "Apache-2.0");
}

#[test]
fn every_page_below_docs_can_be_reached() {
    let pages = pages::all();
    let links = Regex::new(r"\]\(([^)#\s]+)").unwrap();
    for page in pages.iter().filter(|page| page.path.starts_with("docs/")) {
        let name = Path::new(&page.path).file_name().unwrap().to_str().unwrap();
        let links_here = |other: &&pages::Page| {
            other.path != page.path && links.captures_iter(&other.text).any(|l| l[1].ends_with(name))
        };
        assert!(pages.iter().any(|other| links_here(&other)), "no page links to {}", page.path);
    }
}
