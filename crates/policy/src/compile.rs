//! Policies as people write them, compiled into one set.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::sync::LazyLock;

use cedar_policy::{
    CedarSchemaError, Effect, Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator,
};
use herma_core::Digest;
use serde_json::json;

use crate::problem::{PolicyProblem, Problems};
use crate::shipped::{SCHEMA, SHIPPED};

/// The prefix of the rules that herma ships.
const OWN: &str = "herma.";

/// A file of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its name in messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A rule, as decisions name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// Its `@id`.
    pub id: String,
    /// Its file.
    pub file: String,
    /// Whether it forbids.
    pub forbids: bool,
    /// Its `@reason`, for the model to read.
    pub reason: Option<String>,
}

/// All policies that hold: those that herma ships, and the operator's.
#[derive(Clone, Debug)]
pub struct Policies {
    pub(crate) schema: Schema,
    pub(crate) set: PolicySet,
    rules: BTreeMap<String, PolicyRule>,
    digest: Digest,
}

impl Policies {
    /// Compiles what herma ships with the operator's files. Nothing is left out: one file that is wrong makes all of it wrong.
    pub fn compile(operators: &[PolicyFile]) -> Result<Self, Problems> {
        let mut made = Self { digest: digest(operators), ..Self::shipped().clone()? };
        let mut problems = Vec::new();
        for file in operators {
            made.add(file, false, &mut problems);
        }
        if problems.is_empty() { Ok(made) } else { Err(Problems(problems)) }
    }

    /// Compiles the shipped policies, which are the same for all and take a while, in a thread. A later caller
    /// waits at most for the rest.
    pub fn compile_ahead() {
        std::thread::spawn(Self::shipped);
    }

    fn shipped() -> &'static Result<Self, Problems> {
        static SHIPPED_ONES: LazyLock<Result<Policies, Problems>> = LazyLock::new(|| {
            let (schema, _) = Schema::from_cedarschema_str(SCHEMA).map_err(|error| broken_schema(&error))?;
            let (set, rules) = (PolicySet::new(), BTreeMap::new());
            let mut made = Policies { schema, set, rules, digest: digest(&[]) };
            let mut problems = Vec::new();
            for (name, text) in SHIPPED {
                let file = PolicyFile { name: name.to_owned(), text: text.to_owned() };
                made.add(&file, true, &mut problems);
            }
            if problems.is_empty() { Ok(made) } else { Err(Problems(problems)) }
        });
        &SHIPPED_ONES
    }

    /// The digest over everything that decides: the schema, herma's rules, the operator's.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The rules, by their names.
    pub fn rules(&self) -> impl Iterator<Item = &PolicyRule> {
        self.rules.values()
    }

    pub(crate) fn rule(&self, id: &PolicyId) -> Option<&PolicyRule> {
        let id: &str = id.as_ref();
        self.rules.get(id)
    }

    fn add(&mut self, file: &PolicyFile, own: bool, problems: &mut Vec<PolicyProblem>) {
        let PolicyFile { name, text } = file;
        let set = match PolicySet::from_str(text) {
            Ok(set) => set,
            Err(errors) => {
                return problems.extend(errors.iter().map(|error| PolicyProblem::of(name, text, error)));
            }
        };
        let checked = Validator::new(self.schema.clone()).validate(&set, ValidationMode::Strict);
        let wrong: Vec<_> =
            checked.validation_errors().map(|error| PolicyProblem::of(name, text, error)).collect();
        let doubtful = checked.validation_warnings().map(|warning| PolicyProblem::of(name, text, warning));
        let before = problems.len();
        problems.extend(wrong.into_iter().chain(doubtful));
        if set.templates().next().is_some() {
            problems.push(PolicyProblem::at(
                name,
                text,
                None,
                "it holds a template, and nothing fills it in",
            ));
        }
        if problems.len() > before {
            return;
        }
        for policy in set.policies() {
            if let Err(problem) = self.add_rule(file, own, policy) {
                problems.push(problem);
            }
        }
    }

    fn add_rule(&mut self, file: &PolicyFile, own: bool, policy: &Policy) -> Result<(), PolicyProblem> {
        let wrong = |what: String| PolicyProblem::at(&file.name, &file.text, place(&file.text, policy), what);
        let forbids = policy.effect() == Effect::Forbid;
        let id = policy.annotation("id").unwrap_or_default();
        if !is_name(id) {
            return Err(wrong("a rule has no name".to_owned())
                .with_help("write `@id(\"...\")` before it, of letters, digits, `.`, `_` and `-`"));
        }
        if !own && id.starts_with(OWN) {
            return Err(wrong(format!("the rule `{id}` has a name of herma's own"))
                .with_help("names that begin with `herma.` are those of the rules that herma ships"));
        }
        if !own && !forbids {
            return Err(wrong(format!("the rule `{id}` permits"))
                .with_help("herma's own rules say what is permitted; an operator's can only forbid"));
        }
        let rule = PolicyRule {
            id: id.to_owned(),
            file: file.name.clone(),
            forbids,
            reason: policy.annotation("reason").filter(|reason| !reason.is_empty()).map(str::to_owned),
        };
        if let Some(there) = self.rules.get(id) {
            return Err(wrong(format!("the name `{id}` is taken by a rule in {}", there.file)));
        }
        let named = policy.new_id(PolicyId::new(id));
        self.set.add(named).map_err(|error| wrong(error.to_string()))?;
        self.rules.insert(id.to_owned(), rule);
        Ok(())
    }
}

/// The position of a rule in its file: Cedar keeps its text as it was written.
fn place(text: &str, policy: &Policy) -> Option<usize> {
    text.find(policy.to_string().as_str())
}

fn is_name(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn digest(operators: &[PolicyFile]) -> Digest {
    let operators: BTreeMap<&str, &str> =
        operators.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
    let operators: Vec<_> = operators.into_iter().collect();
    Digest::of(json!(["herma.governance/v1", SCHEMA, SHIPPED, operators]).to_string().as_bytes())
}

fn broken_schema(error: &CedarSchemaError) -> Problems {
    Problems(vec![PolicyProblem::of("schema.cedarschema", SCHEMA, error)])
}
