//! `.herma/defaults.yaml` of a repository: it narrows what a person's defaults permit, and widens nothing.

use serde::Deserialize;
use serde_saphyr::Spanned;

use schemars::JsonSchema;

use super::{PartialLimits, WorkDefaults, check_commands};
use crate::admission::ModelRef;
use crate::contract::{Action, Pattern};
use crate::engine::EngineName;
use crate::environment::{DefinitionPositions, DefinitionRules, EnvironmentDefinition};
use crate::yaml::{self, BadYaml, Page};

/// The largest file of defaults.
pub const MAX_BYTES: u64 = 256 << 10;

const PAGE: Page = Page { part: "the repository's defaults", docs: "docs/settings.md" };

/// The file of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Narrowing {
    /// The paths that may change: each must be within those of the person's defaults.
    pub allowed_paths: Option<Vec<Pattern>>,
    /// Further forbidden paths.
    pub forbidden_paths: Vec<Pattern>,
    /// Further forbidden actions.
    pub forbidden_actions: Vec<Action>,
    /// Further verification commands.
    pub verify: Vec<String>,
    /// The environment, if the person keeps none for this repository. It adds no registry.
    pub environment: Option<EnvironmentDefinition>,
    /// The engine, if the person keeps none for this repository: enabled, and proven for stage 3.
    pub engine: Option<EngineName>,
    /// The model, if the person keeps none for this repository: admitted, as `PROVIDER/MODEL`.
    pub model: Option<ModelRef>,
    /// Limits, none above those of the person's defaults.
    pub limits: PartialLimits,
}

impl Narrowing {
    /// The values for which there is no flag.
    fn not_replaced_by(&self, flags: &WorkDefaults) -> Self {
        let values = self.clone();
        Self {
            allowed_paths: values.allowed_paths.filter(|_| flags.allowed_paths.is_none()),
            verify: if flags.verify.is_none() { values.verify } else { Vec::new() },
            environment: values.environment.filter(|_| flags.environment.is_none()),
            engine: values.engine.filter(|_| flags.engine.is_none()),
            model: values.model.filter(|_| flags.model.is_none()),
            limits: values.limits.without(&flags.limits),
            ..values
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Positions {
    allowed_paths: Vec<Spanned<String>>,
    environment: EnvironmentPositions,
    engine: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    limits: LimitPositions,
}

/// Each limit as it is written: a number or a text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LimitPositions {
    total: Option<Spanned<String>>,
    startup: Option<Spanned<String>>,
    idle: Option<Spanned<String>>,
    memory: Option<Spanned<String>>,
    tokens: Option<Spanned<String>>,
    usd: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EnvironmentPositions {
    registries: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionAt {
    environment: DefinitionPositions,
}

/// The file of a repository with the places of its values.
pub struct PlacedNarrowing {
    /// The values.
    pub values: Narrowing,
    positions: Positions,
}

impl PlacedNarrowing {
    /// Reads the text of the file.
    pub fn parse(bytes: &[u8], rules: DefinitionRules<'_>) -> Result<Self, BadYaml> {
        let text = yaml::text(bytes, "a file of defaults", MAX_BYTES)?;
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self { values: Narrowing::default(), positions: Positions::default() });
        }
        let values: Narrowing = yaml::read(text, PAGE)?;
        // The same text was read without an error just now.
        let positions: Positions = yaml::read(text, PAGE).unwrap_or_default();
        if let Some(definition) = &values.environment {
            let at: DefinitionAt = yaml::read(text, PAGE).unwrap_or_default();
            definition.check(&at.environment, rules)?;
        }
        check_commands(values.verify.iter())?;
        Ok(Self { values, positions })
    }

    /// The flags over the person's defaults, narrowed by this file. `own` are the person's defaults for the repository, `lower` is
    /// what holds where they say nothing. A value of this file that a flag replaces is not looked at. `within` decides whether
    /// every path of the second pattern is one of the first.
    pub fn apply(
        &self,
        flags: WorkDefaults,
        own: WorkDefaults,
        lower: WorkDefaults,
        within: impl Fn(&Pattern, &Pattern) -> bool,
    ) -> Result<WorkDefaults, BadYaml> {
        let values = self.values.not_replaced_by(&flags);
        let without = own.clone().over(lower.clone());
        let known: Vec<&Pattern> = without.allowed_paths.iter().flatten().collect();
        for (at, path) in values.allowed_paths.iter().flatten().enumerate() {
            if !known.iter().any(|outer| within(outer, path)) {
                let place = self.positions.allowed_paths.get(at);
                return Err(widens(
                    place,
                    &format!("`{path}` is not within the allowed paths: {}", listed(&known)),
                ));
            }
        }
        if let Some((name, value, most)) = values.limits.first_above(&without.limits.complete()) {
            let place = self.positions.limits.named(name);
            return Err(widens(place, &format!("`limits.{name}` is {value}, and the limit is {most}")));
        }
        for (at, registry) in values.environment.iter().flat_map(|found| &found.registries).enumerate() {
            if !without.environment.iter().any(|known| known.registries.contains(registry)) {
                let place = self.positions.environment.registries.get(at);
                return Err(widens(place, &format!("the registry `{registry}` adds hosts")));
            }
        }
        let chosen = WorkDefaults {
            environment: own.environment.clone().or(values.environment),
            engine: own.engine.clone().or(values.engine),
            model: own.model.clone().or(values.model),
            limits: values.limits.over(own.limits),
            ..own
        };
        let mut narrowed = chosen.over(lower);
        narrowed.allowed_paths = values.allowed_paths.or(narrowed.allowed_paths);
        let commands = narrowed.verify.get_or_insert_default();
        for command in values.verify {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        Ok(flags.over(narrowed))
    }

    /// The error for an engine that may not be chosen here.
    #[must_use]
    pub fn engine_refused(&self, why: &str) -> BadYaml {
        widens(self.positions.engine.as_ref(), why)
    }

    /// The error for a model that may not be chosen here.
    #[must_use]
    pub fn model_refused(&self, why: &str) -> BadYaml {
        widens(self.positions.model.as_ref(), why)
    }
}

impl LimitPositions {
    fn named(&self, name: &str) -> Option<&Spanned<String>> {
        match name {
            "total" => self.total.as_ref(),
            "startup" => self.startup.as_ref(),
            "idle" => self.idle.as_ref(),
            "memory" => self.memory.as_ref(),
            "tokens" => self.tokens.as_ref(),
            _ => self.usd.as_ref(),
        }
    }
}

fn listed(names: &[&Pattern]) -> String {
    match names {
        [] => "there are none".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

fn widens(place: Option<&Spanned<String>>, problem: &str) -> BadYaml {
    let bad = BadYaml::new(problem, "the file of a repository can only narrow what your own defaults permit");
    match place.map(|value| value.referenced) {
        Some(place) if place.line() > 0 => bad.at(place.line(), place.column()),
        _ => bad,
    }
}
