//! The contract that `herma contract new` and `herma init` start from.

use std::fmt::Write as _;

use super::fields::{ContractId, ModelChoice, Target};
use crate::environment::{EnvironmentDefinition, History, SetupOn};

/// The parts of a first contract that were found by looking at the repository, or that a person has given.
#[derive(Clone, Debug, Default)]
pub struct FirstContract<'a> {
    /// The task in one line.
    pub title: Option<&'a str>,
    /// The task in full.
    pub brief: Option<&'a str>,
    /// The model.
    pub model: Option<&'a ModelChoice>,
    /// The paths that may change; examples if there are none.
    pub allowed_paths: &'a [String],
    /// The commands that run the tests; an example if there are none.
    pub verify: &'a [String],
    /// The environment, if the project needs one.
    pub environment: Option<&'a EnvironmentDefinition>,
}

/// A contract to fill in. It parses as it is, so that a person changes a working file.
#[must_use]
pub fn template(id: &ContractId, target: &Target) -> String {
    first_contract(id, target, &FirstContract::default())
}

/// The same, with the parts that were found.
#[must_use]
pub fn first_contract(id: &ContractId, target: &Target, found: &FirstContract<'_>) -> String {
    let (target, stage) = match target {
        Target::Fixture(name) => (format!("{{ fixture: {name} }}"), 2),
        Target::Repo { repo, base } => {
            let base = base.as_ref().map(|b| format!(", base: {b}")).unwrap_or_default();
            (format!("{{ repo: {repo}{base} }}"), 3)
        }
    };
    let listed = |found: &[String], example: &str| match found {
        [] => example.to_owned(),
        found => list(found),
    };
    let allowed_paths = listed(found.allowed_paths, "[\"src/**\"]");
    let verify = listed(found.verify, "[\"sh test.sh\"]");
    let environment = found.environment.map(environment).unwrap_or_default();
    let title = found.title.map_or_else(|| "say in one line what is wrong".to_owned(), quoted);
    let brief = found.brief.unwrap_or(
        "Say what the agent should do, as you would say it to a colleague who has never seen the code.",
    );
    // A reader of a brief knows what to look for.
    let success = match found.brief {
        None => "success: [say what a reader of the result should find]\n",
        Some(_) => "",
    };
    let model = found.model.map(|model| {
        format!("model: {{ provider: {}, model: {} }}\n", quoted(&model.provider), quoted(&model.model))
    });
    let model = model.unwrap_or_default();
    format!(
        "---\n\
         id: {id}\n\
         title: {title}\n\
         target: {target}\n\
         stage: {stage}\n\
         allowed_paths: {allowed_paths:<17} # gitignore-style; deny wins over allow\n\
         forbidden_paths: []              # added to the built-in list (docs/contract.md)\n\
         verify: {verify:<24} # must exit with 0 on a fresh checkout with the patch\n\
         {environment}\
         {success}\
         risk: low\n\
         {model}\
         limits: {{ total: 20m, startup: 60s, idle: 5m }}\n\
         ---\n\
         {brief}\n"
    )
}

/// The keys of an environment that are not their defaults.
pub(super) fn environment(definition: &EnvironmentDefinition) -> String {
    let mut text = String::from(
        "environment:                     # tools and packages for the tests (docs/environments.md)\n",
    );
    let mut put = |key: &str, values: Vec<String>| {
        if !values.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {key}:{}", block(&values));
        }
    };
    put("tools", definition.tools.iter().map(ToString::to_string).collect());
    put("fetch", definition.fetch.clone());
    put("setup", definition.setup.clone());
    put("registries", definition.registries.iter().map(ToString::to_string).collect());
    let inputs = definition.inputs.iter().flatten();
    put("inputs", inputs.map(|input| input.as_str().to_owned()).collect());
    put("cache", definition.cache.iter().map(|path| path.as_str().to_owned()).collect());
    if !definition.env.is_empty() {
        let each = definition.env.iter().map(|(name, value)| format!("{name}: {}", quoted(value)));
        let _ = writeln!(text, "  env: {{ {} }}", each.collect::<Vec<_>>().join(", "));
    }
    if definition.setup_on == SetupOn::Inputs {
        text.push_str("  setup_on: inputs\n");
    }
    if definition.rebuild {
        text.push_str("  rebuild: true\n");
    }
    if let History::Depth(commits) = definition.history {
        let _ = writeln!(text, "  history: {commits}");
    } else if definition.history == History::Full {
        text.push_str("  history: full\n");
    }
    if text.lines().count() == 1 {
        return "environment: {}                  # the tests run before the agent starts, too\n".to_owned();
    }
    text
}

/// Commands are long: one a line.
fn block(values: &[String]) -> String {
    let all = list(values);
    if all.len() <= 80 {
        return format!(" {all}");
    }
    let lines: Vec<String> = values.iter().map(|value| format!("\n    - {}", quoted(value))).collect();
    lines.concat()
}

pub(super) fn list(values: &[String]) -> String {
    let each: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", each.join(", "))
}

/// A text in double quotes: JSON's escapes are those of YAML too.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
