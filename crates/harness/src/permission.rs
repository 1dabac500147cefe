//! The judgement of a tool call, in one place for hooks and for the agent's stream: by the policies, which cannot allow an action
//! that contract or admission forbid.

use std::collections::BTreeSet;

use herma_core::contract::Action;
use herma_core::tool::{ToolAction, ToolCall};
use herma_policy::{PolicyDecision, PolicyRequester};

use crate::context::RunContext;

/// The judgement of a tool call.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) call: ToolCall,
    pub(crate) decision: PolicyDecision,
    /// The actions of the call that contract or admission forbid.
    pub(crate) forbidden: BTreeSet<Action>,
}

/// Judges a tool call by the rules of the run.
pub(crate) fn judge(ctx: &RunContext<'_>, tool: String, command: String) -> Judgement {
    let asker = asker(ctx);
    let call = ToolCall { action: ToolAction::of_tool(&tool), tool, subject: command };
    let decision = ctx.policies.decide(&asker, &call);
    let forbidden = decision.does.iter().copied().filter(|action| asker.forbidden.contains(action)).collect();
    Judgement { call, decision, forbidden }
}

/// The run, as policies know it.
pub(crate) fn asker(ctx: &RunContext<'_>) -> PolicyRequester {
    let terms = &ctx.contract.terms;
    let forbidden =
        ctx.effective_rules().flat_map(|terms| herma_rules::actions::forbidden(terms, &Action::ALL));
    PolicyRequester {
        run: Some(ctx.plan.run_id),
        engine: ctx.plan.engine.clone(),
        contract: terms.id.to_string(),
        above: ctx.occasion.child_of.map(|parent| parent.lineage.clone()).unwrap_or_default(),
        stage: terms.stage,
        forbidden: forbidden.collect(),
        network: !terms.egress.is_empty(),
    }
}
