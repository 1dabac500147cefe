//! Looks at a repository and proposes its environment, its test commands and the paths that an agent may change, each with a
//! sentence that says why.

mod files;
mod go;
mod hints;
mod java;
mod native;
mod node;
mod others;
mod python;
mod rust;
mod shell;

use std::collections::{BTreeMap, HashSet};

use herma_core::environment::{EnvironmentDefinition, Registry, SetupOn};
use herma_core::visible::visible_line;

pub use files::RepositoryFiles;

/// A proposal for a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The environment.
    pub definition: EnvironmentDefinition,
    /// The commands that run the project's tests.
    pub verify: Vec<String>,
    /// The paths that an agent may change.
    pub allowed_paths: Vec<String>,
    /// Why: one sentence for each decision.
    pub reasons: Vec<String>,
    /// Findings that were not used, for a person to look at.
    pub questions: Vec<String>,
}

/// The contribution of one ecosystem.
#[derive(Clone, Debug, Default)]
struct Part {
    tools: Vec<String>,
    registries: Vec<Registry>,
    fetch: Vec<String>,
    setup: Vec<String>,
    /// Whether setup needs no file but the inputs.
    setup_on_inputs: bool,
    cache: Vec<String>,
    env: BTreeMap<String, String>,
    verify: Vec<String>,
    allowed_paths: Vec<String>,
    reasons: Vec<String>,
    questions: Vec<String>,
}

/// Directories of source and tests, in any ecosystem.
const SOURCE_DIRS: [&str; 16] = [
    "src", "lib", "app", "cmd", "internal", "pkg", "include", "source", "bin", "tests", "test", "spec", "t",
    "testing", "benches", "examples",
];
/// Source files at the root.
const ROOT_SOURCES: [&str; 12] = ["go", "py", "js", "mjs", "cjs", "ts", "c", "h", "cpp", "hpp", "rb", "php"];

type Detector = fn(&RepositoryFiles) -> Option<Part>;

/// Ecosystems with a manifest of their own. All that are found contribute.
const ECOSYSTEMS: [Detector; 8] = [
    python::detect,
    node::detect,
    rust::detect,
    go::detect,
    java::detect,
    others::ruby,
    others::php,
    others::dotnet,
];
/// Build tools that other ecosystems use too; the first that is found counts, if no ecosystem has tests.
const BUILD_TOOLS: [Detector; 3] = [native::cmake, native::autotools, native::make];

/// Proposes an environment for a repository.
#[must_use]
pub fn detect(files: &RepositoryFiles) -> Proposal {
    let mut parts: Vec<Part> = ECOSYSTEMS.iter().filter_map(|detector| detector(files)).collect();
    if parts.iter().all(|part| part.verify.is_empty()) {
        parts.extend(BUILD_TOOLS.iter().find_map(|detector| detector(files)));
    }
    let mut proposal = merged(parts);
    proposal.allowed_paths.extend(source_paths(files));
    let mut known = HashSet::new();
    proposal.allowed_paths.retain(|path| known.insert(path.clone()));
    if proposal.allowed_paths.is_empty() {
        proposal
            .questions
            .push("no directory of source was found: name the paths that may change".to_owned());
    }
    if proposal.verify.is_empty() {
        proposal.questions.push("no test command was found: write one into `verify`".to_owned());
    }
    proposal.questions.extend(hints::questions(files, &proposal.verify));
    // Sentences repeat names and commands of the repository, and are for a terminal.
    for sentence in proposal.reasons.iter_mut().chain(&mut proposal.questions) {
        *sentence = visible_line(sentence);
    }
    proposal
}

fn merged(parts: Vec<Part>) -> Proposal {
    let mut proposal = Proposal::default();
    let definition = &mut proposal.definition;
    // Setup of all parts runs on one tree.
    let all_on_inputs = parts.iter().all(|part| part.setup.is_empty() || part.setup_on_inputs);
    let has_setup = parts.iter().any(|part| !part.setup.is_empty());
    if all_on_inputs && has_setup {
        definition.setup_on = SetupOn::Inputs;
    }
    for part in parts {
        for tool in part.tools.iter().filter_map(|tool| tool.parse().ok()) {
            if !definition.tools.contains(&tool) {
                definition.tools.push(tool);
            }
        }
        for registry in part.registries {
            if !definition.registries.contains(&registry) {
                definition.registries.push(registry);
            }
        }
        definition.fetch.extend(part.fetch);
        definition.setup.extend(part.setup);
        definition.cache.extend(part.cache.iter().filter_map(|path| path.parse().ok()));
        definition.env.extend(part.env);
        proposal.verify.extend(part.verify);
        proposal.allowed_paths.extend(part.allowed_paths);
        proposal.reasons.extend(part.reasons);
        proposal.questions.extend(part.questions);
    }
    proposal
}

fn source_paths(files: &RepositoryFiles) -> Vec<String> {
    let dirs = SOURCE_DIRS.iter().filter(|dir| files.has_below(dir)).map(|dir| format!("{dir}/**"));
    let at_root = |ending: &&&str| {
        files
            .paths()
            .any(|path| !path.contains('/') && path.rsplit_once('.').is_some_and(|(_, end)| end == **ending))
    };
    let sources = ROOT_SOURCES.iter().filter(at_root).map(|ending| format!("/*.{ending}"));
    dirs.chain(sources).collect()
}
