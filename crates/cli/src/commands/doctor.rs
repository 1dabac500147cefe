//! `herma doctor`: what works on this machine, and how to mend what does not.

use std::process::ExitCode;

use herma_core::contract::Toolchain;
use herma_core::engine::DestinationKind;
use herma_core::model_call::Door;
use herma_core::report::Admission;
use herma_destination::{Unready, toolchain};
use herma_engines::Engine;
use herma_harness::Installation;
use herma_router::door::path_of;

use crate::args;
use crate::commands::engines::{find, look};
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{DoctorItem, DoctorOutput};
use crate::screen::{Screen, Tone};

pub(crate) fn doctor(args: &args::Doctor, environment: &Environment, screen: &Screen) -> Ended {
    let mut items = Vec::new();
    match (open(environment, screen), &args.engine) {
        (Ok(installation), Some(name)) => {
            items.extend(for_engine(&installation, find(&installation, name)?));
        }
        (Ok(installation), None) => {
            items.push(found("home", true, installation.home.root().display().to_string()));
            items.push(found("key", true, installation.key.key_id().to_string()));
            items.push(trust_chain(&installation));
            items.push(found("git", true, "found".to_owned()));
            items.extend(destinations(&installation));
            items.extend(engines(&installation));
        }
        (Err(failure), _) => items.push(DoctorItem {
            name: "installation".to_owned(),
            ok: false,
            required: true,
            detail: failure.what,
            next_step: failure.next_step,
        }),
    }
    if args.engine.is_none() {
        items.extend(toolchains(environment));
    }
    let ok = items.iter().all(|item| item.ok || !item.required);
    if screen.is_json() {
        screen.value(&DoctorOutput { schema: "herma.doctor/v1", ok, items })?;
    } else {
        for item in &items {
            let mark = match (item.ok, item.required) {
                (true, _) => screen.paint(Tone::Good, "ok     "),
                (false, true) => screen.paint(Tone::Bad, "broken "),
                (false, false) => screen.paint(Tone::Warn, "missing"),
            };
            screen.line(format_args!("{mark} {:18} {}", item.name, item.detail));
            if let Some(next) = &item.next_step {
                screen.line(format_args!("        next: {next}"));
            }
        }
    }
    Ok(ExitCode::from(u8::from(!ok)))
}

/// Whether the trust chain holds and agrees with everything in this home that names a head of it.
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
        Err(error) => {
            let Failure { what, next_step, .. } = Failure::from(error);
            DoctorItem { name: "trust chain".to_owned(), ok: false, required: true, detail: what, next_step }
        }
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
                missing(&name, Unready { what, next_step: obtained(engine) })
            }
        })
        .collect()
}

/// How to come by an engine of which there is nothing to run yet.
fn obtained(engine: &dyn Engine) -> String {
    let name = engine.name();
    match (engine.source(), engine.without_source()) {
        (Some(_), _) => format!("herma engines install {name}"),
        (None, Some(what)) => what.to_owned(),
        (None, None) => format!("herma admit engine {name} --program FILE"),
    }
}

/// What a run with this engine needs, in the order in which a person gets it.
fn for_engine(installation: &Installation, engine: &dyn Engine) -> Vec<DoctorItem> {
    let row = look(installation, engine);
    let name = &row.engine;
    let item = |what: &str, ok: bool, detail: String, next: String| DoctorItem {
        name: what.to_owned(),
        ok,
        required: true,
        detail,
        next_step: (!ok).then_some(next),
    };
    let digest = row.digest.map_or_else(|| "there is nothing to run".to_owned(), |digest| digest.to_string());
    let mut items =
        vec![item("program", row.digest.is_some(), format!("{}, {digest}", row.version), obtained(engine))];
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
    if let Some(door) = engine.asks() {
        items.push(model(installation, door));
    }
    items
}

/// Whether the router is configured with an upstream that the engine can ask.
fn model(installation: &Installation, door: Door) -> DoctorItem {
    let config = herma_harness::router_config(installation.home.root());
    let upstreams: Vec<String> = match &config {
        Ok(Some(config)) => {
            let answers = config.upstreams.iter().filter(|(_, up)| up.provider.doors().contains(&door));
            answers.map(|(name, _)| name.clone()).collect()
        }
        _ => Vec::new(),
    };
    let ok = !upstreams.is_empty();
    DoctorItem {
        name: "model".to_owned(),
        ok,
        required: true,
        detail: if ok {
            format!("{} answers at {}", upstreams.join(", "), path_of(door))
        } else {
            format!("no upstream answers at {}", path_of(door))
        },
        next_step: (!ok).then(|| {
            "write the upstream into router.toml in herma's home, then herma admit model PROVIDER/MODEL"
                .to_owned()
        }),
    }
}

fn toolchains(environment: &Environment) -> Vec<DoctorItem> {
    let settings = &environment.settings;
    [("python", Toolchain::Python), ("rust", Toolchain::Rust)]
        .into_iter()
        .map(|(name, wanted)| {
            let label = format!("toolchain {name}");
            match toolchain::find(wanted, &settings.search_path, &settings.user_home) {
                Ok(_) => found(&label, false, "found".to_owned()),
                Err(why) => missing(&label, why),
            }
        })
        .collect()
}
