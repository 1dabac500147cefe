//! Every fixture for real: its verification fails on the tree as it is, and passes after its `fix`.

use herma_core::Contract;
use herma_core::engine::EngineResult;
use herma_engines::AgentEvent;
use herma_engines::fake::Script;
use herma_fixtures::{Fixture, all, find};
use ignore::gitignore::GitignoreBuilder;

use crate::place::{ScriptDir, Tree, changed};

/// Runs all verification commands; `Err` has what the first one that failed printed.
fn verify(fixture: &Fixture, place: &ScriptDir) -> Result<(), String> {
    let contract = Contract::parse(fixture.contract.as_bytes()).unwrap();
    for command in contract.terms.verify {
        let output = place.sh(&command);
        // 126 and 127 are the shell's own: then the command did not fail, it never ran.
        assert!(!matches!(output.status.code(), Some(126 | 127) | None), "{command}: {output:?}");
        if !output.status.success() {
            return Err(format!(
                "{command}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    Ok(())
}

fn fails_before_and_passes_after(name: &str) {
    let fixture = find(name).unwrap();
    assert!(verify(fixture, &ScriptDir::with(fixture)).is_err(), "{name}: there is nothing to fix");

    let place = ScriptDir::with(fixture);
    let before = place.snapshot();
    let played = place.play(fixture.script(Fixture::FIX).unwrap());
    assert_eq!(played.exit_code, 0, "{:?}", played.said);
    assert_eq!(played.said.last(), Some(&AgentEvent::Result(EngineResult::Completed)));
    only_allowed_paths_changed(fixture, &before, &place.snapshot());
    if let Err(why) = verify(fixture, &place) {
        panic!("{name}: {why}");
    }
}

fn only_allowed_paths_changed(fixture: &Fixture, before: &Tree, after: &Tree) {
    let mut allowed = GitignoreBuilder::new("");
    for pattern in Contract::parse(fixture.contract.as_bytes()).unwrap().terms.allowed_paths.as_slice() {
        allowed.add_line(None, pattern.as_str()).unwrap();
    }
    let allowed = allowed.build().unwrap();
    let changed = changed(before, after);
    assert!(!changed.is_empty());
    for path in changed {
        assert!(allowed.matched_path_or_any_parents(&path, false).is_ignore(), "{}: {path}", fixture.name);
    }
}

#[test]
fn string_slugify() {
    fails_before_and_passes_after("string-slugify");
}

#[test]
fn nested_config() {
    fails_before_and_passes_after("nested-config");
}

#[test]
fn rename_module() {
    fails_before_and_passes_after("rename-module");
}

#[test]
fn binary_logo() {
    fails_before_and_passes_after("binary-logo");
}

#[test]
fn odd_names() {
    fails_before_and_passes_after("odd-names");
}

#[test]
fn exec_script() {
    fails_before_and_passes_after("exec-script");
}

#[test]
fn python_totals() {
    fails_before_and_passes_after("python-totals");
}

#[test]
fn rust_median() {
    fails_before_and_passes_after("rust-median");
}

#[test]
fn every_fixture_has_its_own_test_above() {
    assert_eq!(all().len(), 8);
}

#[test]
fn every_script_parses() {
    for fixture in all() {
        for (name, yaml) in fixture.scripts {
            Script::parse(yaml.as_bytes()).unwrap_or_else(|e| panic!("{}/{name}: {e}", fixture.name));
        }
    }
}
