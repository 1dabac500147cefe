//! The decision about one tool call, or about one child run.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{
    Authorizer, Context, Decision as CedarDecision, Entities, Entity, EntityId, EntityTypeName, EntityUid,
    Request, RestrictedExpression as Value,
};
use herma_core::contract::Action;
use herma_core::engine::EngineName;
use herma_core::tool::{CHILD_TOOL, MAX_SUBJECT_BYTES, ToolAction, ToolAnswer, ToolCall};
use herma_core::{RunId, Stage};
use herma_rules::actions::CommandActions;

use crate::compile::{Policies, PolicyRule};

/// The requesting run.
#[derive(Clone, Debug)]
pub struct PolicyRequester {
    /// Its id; `None` for a hypothetical request.
    pub run: Option<RunId>,
    /// Its engine.
    pub engine: EngineName,
    /// The name of its contract.
    pub contract: String,
    /// The engine and the contract of each parent run. Their restrictions apply too: otherwise an agent could use a
    /// child, whose contract it names as it likes.
    pub above: Vec<(EngineName, String)>,
    /// Its stage.
    pub stage: Stage,
    /// Its forbidden actions.
    pub forbidden: BTreeSet<Action>,
    /// Whether its contract names a host.
    pub network: bool,
}

/// A child run that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRun {
    /// Its engine.
    pub engine: EngineName,
    /// The name of its contract.
    pub contract: String,
}

/// The decision, and the rules that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    /// Whether the call may be made.
    pub allowed: bool,
    /// The rules that decided; none where nothing permits it, or it could not be decided.
    pub rules: Vec<String>,
    /// The actions of the call, as herma reads it.
    pub does: Vec<Action>,
    /// Why not; why it may, where it may.
    pub reason: String,
}

impl PolicyDecision {
    /// The message for the agent.
    #[must_use]
    pub fn answer(&self) -> ToolAnswer {
        ToolAnswer { allowed: self.allowed, reason: self.reason.clone() }
    }

    fn no(does: Vec<Action>, reason: impl Into<String>) -> Self {
        Self { allowed: false, rules: Vec::new(), does, reason: reason.into() }
    }
}

impl Policies {
    /// Decides about a tool call. A call that cannot be decided is denied.
    #[must_use]
    pub fn decide(&self, asker: &PolicyRequester, call: &ToolCall) -> PolicyDecision {
        if call.subject.len() > MAX_SUBJECT_BYTES || call.tool.len() > MAX_SUBJECT_BYTES {
            return too_long();
        }
        if call.subject.trim().is_empty() {
            return PolicyDecision::no(Vec::new(), "nothing says what it is about");
        }
        // The subject of a call on files is their names.
        let read = match call.action {
            ToolAction::Write | ToolAction::Read => CommandActions { actions: Vec::new(), complete: true },
            _ => herma_rules::actions::classify(&call.subject),
        };
        let does = read.actions;
        let forbidden: Vec<&str> = does
            .iter()
            .filter(|action| asker.forbidden.contains(action))
            .map(|action| action.as_str())
            .collect();
        let mut decision = self
            .by_rules(asker, PolicyResource::Call(call), does.clone())
            .unwrap_or_else(|why| unasked(does, &why));
        // The contract's forbidden actions do not depend on any rule.
        if decision.allowed && !forbidden.is_empty() {
            decision.allowed = false;
            decision.reason = format!("the contract forbids it ({})", forbidden.join(", "));
        }
        // An unread part may be forbidden.
        if decision.allowed && !read.complete {
            return PolicyDecision::no(
                decision.does,
                "it is nested too deeply, or has too many words, to be read",
            );
        }
        decision
    }

    /// Decides about a child run. A run that cannot be decided is denied.
    #[must_use]
    pub fn decide_child(&self, asker: &PolicyRequester, child: &ChildRun) -> PolicyDecision {
        if child.contract.len() > MAX_SUBJECT_BYTES {
            return too_long();
        }
        self.by_rules(asker, PolicyResource::Child(child), Vec::new())
            .unwrap_or_else(|why| unasked(Vec::new(), &why))
    }

