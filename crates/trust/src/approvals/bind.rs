//! The binding of an approval: everything that the approval is about.

use herma_core::approval::Binding;
use herma_core::contract::Terms;
use herma_core::decision::Purpose;
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::{Contract, Digest};
use herma_rules::policy_digest;
use serde_json::json;

/// The parts of a binding, besides the rules.
pub struct BindingInput<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// The digest of the contract.
    pub contract_digest: Digest,
    /// The engine.
    pub engine: &'a EngineName,
    /// The digest of the engine.
    pub engine_digest: Digest,
    /// The target by its name, never by its path.
    pub target: String,
    /// The digest of the record that admits it.
    pub target_admission: Option<Digest>,
    /// The commit that the run starts from, or for a fixture the digest of its files.
    pub base: String,
    /// Work or proof.
    pub purpose: Purpose,
    /// The destination.
    pub destination: DestinationKind,
    /// The container image, where there is one.
    pub image: Option<String>,
    /// The digest of the policies for tool calls, herma's and the operator's.
    pub governance_digest: Digest,
    /// The digest of everything that the run may reach: by the contract, the installation and grants.
    pub egress_digest: Digest,
}

/// Everything that an approval of this would be a yes to.
#[must_use]
pub fn bind(input: &BindingInput<'_>) -> Binding {
    let terms = &input.contract.terms;
    Binding {
        contract_id: terms.id.clone(),
        contract_digest: input.contract_digest,
        engine: input.engine.clone(),
        engine_digest: input.engine_digest,
        model: model_line(terms),
        target: input.target.clone(),
        target_admission: input.target_admission,
        base: input.base.clone(),
        purpose: input.purpose,
        stage: terms.stage,
        destination: input.destination,
        image: input.image.clone(),
        policy_digest: rules(input.governance_digest),
        egress_digest: input.egress_digest,
    }
}

/// The digest over all rules: those for paths and actions, and those for tool calls.
fn rules(governance: Digest) -> Digest {
    Digest::of(json!(["herma.rules/v1", policy_digest(), governance]).to_string().as_bytes())
}

/// Every model that the contract names, in one line: `provider/model, fallback: a, b, auxiliary: c`.
fn model_line(terms: &Terms) -> Option<String> {
    let choice = terms.model.as_ref()?;
    let more = |what: &str, models: &[String]| match models {
        [] => String::new(),
        models => format!(", {what}: {}", models.join(", ")),
    };
    let (fallback, auxiliary) = (more("fallback", &choice.fallback), more("auxiliary", &choice.auxiliary));
    Some(format!("{}/{}{fallback}{auxiliary}", choice.provider, choice.model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_policy_for_tool_calls_is_another_policy() {
        let policies = |files: &[herma_policy::PolicyFile]| {
            rules(herma_policy::Policies::compile(files).unwrap().digest())
        };
        let text = "@id(\"a\") forbid (principal, action == Action::\"fetch\", resource);".to_owned();
        let own = herma_policy::PolicyFile { name: "own.cedar".to_owned(), text };
        assert_ne!(policies(&[]), policies(&[own]));
        assert_ne!(policies(&[]), policy_digest());
    }
}
