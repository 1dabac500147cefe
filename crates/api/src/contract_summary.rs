//! A contract's digest, and what would block a run of it.

use herma_core::contract::{ModelChoice, Risk, Target};
use herma_core::report::Admission;
use herma_core::{Contract, Stage};

use herma_harness::{Installation, router_config};

use crate::contract_file::ReadContract;
use crate::output::ContractOutput;

/// Summarizes a contract. `file` is its name in messages; with an installation it says what would block here.
pub fn contract_summary(
    read: &ReadContract,
    file: &str,
    installation: Option<&Installation>,
) -> Result<ContractOutput, serde_json::Error> {
    let Contract { terms, .. } = &read.contract;
    Ok(ContractOutput {
        schema: "herma.contract-check/v1",
        contract_id: terms.id.to_string(),
        contract_digest: read.contract.digest()?,
        title: terms.title.clone(),
        stage: terms.stage.into(),
        warnings: warnings(&read.contract, file, installation),
    })
}

fn warnings(contract: &Contract, file: &str, installation: Option<&Installation>) -> Vec<String> {
    let terms = &contract.terms;
    let mut warnings = Vec::new();
    if terms.verify.is_empty() {
        warnings.push("missing_test_command: `verify` names no command".to_owned());
    }
    if let Some(kind) = terms.destination.filter(|kind| !herma_destination::is_available(*kind)) {
        let name = kind.as_str();
        warnings.push(format!("destination_unready: this version of herma has no destination `{name}`"));
    }
    if let Target::Fixture(name) = &terms.target
        && herma_fixtures::find(name.as_str()).is_none()
    {
        warnings
            .push(format!("target_not_admitted: there is no fixture `{name}`; docs/fixtures.md lists them"));
    }
    if terms.risk == Risk::Critical {
        warnings.push("critical_repository: no contract with `risk: critical` runs".to_owned());
    }
    let stage = terms.stage;
    if stage == Stage::CandidateDefault {
        warnings.push(format!("stage_unproven: stage {stage} compares evidence; no contract runs there"));
    }
    if stage.needs_approval() {
        warnings.push(format!(
            "stage_unproven: unless the engine has proven every stage up to {stage}; see `herma ladder`"
        ));
        warnings.push(format!(
            "approval_void: unless a person approves it; ask with `herma approvals request {file} --reason TEXT`"
        ));
    }
    for need in &terms.needs {
        warnings.push(format!("engine_not_admitted: unless the engine has `{need}`; see `herma engines`"));
    }
    match &terms.model {
        Some(choice) => warnings.extend(model_warnings(choice, installation)),
        None => warnings.push(
            "provider_unavailable: with any engine that asks a model: the contract names none under `model`"
                .to_owned(),
        ),
    }
    warnings
}

/// The blockers that the model would lead to: known with an installation, and possible without.
fn model_warnings(choice: &ModelChoice, installation: Option<&Installation>) -> Vec<String> {
    let name = format!("{}/{}", choice.provider, choice.model);
    let Some(installation) = installation else {
        return vec![
            format!("model_not_admitted: unless `{name}` is admitted; see `herma admissions`"),
            "provider_unavailable: unless its provider is configured; see `herma models`".to_owned(),
        ];
    };
    let mut warnings = Vec::new();
    let found = installation.admissions().find_model(choice, &installation.admission_context());
    if found.status != Admission::Admitted {
        warnings.push(format!("model_not_admitted: {}; `herma admit model {name}`", found.detail));
    }
    let config = router_config(installation.home.root());
    if !matches!(&config, Ok(Some(config)) if config.upstreams.contains_key(choice.provider.as_str())) {
        let provider = &choice.provider;
        warnings.push(format!(
            "provider_unavailable: router.toml has no upstream `{provider}`; see `herma models`"
        ));
    }
    warnings
}