    fn by_rules(
        &self,
        asker: &PolicyRequester,
        about: PolicyResource<'_>,
        does: Vec<Action>,
    ) -> Result<PolicyDecision, String> {
        let (entities, request) = self.question(asker, about, &does)?;
        let response = Authorizer::new().is_authorized(&request, &self.set, &entities);
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(error.to_string());
        }
        let allowed = response.decision() == CedarDecision::Allow;
        let mut rules: Vec<&PolicyRule> =
            response.diagnostics().reason().filter_map(|id| self.rule(id)).collect();
        rules.sort_by(|one, other| one.id.cmp(&other.id));
        let named: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        let reason = if rules.is_empty() {
            format!("no rule permits `{}` at stage {}", about.action(), asker.stage)
        } else if allowed {
            format!("permitted by {}", named.join(", "))
        } else {
            let why: Vec<String> = rules.iter().map(|rule| why(rule)).collect();
            why.join("; ")
        };
        let rules = rules.into_iter().map(|rule| rule.id.clone()).collect();
        Ok(PolicyDecision { allowed, rules, does, reason })
    }

    fn question(
        &self,
        asker: &PolicyRequester,
        about: PolicyResource<'_>,
        does: &[Action],
    ) -> Result<(Entities, Request), String> {
        let text = |text: &str| Value::new_string(text.to_owned());
        let words = |words: &mut dyn Iterator<Item = &Action>| {
            Value::new_set(words.map(|action| text(action.as_str())).collect::<Vec<_>>())
        };
        let mut above_run = HashSet::new();
        for (engine, contract) in asker
            .above
            .iter()
            .map(|(engine, contract)| (engine, contract))
            .chain([(&asker.engine, &asker.contract)])
        {
            above_run.extend([uid("Engine", engine.as_str())?, uid("Contract", contract)?]);
        }
        let run = uid("Run", &asker.run.map_or_else(|| "-".to_owned(), |run| run.to_string()))?;
        let of_run = HashMap::from([
            ("stage".to_owned(), Value::new_long(i64::from(u8::from(asker.stage)))),
            ("forbidden".to_owned(), words(&mut asker.forbidden.iter())),
            ("network".to_owned(), Value::new_bool(asker.network)),
        ]);
        let (tool, subject) = about.tool_and_subject();
        let of_resource = HashMap::from([
            ("tool".to_owned(), text(tool)),
            ("subject".to_owned(), text(subject)),
            ("does".to_owned(), words(&mut does.iter())),
        ]);
        let resource = uid(about.kind(), "-")?;
        let above_resource = about.lies_in()?;
        // A child may have its parent's engine, and each is there once.
        let above: HashSet<EntityUid> = above_run.union(&above_resource).cloned().collect();
        let mut all = vec![
            Entity::new(run.clone(), of_run, above_run).map_err(said)?,
            Entity::new(resource.clone(), of_resource, above_resource).map_err(said)?,
        ];
        all.extend(above.into_iter().map(|above| Entity::new_no_attrs(above, HashSet::new())));
        let entities = Entities::from_entities(all, Some(&self.schema)).map_err(said)?;
        let action = uid("Action", about.action().as_str())?;
        let request =
            Request::new(run, action, resource, Context::empty(), Some(&self.schema)).map_err(said)?;
        Ok((entities, request))
    }
}

/// The requested resource.
#[derive(Clone, Copy)]
enum PolicyResource<'a> {
    Call(&'a ToolCall),
    Child(&'a ChildRun),
}

impl<'a> PolicyResource<'a> {
    fn action(self) -> ToolAction {
        match self {
            Self::Call(call) => call.action,
            Self::Child(_) => ToolAction::Spawn,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Call(_) => "Call",
            Self::Child(_) => "Child",
        }
    }

    fn tool_and_subject(self) -> (&'a str, &'a str) {
        match self {
            Self::Call(call) => (&call.tool, &call.subject),
            Self::Child(child) => (CHILD_TOOL, &child.contract),
        }
    }

    fn lies_in(self) -> Result<HashSet<EntityUid>, String> {
        match self {
            Self::Call(_) => Ok(HashSet::new()),
            Self::Child(ChildRun { engine, contract }) => {
                Ok(HashSet::from([uid("Engine", engine.as_str())?, uid("Contract", contract)?]))
            }
        }
    }
}

fn too_long() -> PolicyDecision {
    PolicyDecision::no(Vec::new(), format!("it is longer than the {MAX_SUBJECT_BYTES} bytes that are judged"))
}

fn unasked(does: Vec<Action>, why: &str) -> PolicyDecision {
    PolicyDecision::no(does, format!("herma's policy could not be asked: {why}"))
}

/// The message of a forbidding rule for the model.
fn why(rule: &PolicyRule) -> String {
    let reason = rule.reason.as_deref().unwrap_or("the operator's policy forbids it");
    format!("{reason} (rule {})", rule.id)
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind: EntityTypeName = kind.parse().map_err(said)?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
