//! Whether an agent may do what it says or asks. This is the one place where that is judged: a policy that knows more than the
//! contract's forbidden actions is asked here.

use std::collections::BTreeSet;

use herma_model::contract::Action;

use crate::run::Run;

/// What herma makes of a tool call.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// What it would do to the world.
    pub(crate) actions: Vec<Action>,
    /// What of that is forbidden.
    pub(crate) forbidden: BTreeSet<Action>,
}

impl Judgement {
    /// Whether an agent that asks is told yes. The walls are around what is allowed too.
    pub(crate) fn allows(&self) -> bool {
        self.forbidden.is_empty()
    }
}

/// Judges a tool call by the rules that the run stands under.
pub(crate) fn judge(run: &Run<'_>, command: &str) -> Judgement {
    let actions = herma_policy::actions::classify(command);
    let forbidden =
        run.every_terms().flat_map(|terms| herma_policy::actions::forbidden(terms, &actions)).collect();
    Judgement { actions, forbidden }
}
