//! `herma models`: which models are configured and admitted, by which names they are asked, and what they cost.

use std::collections::BTreeSet;
use std::process::ExitCode;

use herma_core::admission::{AdmissionId, AdmissionKind};
use herma_core::report::Admission;
use herma_core::units::Usd;
use herma_harness::{Installation, ROUTER_FILE, router_config};
use herma_router::config::Config;

use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{ModelRow, ModelsOutput, PriceShown};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn models(environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let config = router_config(installation.home.root()).map_err(|bad| {
        Failure::bad_input(bad.to_string()).hint("mend the file, or remove it to run without models")
    })?;
    let rows: Vec<ModelRow> = known(&installation, config.as_ref())?
        .into_iter()
        .map(|model| look(&installation, config.as_ref(), model))
        .collect();
    if screen.is_json() {
        let configured = config.is_some();
        screen.value(&ModelsOutput { schema: "herma.models/v1", configured, models: rows })?;
        return Ok(ExitCode::SUCCESS);
    }
    if config.is_none() {
        screen.line(format_args!("there is no {ROUTER_FILE} in herma's home: no model can be asked"));
    }
    for row in &rows {
        show(row, screen);
    }
    Ok(ExitCode::SUCCESS)
}

/// Every model that the configuration names, or that has an admission, as `upstream/model`.
fn known(installation: &Installation, config: Option<&Config>) -> Result<BTreeSet<String>, Failure> {
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

fn look(installation: &Installation, config: Option<&Config>, model: String) -> ModelRow {
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

fn show(row: &ModelRow, screen: &Screen) {
    let tone = if row.admission == Admission::Admitted { Tone::Good } else { Tone::Warn };
    screen.line(format_args!(
        "{:40} {:11} {}",
        safe_line(&row.model),
        row.provider.as_deref().unwrap_or("-"),
        screen.paint(tone, row.admission.as_str())
    ));
    if !row.aliases.is_empty() {
        screen.line(format_args!("  asked as  {}", safe_line(&row.aliases.join(", "))));
    }
    match &row.price {
        Some(price) => screen.line(format_args!(
            "  price     ${} in, ${} out, ${} cached, for a million tokens",
            price.input, price.output, price.cached_input
        )),
        None => screen.line("  price     not said: no run with limits.usd can use it"),
    }
    if let Some(next) = &row.next_step {
        screen.line(format_args!("  next      {}", safe_line(next)));
    }
}
