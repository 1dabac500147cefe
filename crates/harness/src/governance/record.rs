//! The record of a judged tool call, and the sums over all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use herma_core::contract::Action;
use herma_core::event::{AskedBy, Permission, ToolEvaluated};
use herma_core::tool::{CHILD_TOOL, ToolAction, ToolCall};
use herma_policy::{ChildRun, PolicyDecision};

/// How much of one text an event holds.
const MAX_TEXT: usize = 64 << 10;

/// The source of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The agent reported it, whatever it did about it.
    Told,
    /// The agent asked in its dialogue with herma.
    Dialogue,
    /// The agent's hook asked.
    Hook,
}

impl Seen {
    /// Whether herma's answer reached the agent before the call.
    pub(crate) fn asked(self) -> bool {
        self != Self::Told
    }
}

/// The sums.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) asked: u64,
    pub(crate) denied: u64,
    /// How many child runs were refused.
    pub(crate) refused: u64,
    /// The forbidden actions that were attempted. A denied attempt counts.
    pub(crate) attempted: BTreeSet<Action>,
    /// Why something could not be written down.
    pub(crate) unwritten: Option<String>,
}

/// The event of a tool call. `allowed` is the answer to an agent that asked.
pub(crate) fn data(
    call: &ToolCall,
    decision: &PolicyDecision,
    forbidden: &BTreeSet<Action>,
    seen: Seen,
    allowed: bool,
) -> ToolEvaluated {
    let asked = seen.asked();
    ToolEvaluated {
        tool: bounded(call.tool.clone()),
        command: bounded(call.subject.clone()),
        action: Some(call.action),
        actions: decision.does.clone(),
        forbidden: forbidden.clone(),
        permission: asked.then(|| Permission::of(allowed)),
        rules: asked.then(|| decision.rules.clone()),
        asked_by: (seen == Seen::Hook).then_some(AskedBy::Hook),
        reason: (asked && !allowed).then(|| bounded(decision.reason.clone())),
        ..ToolEvaluated::default()
    }
}

/// The event of a child run that a herma inside asked for; `denied` is the reason why there is none.
pub(crate) fn child(child: Option<&ChildRun>, rules: &[String], denied: Option<&str>) -> ToolEvaluated {
    ToolEvaluated {
        tool: CHILD_TOOL.to_owned(),
        command: child.map_or_else(String::new, |child| child.contract.clone()),
        action: Some(ToolAction::Spawn),
        permission: Some(Permission::of(denied.is_none())),
        rules: Some(rules.to_vec()),
        asked_by: Some(AskedBy::Herma),
        engine: child.map(|child| child.engine.clone()),
        reason: denied.map(|why| bounded(why.to_owned())),
        ..ToolEvaluated::default()
    }
}

/// A text as an event holds it.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let more = text.len() - MAX_TEXT;
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        let _ = write!(text, " [{more} bytes more]");
    }
    text
}
