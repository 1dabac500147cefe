//! From a file's bytes to an environment definition, or to an error that points at the line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::EnvironmentDefinition;
use crate::name_characters::refused_as;
pub use crate::yaml::BadYaml as BadEnvironment;
use crate::yaml::{self, Page, nearest};

/// The largest file of a definition.
pub const MAX_BYTES: u64 = 256 << 10;

const PAGE: Page = Page { part: "the environment", docs: "docs/environments.md" };

/// Variables that herma sets itself: a definition that sets one would leave the sandbox's layout.
const RESERVED_VARIABLES: [&str; 10] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
];
/// The prefix of herma's own variables.
const OWN_PREFIX: &str = "HERMA_";

/// The rules for a definition that depend on values of other crates.
#[derive(Clone, Copy)]
pub struct DefinitionRules<'a> {
    /// The names of the known tools, with those of the operator.
    pub tools: &'a [&'a str],
    /// The name of the rule by which a text is a secret.
    pub secret_rule: &'a dyn Fn(&str) -> Option<&'static str>,
}

/// The values whose positions errors need.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct DefinitionPositions {
    tools: Vec<Spanned<String>>,
    fetch: Vec<Spanned<String>>,
    setup: Vec<Spanned<String>>,
    env: BTreeMap<String, Spanned<String>>,
    cache: Vec<Spanned<String>>,
    registries: Vec<Spanned<String>>,
}

/// A value that is refused.
struct BadValue {
    place: Option<Location>,
    problem: String,
    expected: String,
}

impl EnvironmentDefinition {
    /// Reads a definition from a file's bytes.
    pub fn parse(bytes: &[u8], rules: DefinitionRules<'_>) -> Result<Self, BadEnvironment> {
        let text = yaml::text(bytes, "an environment", MAX_BYTES)?;
        let definition: Self = yaml::read(text, PAGE)?;
        // The same text was read without an error just now.
        let positions: DefinitionPositions = yaml::read(text, PAGE).unwrap_or_default();
        definition.check(&positions, rules).map(|()| definition)
    }

    /// Checks the values, each with its place.
    pub(crate) fn check(
        &self,
        positions: &DefinitionPositions,
        rules: DefinitionRules<'_>,
    ) -> Result<(), BadEnvironment> {
        let found = check_tools(self, positions, rules)
            .and_then(|()| check_commands("fetch", &self.fetch, &positions.fetch))
            .and_then(|()| check_commands("setup", &self.setup, &positions.setup))
            .and_then(|()| check_variables(self, positions, rules))
            .and_then(|()| check_network(self, positions));
        found.map_err(|BadValue { place, problem, expected }| {
            let bad = BadEnvironment::new(problem, expected);
            match place {
                Some(place) if place.line() > 0 => bad.at(place.line(), place.column()),
                _ => bad,
            }
        })
    }
}

fn place<T>(spanned: Option<&Spanned<T>>) -> Option<Location> {
    spanned.map(|value| value.referenced)
}

fn check_tools(
    definition: &EnvironmentDefinition,
    positions: &DefinitionPositions,
    rules: DefinitionRules<'_>,
) -> Result<(), BadValue> {
    for (at, tool) in definition.tools.iter().enumerate() {
        let problem = |problem: String, expected: String| {
            Err(BadValue { place: place(positions.tools.get(at)), problem, expected })
        };
        if !rules.tools.contains(&tool.name()) {
            let expected = match nearest(tool.name(), rules.tools) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected one of: {}", rules.tools.join(", ")),
            };
            return problem(format!("unknown tool `{}`", tool.name()), expected);
        }
        if definition.tools.iter().take(at).any(|earlier| earlier.name() == tool.name()) {
            let expected = "expected each tool once".to_owned();
            return problem(format!("the tool `{}` is listed twice", tool.name()), expected);
        }
    }
    Ok(())
}

fn check_commands(key: &str, commands: &[String], positions: &[Spanned<String>]) -> Result<(), BadValue> {
    let bad = commands.iter().position(|command| command.trim().is_empty() || command.contains('\0'));
    bad.map_or(Ok(()), |at| {
        Err(BadValue {
            place: place(positions.get(at)),
            problem: format!("`{key}` has an empty command at position {}", at + 1),
            expected: "expected a shell command, like `npm ci --ignore-scripts`".to_owned(),
        })
    })
}

fn check_variables(
    definition: &EnvironmentDefinition,
    positions: &DefinitionPositions,
    rules: DefinitionRules<'_>,
) -> Result<(), BadValue> {
    for (name, value) in &definition.env {
        let problem = |problem: String, expected: &str| {
            let expected = expected.to_owned();
            Err(BadValue { place: place(positions.env.get(name)), problem, expected })
        };
        let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !sound {
            let shown = name.escape_debug();
            return problem(format!("`{shown}` is not the name of a variable"), "expected a name like `CI`");
        }
        let upper = name.to_ascii_uppercase();
        if RESERVED_VARIABLES.contains(&upper.as_str()) || upper.starts_with(OWN_PREFIX) {
            return problem(format!("herma sets the variable `{name}` itself"), "expected another name");
        }
        if value.chars().any(|c| c == '\0' || refused_as(c).is_some()) {
            let expected = "expected visible characters";
            return problem(format!("the value of `{name}` has an invisible character"), expected);
        }
        // The name decides too: `API_KEY: abc` is found by its name.
        let rule = (rules.secret_rule)(value).or_else(|| (rules.secret_rule)(&format!("{name}=\"{value}\"")));
        if let Some(rule) = rule {
            let expected = "an environment has no secrets: no command of it sees a key";
            return problem(format!("the value of `{name}` looks like a secret ({rule})"), expected);
        }
    }
    Ok(())
}

/// Commands that need a registry fail late and unclearly without one.
fn check_network(
    definition: &EnvironmentDefinition,
    positions: &DefinitionPositions,
) -> Result<(), BadValue> {
    for (at, registry) in definition.registries.iter().enumerate() {
        if definition.registries.iter().take(at).any(|earlier| earlier == registry) {
            return Err(BadValue {
                place: place(positions.registries.get(at)),
                problem: format!("the registry `{registry}` is listed twice"),
                expected: "expected each registry once".to_owned(),
            });
        }
    }
    for (at, pattern) in definition.cache.iter().enumerate() {
        if pattern.as_str().split('/').any(|part| part == ".git") {
            return Err(BadValue {
                place: place(positions.cache.get(at)),
                problem: format!("`{pattern}` in `cache` is in git's own directory"),
                expected: "expected a directory that setup makes, like `.vite`".to_owned(),
            });
        }
    }
    Ok(())
}
