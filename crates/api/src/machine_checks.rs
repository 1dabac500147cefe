//! Checks of the machine and the installation, with a fix for each failed one.

use std::ffi::OsStr;
use std::path::Path;

use herma_core::contract::Toolchain;
use herma_core::engine::DestinationKind;
use herma_core::model_call::Endpoint;
use herma_core::report::Admission;
use herma_destination::{Unready, toolchain};
use herma_engines::Engine;
use herma_harness::Installation;
use herma_router::endpoint::path_of;
use herma_trust::TrustError;

use crate::ad_hoc::admitted_models;
use crate::engines::engine_row;
use crate::output::DoctorItem;

/// The page for an invalid trust chain; none for an error of the system.
#[must_use]
pub fn trust_chain_help(error: &TrustError) -> Option<&'static str> {
    match error {
        TrustError::Io { .. } | TrustError::Record(_) | TrustError::NoKey => None,
        TrustError::NotAdopted(_)
        | TrustError::Started { .. }
        | TrustError::Broken { .. }
        | TrustError::Changed
        | TrustError::RolledBack { .. }
        | TrustError::Missing => Some("docs/approvals.md#the-trust-chain says what can be done"),
    }
}

/// Checks the installation: home, key, trust chain, git, destinations and engines.
#[must_use]
pub fn check_installation(installation: &Installation) -> Vec<DoctorItem> {
    let mut items = vec![
        found("home", true, installation.home.root().display().to_string()),
        found("key", true, installation.key.key_id().to_string()),
        trust_chain(installation),
        found("git", true, "found".to_owned()),
    ];
    items.extend(destinations(installation));
    items.extend(engines(installation));
    items
}

/// Whether the trust chain is valid and agrees with every record of this home that names a head of it.
fn trust_chain(installation: &Installation) -> DoctorItem {
    match installation.trust_log().audit() {
        Ok((chain, _)) if chain.head().sequence == 0 => {
            found("trust chain", true, "not started: there are no approvers yet".to_owned())
        }
        Ok((chain, witnesses)) => {
            let records = chain.head().sequence;
            let agree = format!("{witnesses} bundles and signed admissions agree");
            found("trust chain", true, format!("{records} records; {agree}"))
        }
        Err(error) => DoctorItem {
            name: "trust chain".to_owned(),
            ok: false,
            required: true,
            detail: error.to_string(),
            next_step: trust_chain_help(&error).map(str::to_owned),
        },
    }
}

fn found(name: &str, required: bool, detail: String) -> DoctorItem {
    DoctorItem { name: name.to_owned(), ok: true, required, detail, next_step: None }
}

fn missing(name: &str, why: Unready) -> DoctorItem {
    DoctorItem {
        name: name.to_owned(),
        ok: false,
        required: false,
        detail: why.what,
        next_step: Some(why.next_step),
    }
}

fn destinations(installation: &Installation) -> Vec<DoctorItem> {
    DestinationKind::ALL
        .into_iter()
        .filter(|kind| herma_destination::is_available(*kind))
        .map(|kind| {
            let name = format!("destination {}", kind.as_str());
            match installation.destination(kind, None).and_then(|destination| destination.rehearse()) {
                Ok(ready) => found(&name, false, ready.detail),
                Err(why) => missing(&name, why),
            }
        })
        .collect()
}

fn engines(installation: &Installation) -> Vec<DoctorItem> {
    let names = installation.engines().names();
    let engines = names.iter().filter_map(|name| installation.engines().get(name));
    engines
        .map(|engine| {
            let (name, version) = (format!("engine {}", engine.name()), engine.version());
            if engine.built_in() {
                found(&name, false, format!("version {version}, built in"))
            } else if engine.program().is_some() {
                found(&name, false, format!("version {version}"))
            } else {
                let what = "there is nothing to run".to_owned();
                missing(&name, Unready { what, next_step: next_to_install(engine) })
            }
        })
        .collect()
}

/// The next step for an engine without a program.
fn next_to_install(engine: &dyn Engine) -> String {
    let name = engine.name();
    match (engine.source(), engine.without_source()) {
        (Some(_), _) => format!("herma engines install {name}"),
        (None, Some(what)) => what.to_owned(),
        (None, None) => format!("herma admit engine {name} --program FILE"),
    }
}

