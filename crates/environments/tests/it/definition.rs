//! Definitions: what is accepted, and how each mistake is reported.

use herma_core::environment::{EnvironmentDefinition, History, Registry, SetupOn};
use herma_environments::definition::parse;

fn read(text: &str) -> Result<EnvironmentDefinition, String> {
    parse(text.as_bytes(), &[]).map_err(|bad| bad.to_string())
}

const FULL: &str = "\
tools: [node@22, python@3.12]
fetch: [\"npm ci --ignore-scripts\"]
setup: [\"npm rebuild\"]
setup_on: inputs
registries: [npm]
inputs: [\"package.json\", \"package-lock.json\"]
env: { CI: \"true\" }
cache: [\".vite\"]
rebuild: false
history: 50
";

#[test]
fn every_key_is_read() {
    let definition = read(FULL).unwrap();
    let tools: Vec<String> = definition.tools.iter().map(ToString::to_string).collect();
    assert_eq!(tools, ["node@22", "python@3.12"]);
    assert_eq!(definition.setup_on, SetupOn::Inputs);
    assert_eq!(definition.registries, [Registry::Npm]);
    assert_eq!(definition.history, History::Depth(50));
    assert_eq!(definition.env.get("CI").map(String::as_str), Some("true"));
    assert_eq!(read("history: full").unwrap().history, History::Full);
    assert_eq!(read("{}").unwrap(), EnvironmentDefinition::default());
}

#[test]
fn a_mistake_is_reported_with_its_position_and_a_suggestion() {
    let key = format!("np{}{}", "m_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY12aB");
    let secret = format!("tools: [node]\nenv:\n  REGISTRY: \"{key}\"\n");
    for (text, position, said) in [
        ("tools: [node]\nfetsh: []\n", "line 2, column 1: ", "did you mean `fetch`?"),
        ("tools: [node, pyton]\n", "line 1, column 15: ", "did you mean `python`?"),
        ("tools: [node@latest]\n", "line 1, column ", "not a version"),
        ("tools: [node@22.]\n", "line 1, column ", "not a version"),
        ("tools: [node, node@22]\n", "line 1, column 15: ", "twice"),
        ("inputs: [/etc/passwd]\n", "line 1, column ", "did you mean `etc/passwd`?"),
        ("inputs: [../other/package.json]\n", "line 1, column ", "`..`"),
        ("cache:\n  - ok\n  - a/../../b\n", "line 3, column ", "`..`"),
        ("cache: [\"**\"]\n", "line 1, column ", "every file"),
        ("registries: [nmp]\n", "line 1, column ", "did you mean `npm`?"),
        ("setup: [\"\"]\n", "line 1, column 9: ", "expected a shell command"),
        ("env: { PATH: /tmp }\n", "line 1, column 14: ", "herma sets"),
        ("env: { 1A: b }\n", "line 1, column ", "not the name of a variable"),
        ("history: some\n", "line 1, column ", "`full`"),
        ("rebuild: maybe\n", "line 1, column ", "`true` or `false`"),
        (&secret, "line 3, column 13: ", "npm_token"),
    ] {
        let bad = read(text).expect_err(text);
        assert!(bad.starts_with(position), "{text}: {bad}");
        assert!(bad.contains(said), "{text}: {bad}");
    }
    assert!(!read(&secret).unwrap_err().contains(&key), "the secret itself is not repeated");
}

#[test]
fn a_yaml_bomb_is_refused() {
    let bomb = "fetch: &a [x, x]\nsetup: [*a, *a, *a]\n";
    assert!(read(bomb).unwrap_err().contains("without anchors and aliases"));
    let deep = format!("tools: {}{}\n", "[".repeat(200), "]".repeat(200));
    assert!(read(&deep).is_err());
    let large = format!("# {}\n", "x".repeat(300 << 10));
    assert!(read(&large).unwrap_err().contains("at most"));
}

#[test]
fn the_digest_depends_on_the_meaning_alone() {
    let digest = |text: &str| read(text).unwrap().digest().unwrap();
    let one = digest("tools: [node]\nsetup: [make]\n");
    assert_eq!(
        one,
        digest("# a comment\nsetup: ['make']\ntools:\n  - node\nrebuild: false\nhistory: none\n")
    );
    assert_ne!(one, digest("tools: [node]\nsetup: [make all]\n"));
    assert_ne!(one, digest("tools: [node@22]\nsetup: [make]\n"));
}

#[test]
fn source_and_network_together_are_known() {
    assert!(read("fetch: [make deps]\ninputs: [\"**\"]\n").unwrap().has_source_and_network());
    assert!(!read("setup: [make deps]\ninputs: [\"**\"]\n").unwrap().has_source_and_network());
    assert!(!read("fetch: [make deps]\ninputs: [go.mod]\n").unwrap().has_source_and_network());
}
