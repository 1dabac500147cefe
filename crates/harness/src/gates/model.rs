//! The model: admitted, and its provider configured. So is every other model that the contract names.

use herma_core::admission::{CredentialSource, ModelAdmission};
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::{Contract, ModelChoice};
use herma_core::decision::{AdmissionSeen, Purpose};
use herma_core::engine::EngineName;
use herma_core::gate::Finding;
use herma_core::model_call::Endpoint;
use herma_core::report::Admission;
use herma_engines::Engine;
use herma_router::config::{BadConfig, Config, KeySource, UpstreamConfig};
use herma_router::endpoint::path_of;
use herma_trust::AdmissionFinding;

use super::{Case, Judged};
use crate::installation::Installation;
use crate::run_router::{self, ModelLink, RouterPlan};

/// The model that was found.
pub(super) struct ModelSeen {
    pub(super) admitted: Judged,
    pub(super) configured: Judged,
    pub(super) seen: Option<AdmissionSeen>,
    /// The plan of the run's router; none without a model.
    pub(super) plan: Option<RouterPlan>,
}

/// The admission of the contract's models, and the configuration that serves them.
struct Admitted {
    found: AdmissionFinding<ModelAdmission>,
    /// Why what is configured is not what was admitted.
    mismatch: Option<String>,
}

pub(super) fn look(case: Case<'_>) -> ModelSeen {
    let asks = case.installation.engines.get(&case.order.engine).and_then(Engine::asks);
    let Some(choice) = &case.order.contract.terms.model else {
        let none = || Ok(Finding::NotApplicable("the contract names no model".to_owned()));
        let configured = if asks.is_some() { Err(no_model(&case.order.engine)) } else { none() };
        return ModelSeen { admitted: none(), configured, seen: None, plan: None };
    };
    let name = format!("{}/{}", choice.provider, choice.model);
    // In a proof a script answers in place of a model; it is beside the contract in the proof's own directory.
    let rehearsed = case.occasion.purpose == Purpose::Proof;
    let config = run_router::router_config(if rehearsed {
        &case.order.contract_dir
    } else {
        case.installation.home.root()
    });
    let (configured, plan) = configured(case, asks, choice, &config);
    if rehearsed {
        let admitted = Ok(Finding::NotApplicable("a script answers in the place of the model".to_owned()));
        return ModelSeen { admitted, configured, seen: None, plan };
    }
    let known = config.as_ref().ok().and_then(Option::as_ref);
    let Admitted { found, mismatch } = find(case.installation, choice, known);
    let admitted = match (found.blocker, &mismatch) {
        (None, None) => Ok(Finding::Passed),
        (None, Some(why)) => Err(BlockerRecord {
            next_step: "Configure what was admitted, or admit what is configured and have it signed."
                .to_owned(),
            ..Blocker::ModelNotAdmitted.because(why)
        }),
        (Some(blocker), _) => Err(BlockerRecord {
            next_step: format!(
                "Write its admission with `herma admit model {name}` and have it signed, or remove `model` from the contract."
            ),
            ..blocker.because(found.detail.clone())
        }),
    };
    let status = if mismatch.is_some() { Admission::Mismatch } else { found.status };
    let seen = AdmissionSeen { kind: "model".to_owned(), name, status, digest: found.digest };
    ModelSeen { admitted, configured, seen: Some(seen), plan }
}

/// Whether the contract's model can be reached, by the API that the engine asks at.
fn configured(
    case: Case<'_>,
    asks: Option<Endpoint>,
    choice: &ModelChoice,
    config: &Result<Option<Config>, BadConfig>,
) -> (Judged, Option<RouterPlan>) {
    let plan = match config {
        Ok(Some(config)) => {
            let secrets = &case.installation.settings.secrets;
            RouterPlan::draw(config, &case.order.contract, choice, secrets).map_err(|bad| {
                let record = unavailable(bad.to_string());
                match bad.next_step() {
                    Some(next_step) => BlockerRecord { next_step, ..record },
                    None => record,
                }
            })
        }
        Ok(None) => Err(unavailable(format!(
            "`{}/{}` has no configured provider: there is no {}",
            choice.provider,
            choice.model,
            run_router::ROUTER_FILE
        ))),
        Err(bad) => Err(unavailable(run_router::in_words(bad))),
    };
    let plan = plan.and_then(|plan| match asks.filter(|endpoint| !plan.endpoints().contains(endpoint)) {
        None => Ok(plan),
        Some(endpoint) => Err(unavailable(format!(
            "`{}` asks at {}, and the upstream `{}` does not answer there",
            case.order.engine,
            path_of(endpoint),
            choice.provider
        ))),
    });
    match plan {
        Ok(plan) => (Ok(Finding::Passed), Some(plan)),
        Err(record) => (Err(record), None),
    }
}

