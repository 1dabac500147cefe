//! Whether an agent may do what it says or asks. This is the one place where that is judged, for what an agent's hook asks as
//! for what is read in its stream: by the policies, under which the contract's forbidden actions are forbidden whatever they
//! say.

use std::collections::BTreeSet;

use herma_core::contract::Action;
use herma_core::tool::{ToolAction, ToolCall};
use herma_policy::{PolicyDecision, PolicyRequester};

use crate::run::Run;

/// What herma makes of a tool call.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) call: ToolCall,
    pub(crate) decision: PolicyDecision,
    /// What of that which it would do is forbidden by contract or admission.
    pub(crate) forbidden: BTreeSet<Action>,
}

/// Judges a tool call by the rules that the run stands under.
pub(crate) fn judge(run: &Run<'_>, tool: String, command: String) -> Judgement {
    let asker = asker(run);
    let call = ToolCall { action: ToolAction::of_tool(&tool), tool, subject: command };
    let decision = run.policies.decide(&asker, &call);
    let forbidden = decision.does.iter().copied().filter(|action| asker.forbidden.contains(action)).collect();
    Judgement { call, decision, forbidden }
}

/// The run, as policies know it.
pub(crate) fn asker(run: &Run<'_>) -> PolicyRequester {
    let terms = &run.contract.terms;
    let forbidden = run.every_terms().flat_map(|terms| herma_rules::actions::forbidden(terms, &Action::ALL));
    PolicyRequester {
        run: Some(run.plan.run_id),
        engine: run.plan.engine.clone(),
        contract: terms.id.to_string(),
        above: run.occasion.child_of.map(|parent| parent.lineage.clone()).unwrap_or_default(),
        stage: terms.stage,
        forbidden: forbidden.collect(),
        network: !terms.egress.is_empty(),
    }
}
