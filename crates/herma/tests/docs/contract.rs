//! The parts of `docs/contract.md` that the code says: keys, values, actions, forbidden paths.

use std::ops::RangeInclusive;

use herma_core::Contract;
use herma_core::contract::Action;
use herma_core::name_characters::REFUSED_IN_NAMES;
use herma_rules::forbidden_paths::{Lift, groups};
use herma_rules::verification_files::{DECIDING, PYTHON_LIBRARY, PYTHON_ROOTS, PYTHON_RUNNERS, SHADOWS};

use crate::generated::{head, row};
use crate::schema::{Key, Schema};

/// A contract that says every key, so that every key has an example.
const EXAMPLE: &str = include_str!("example.md");

/// The value that the example gives to a key.
fn example_of(key: &str) -> Option<(usize, &'static str)> {
    EXAMPLE.lines().enumerate().find_map(|(at, line)| Some((at, line.strip_prefix(key)?.strip_prefix(": ")?)))
}

/// The whole example, then a table of every key in the example's order.
pub(crate) fn keys() -> String {
    let mut keys = Schema::named("contract").keys();
    for key in &keys {
        assert!(example_of(&key.name).is_some(), "tests/docs/example.md does not say `{}`", key.name);
    }
    keys.sort_by_key(|key| example_of(&key.name).map(|(at, _)| at));
    let mut text = format!("```markdown\n{EXAMPLE}```\n\n");
    text += &head(&["key", "type", "default", "example", "meaning"]);
    for Key { name, kind, default, what } in keys {
        let example = example_of(&name).map(|(_, value)| format!("`{value}`")).unwrap_or_default();
        let default = default.unwrap_or_else(|| "required".to_owned());
        text += &row(&[&format!("`{name}`"), &kind, &default, &example, &what]);
    }
    text
}

/// The keys inside keys, and the words that can be chosen.
pub(crate) fn values() -> String {
    let schema = Schema::named("contract");
    let mut text = String::new();
    for (key, definition) in [("limits", "Limits"), ("model", "ModelChoice")] {
        text += &format!("`{key}`:\n\n{}", head(&["key", "type", "default", "meaning"]));
        for Key { name, kind, default, what } in schema.keys_in(definition) {
            let default = default.unwrap_or_else(|| "required".to_owned());
            text += &row(&[&format!("`{name}`"), &kind, &default, &what]);
        }
        text.push('\n');
    }
    for (key, definition) in [
        ("risk", "Risk"),
        ("destination", "DestinationKind"),
        ("toolchains", "Toolchain"),
        ("needs", "Capability"),
        ("expect_before", "ExpectBefore"),
    ] {
        text += &format!("`{key}`:\n\n{}", head(&["word", "meaning"]));
        for word in schema.words(definition) {
            text += &row(&[&format!("`{}`", word.word), &word.what]);
        }
        text.push('\n');
    }
    text
}

/// Every action, and whether it is forbidden by every contract.
pub(crate) fn actions() -> String {
    let mut text = head(&["action", "meaning", "forbidden"]);
    let built_in: Vec<String> = Action::BUILT_IN.iter().map(|action| written(*action)).collect();
    for word in Schema::named("contract").words("Action") {
        let forbidden = if built_in.contains(&word.word) { "always" } else { "where the contract says so" };
        text += &row(&[&format!("`{}`", word.word), &word.what, forbidden]);
    }
    text
}

fn written(action: Action) -> String {
    serde_json::to_value(action).unwrap().as_str().unwrap().to_owned()
}

/// The built-in forbidden paths, together by tool and reason.
pub(crate) fn forbidden_paths() -> String {
    let mut text = head(&["read by", "paths", "why", "can be lifted"]);
    for group in groups() {
        let lift = match group.lift {
            Lift::ByContract => "by `lift_paths`",
            Lift::Never => "never",
        };
        text += &row(&[&tool(group.tool, group.source), &codes(group.patterns), group.why, lift]);
    }
    text
}

/// The files that decide what verification does, by tool.
pub(crate) fn verification_files() -> String {
    let mut text = head(&["read by", "files", "why"]);
    for group in DECIDING {
        text += &row(&[&tool(group.tool, group.source), &codes(group.patterns), group.why]);
    }
    text
}

/// Files in place of a test runner.
pub(crate) fn runner_modules() -> String {
    let mut text = head(&["in the place of", "new files"]);
    let modules = |names: &str| codes(&names.split_whitespace().collect::<Vec<_>>());
    let roots: Vec<&str> =
        PYTHON_ROOTS.iter().map(|root| if root.is_empty() { "./" } else { root }).collect();
    let python = format!("modules and packages in {} named {}", codes(&roots), modules(PYTHON_RUNNERS));
    text += &row(&["Python's test runners and checkers", &python]);
    let library = format!(
        "the same with the name of a module of the standard library (of {})",
        PYTHON_LIBRARY.split_whitespace().count()
    );
    text += &row(&["what they load", &library]);
    for (tool, ends) in SHADOWS {
        text += &row(&[tool, &codes(ends)]);
    }
    text
}

fn tool(name: &str, source: &str) -> String {
    if name.is_empty() { String::new() } else { format!("[{name}]({source})") }
}

fn codes(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

/// The characters that no new name may have.
pub(crate) fn name_characters() -> String {
    let mut text = head(&["characters", "Unicode property", "code points"]);
    for class in REFUSED_IN_NAMES {
        let point = |c: char| format!("U+{:04X}", u32::from(c));
        let shown = |range: &RangeInclusive<char>| match (point(*range.start()), point(*range.end())) {
            (first, last) if first == last => first,
            (first, last) => format!("{first}..{last}"),
        };
        let points: Vec<String> = class.ranges.iter().map(shown).collect();
        text += &row(&[class.what, class.property, &points.join(", ")]);
    }
    text
}

#[test]
fn the_example_is_a_contract() {
    Contract::parse(EXAMPLE.as_bytes()).unwrap();
}
