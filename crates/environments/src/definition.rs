//! Reads an environment definition, with the table of tools and the secret scanner at hand.

use herma_core::environment::{BadEnvironment, DefinitionRules, EnvironmentDefinition};
use herma_evidence::secrets::scan;

use crate::tools::{OperatorTool, TOOLS};

/// The definition in a repository itself.
pub const REPOSITORY_FILE: &str = ".herma/environment.yaml";

/// Reads a definition from a file's bytes; `own` are the tools that the operator added.
pub fn parse(bytes: &[u8], own: &[OperatorTool]) -> Result<EnvironmentDefinition, BadEnvironment> {
    with_rules(own, |rules| EnvironmentDefinition::parse(bytes, rules))
}

/// Calls `check` with the rules for definitions on this machine.
pub fn with_rules<T>(own: &[OperatorTool], check: impl FnOnce(DefinitionRules<'_>) -> T) -> T {
    let known: Vec<&str> =
        TOOLS.iter().map(|row| row.name).chain(own.iter().map(|tool| tool.name.as_str())).collect();
    let secret_rule = |text: &str| scan(text.as_bytes()).first().map(|found| found.rule);
    check(DefinitionRules { tools: &known, secret_rule: &secret_rule })
}
