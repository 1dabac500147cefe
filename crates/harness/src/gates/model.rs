//! The model: admitted, and its provider configured.

use herma_model::blocker::{Blocker, BlockerRecord};
use herma_model::decision::AdmissionSeen;
use herma_model::gate::Finding;

use super::{Case, Judged};

/// What was found of the model.
pub(super) struct ModelSeen {
    pub(super) admitted: Judged,
    pub(super) configured: Judged,
    pub(super) seen: Option<AdmissionSeen>,
}

pub(super) fn look(case: Case<'_>) -> ModelSeen {
    let Some(choice) = &case.order.contract.terms.model else {
        let none = || Ok(Finding::NotApplicable("the contract names no model".to_owned()));
        return ModelSeen { admitted: none(), configured: none(), seen: None };
    };
    let name = format!("{}/{}", choice.provider, choice.model);
    let installation = case.installation;
    let found = installation.admissions().find_model(choice, &installation.situation());
    let admitted = match found.blocker {
        None => Ok(Finding::Passed),
        Some(blocker) => Err(BlockerRecord {
            next_step: format!(
                "Write its admission with `herma admit model {name}` and have it signed, or remove `model` from the contract."
            ),
            ..blocker.because(found.detail.clone())
        }),
    };
    ModelSeen {
        admitted,
        configured: Err(Blocker::ProviderUnavailable.because(format!("`{name}` has no configured provider"))),
        seen: Some(AdmissionSeen {
            kind: "model".to_owned(),
            name,
            status: found.status,
            digest: found.digest,
        }),
    }
}
