//! The people that a proof needs.

use herma_core::Stage;
use herma_harness::Installation;
use herma_trust::Approver;

/// The people that a proof needs from stage 4 on.
#[derive(Clone, Copy, Default)]
pub struct People<'a> {
    /// The approver who grants the approvals of the proving runs and gives their outcomes.
    pub approver: Option<&'a Approver>,
    /// The approver who requests them, where separation of duties needs another person for that.
    pub asker: Option<&'a Approver>,
}

impl People<'_> {
    /// Why these people cannot approve anything together. It is checked before the first run.
    pub(crate) fn conflict(&self, installation: &Installation, stage: Stage) -> Option<String> {
        if !stage.needs_approval() || !installation.operator.separation_of_duties {
            return None;
        }
        match (self.approver, self.asker) {
            (_, None) => {
                Some("separation_of_duties is on: name who asks for the approvals with --asker".to_owned())
            }
            (Some(approver), Some(asker)) if approver.name() == asker.name() => Some(format!(
                "separation_of_duties is on: `{}` asks for the approvals and cannot grant them as well",
                asker.name()
            )),
            _ => None,
        }
    }
}