fn no_model(engine: &EngineName) -> BlockerRecord {
    BlockerRecord {
        next_step:
            "Name the model under `model` in the contract; `herma models` lists those that are configured."
                .to_owned(),
        ..Blocker::ProviderUnavailable
            .because(format!("`{engine}` asks a model, and the contract names none"))
    }
}

fn unavailable(why: String) -> BlockerRecord {
    BlockerRecord {
        next_step: format!(
            "Configure the provider in {} in herma's home (`herma models` shows what is there), or remove `model` from the contract for an engine that needs none.",
            run_router::ROUTER_FILE
        ),
        ..Blocker::ProviderUnavailable.because(why)
    }
}

/// Whether every model that the contract names is admitted, as it is configured.
fn find(installation: &Installation, choice: &ModelChoice, config: Option<&Config>) -> Admitted {
    let (admissions, situation) = (installation.admissions(), installation.admission_context());
    let found = admissions.find_model(choice, &situation);
    if found.record.is_none() {
        return Admitted { found, mismatch: None };
    }
    let mismatch = ModelLink::all(choice).find_map(|link| {
        let alone = ModelChoice {
            provider: link.provider.to_owned(),
            model: link.model.to_owned(),
            fallback: Vec::new(),
            auxiliary: Vec::new(),
        };
        let record = admissions.find_model(&alone, &situation).record?;
        let why = is_another(&record, link, config.and_then(|config| link.upstream(config))?)?;
        Some(format!("`{}` is admitted {why}", link.name()))
    });
    Admitted { found, mismatch }
}

/// How what is configured differs from what was admitted: another one that speaks for the provider, or another kind of
/// credential.
fn is_another(record: &ModelAdmission, link: ModelLink<'_>, upstream: &UpstreamConfig) -> Option<String> {
    let speaks = upstream.provider.name();
    let bridged = match &record.runtime_provider {
        Some(named) => named.as_str() != speaks,
        // A provider of a name that herma knows serves its models itself, unless a bridge was admitted.
        None => ["openai", "anthropic"].contains(&link.provider) && link.provider != speaks,
    };
    if bridged {
        let admitted = record.runtime_provider.as_ref().map_or(link.provider, |named| named.as_str());
        return Some(format!("as served by `{admitted}`, and router.toml has `{speaks}` there"));
    }
    let key = upstream.provider.http().and_then(|http| http.key.as_ref());
    let configured = match key {
        None => CredentialSource::None,
        Some(KeySource::Environment(_)) => CredentialSource::Environment,
        Some(KeySource::File(_)) => CredentialSource::File,
        Some(KeySource::Keyring { .. }) => CredentialSource::Keychain,
    };
    let admitted = record.credential_source;
    // Credentials that a service issues reach the router in one of the other ways.
    let handed_out = admitted == CredentialSource::SecretStore && configured != CredentialSource::None;
    (admitted != configured && !handed_out).then(|| {
        let (admitted, configured) = (admitted.as_str(), configured.as_str());
        format!("with a credential from `{admitted}`, and router.toml has one from `{configured}`")
    })
}

/// Whether the contract's models are still admitted.
pub(super) fn still_admitted(installation: &Installation, contract: &Contract) -> Result<(), BlockerRecord> {
    let Some(choice) = &contract.terms.model else { return Ok(()) };
    let found = installation.admissions().find_model(choice, &installation.admission_context());
    match found.blocker {
        Some(blocker) => Err(blocker.because(found.detail)),
        None => Ok(()),
    }
}
