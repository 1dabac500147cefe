//! Hints from configuration for other tools: dev containers, setup steps for agents, and the test steps of CI. A person compares
//! them with the proposal; nothing of them is run.

use serde_json::Value;

use super::RepositoryFiles;
use super::files::has_extension;

/// The most hints of one file, and of all files.
const MAX_HINTS: usize = 5;
const MAX_ALL_HINTS: usize = 50;
/// Parts of commands that run tests.
const TEST_WORDS: [&str; 11] = [
    "pytest",
    "tox",
    "nox",
    "npm test",
    "npm run test",
    "cargo test",
    "go test",
    "mvn",
    "gradle",
    "ctest",
    "make check",
];

/// Questions about what was found, for a repository whose proposal has these test commands.
pub(super) fn questions(files: &RepositoryFiles, verify: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let containers = [".devcontainer/devcontainer.json", ".devcontainer.json"];
    if let Some(path) = files.first(&containers) {
        let commands = dev_container_commands(&files.read(path).unwrap_or_default());
        found.extend(commands.iter().take(MAX_HINTS).map(|command| {
            format!("`{path}` runs `{command}` after the container is made: compare it with `setup`")
        }));
    }
    for path in files.below(".github/workflows").filter(|path| has_extension(path, &["yml", "yaml"])) {
        if found.len() >= MAX_ALL_HINTS {
            break;
        }
        let is_setup = path.contains("copilot-setup-steps");
        let commands = run_steps(&files.read(path).unwrap_or_default());
        for command in commands.iter().filter(|command| is_setup || is_test(command)).take(MAX_HINTS) {
            if !verify.contains(command) {
                let key = if is_setup { "setup" } else { "verify" };
                found.push(format!("`{path}` runs `{command}`: compare it with `{key}`"));
            }
        }
    }
    found
}

fn is_test(command: &str) -> bool {
    TEST_WORDS.iter().any(|word| command.contains(word))
}

fn dev_container_commands(text: &str) -> Vec<String> {
    // The file may have comments, which JSON has not.
    let plain: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let config: Value = serde_json::from_str(&plain).unwrap_or_default();
    let keys = ["onCreateCommand", "updateContentCommand", "postCreateCommand"];
    keys.iter().filter_map(|key| config.get(key)?.as_str().map(ToOwned::to_owned)).collect()
}

/// The commands of `run:` in a workflow: one line, or the lines of a block that are indented deeper.
fn run_steps(text: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    let mut block: Option<usize> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(outer) = block {
            if indent(line) > outer {
                found.push(line.trim().to_owned());
                continue;
            }
            block = None;
        }
        let key = line.trim_start().trim_start_matches("- ");
        if let Some(command) = key.strip_prefix("run:").map(str::trim) {
            match command {
                "|" | ">" | "|-" | ">-" => block = Some(indent(line)),
                command => found.push(command.to_owned()),
            }
        }
    }
    found
}
