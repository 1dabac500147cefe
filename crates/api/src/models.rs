//! Models: the configured and the admitted ones, with aliases and prices.

use std::collections::BTreeSet;

use herma_core::admission::{AdmissionId, AdmissionKind};
use herma_core::report::Admission;
use herma_core::units::Usd;
use herma_harness::{Installation, ROUTER_FILE};
use herma_router::config::Config;
use herma_trust::AdmissionError;

use crate::output::{ModelRow, PriceShown};

/// Lists the models of the configuration, and those that have an admission.
pub fn model_rows(
    installation: &Installation,
    config: Option<&Config>,
) -> Result<Vec<ModelRow>, AdmissionError> {
    let models = known_models(installation, config)?.into_iter();
    Ok(models.map(|model| model_row(installation, config, model)).collect())
}

/// The names of all models, as `upstream/model`.
fn known_models(
    installation: &Installation,
    config: Option<&Config>,
) -> Result<BTreeSet<String>, AdmissionError> {
    let mut names = BTreeSet::new();
    if let Some(config) = config {
        let links = config.models.values().flat_map(|model| &model.chain);
        names.extend(links.map(|(upstream, model)| format!("{upstream}/{model}")));
        names.extend(config.prices.keys().cloned());
    }
    let admissions = installation.admissions().list()?;
    names.extend(admissions.iter().filter_map(|listed| match listed.id.as_ref()? {
        id @ AdmissionId::Model(_) => Some(id.name()),
        _ => None,
    }));
    Ok(names)
}

fn model_row(installation: &Installation, config: Option<&Config>, model: String) -> ModelRow {
    let (upstream, name) = model.split_once('/').unwrap_or(("", &model));
    let provider =
        config.and_then(|config| config.upstreams.get(upstream)).map(|found| found.provider.name());
    let first = (upstream.to_owned(), name.to_owned());
    let entry =
        config.and_then(|config| config.models.iter().find(|(_, known)| known.chain.first() == Some(&first)));
    let names = entry.into_iter().flat_map(|(name, known)| std::iter::once(name).chain(&known.aliases));
    let aliases = names.filter(|alias| *alias != name).cloned().collect();
    let price = config.and_then(|config| config.prices.get(&model)).map(|price| PriceShown {
        input: Usd(price.input),
        output: Usd(price.output),
        cached_input: Usd(price.cached_input),
    });
    let (admission, admission_detail) = match AdmissionId::parse(AdmissionKind::Model, &model) {
        Ok(id) => {
            let found = installation.admissions().look(&id, None, &installation.admission_context());
            (found.status, found.detail)
        }
        Err(why) => (Admission::InvalidAdmission, why),
    };
    let next_step = match (provider, admission) {
        (None, _) => Some(format!("write `[upstreams.{upstream}]` into {ROUTER_FILE}")),
        (Some(_), Admission::Admitted) => None,
        (Some(_), Admission::MissingAdmission) => {
            Some(format!("herma admit model {model}, then herma admit sign model {model}"))
        }
        (Some(_), _) => Some(format!("herma admissions show model {model}")),
    };
    let provider = provider.map(str::to_owned);
    ModelRow { model, provider, aliases, price, admission, admission_detail, next_step }
}