/// Checks the preconditions of a run with this engine, in the order in which a person meets them.
#[must_use]
pub fn check_engine(installation: &Installation, engine: &dyn Engine) -> Vec<DoctorItem> {
    let row = engine_row(installation, engine);
    let name = &row.engine;
    let item = |what: &str, ok: bool, detail: String, next: String| DoctorItem {
        name: what.to_owned(),
        ok,
        required: true,
        detail,
        next_step: (!ok).then_some(next),
    };
    let digest = row.digest.map_or_else(|| "there is nothing to run".to_owned(), |digest| digest.to_string());
    let mut items = vec![item(
        "program",
        row.digest.is_some(),
        format!("{}, {digest}", row.version),
        next_to_install(engine),
    )];
    if !row.built_in {
        let admitted = row.admission == Admission::Admitted;
        let detail = row.admission_detail.clone().unwrap_or_default();
        let sign = format!("herma admit engine {name}, then herma admit sign engine {name}");
        items.push(item("admission", admitted, detail, sign));
        let switch = if row.enabled { "on" } else { "off" };
        items.push(item("switch", row.enabled, switch.to_owned(), format!("herma engines enable {name}")));
    }
    let sandbox = installation.destination(DestinationKind::Sandbox, None);
    let ready = sandbox.and_then(|destination| destination.rehearse());
    items.push(match ready {
        Ok(ready) => found("sandbox", true, ready.detail),
        Err(why) => DoctorItem { required: true, ..missing("sandbox", why) },
    });
    let proven = row.proven_stage.map_or_else(|| "none".to_owned(), |stage| stage.to_string());
    let prove = format!("herma prove --engine {name} --stage 1");
    items.push(item("proven stage", row.proven_stage.is_some(), proven, prove));
    if let Some(endpoint) = engine.asks() {
        items.push(model(installation, endpoint));
    }
    items
}

/// Whether the router has an upstream with the API of the engine, and a model of it is admitted.
fn model(installation: &Installation, endpoint: Endpoint) -> DoctorItem {
    let config = herma_harness::router_config(installation.home.root());
    let upstreams: Vec<String> = match &config {
        Ok(Some(config)) => {
            let answers =
                config.upstreams.iter().filter(|(_, up)| up.provider.endpoints().contains(&endpoint));
            answers.map(|(name, _)| name.clone()).collect()
        }
        _ => Vec::new(),
    };
    let admitted: Vec<String> = admitted_models(installation)
        .into_iter()
        .filter(|model| upstreams.iter().any(|upstream| model.split('/').next() == Some(upstream)))
        .collect();
    let (detail, next_step) = match (&upstreams[..], &admitted[..]) {
        ([], _) => (
            format!("no upstream answers at {}", path_of(endpoint)),
            Some(
                "write the upstream into router.toml in herma's home, then herma admit model PROVIDER/MODEL",
            ),
        ),
        (upstreams, []) => (
            format!(
                "{} answers at {}, and no model of it is admitted",
                upstreams.join(", "),
                path_of(endpoint)
            ),
            Some("herma admit model PROVIDER/MODEL, then herma admit sign model PROVIDER/MODEL"),
        ),
        (_, admitted) => (format!("admitted: {}", admitted.join(", ")), None),
    };
    let next_step = next_step.map(str::to_owned);
    DoctorItem { name: "model".to_owned(), ok: next_step.is_none(), required: true, detail, next_step }
}

/// Checks which toolchains of contracts are installed.
#[must_use]
pub fn check_toolchains(search_path: &OsStr, user_home: &Path) -> Vec<DoctorItem> {
    [("python", Toolchain::Python), ("rust", Toolchain::Rust)]
        .into_iter()
        .map(|(name, wanted)| {
            let label = format!("toolchain {name}");
            match toolchain::find(wanted, search_path, user_home) {
                Ok(_) => found(&label, false, "found".to_owned()),
                Err(why) => missing(&label, why),
            }
        })
        .collect()
}
