//! `herma doctor`: what works on this machine, and how to mend what does not.

use std::process::ExitCode;

use herma_destination::toolchain;
use herma_harness::Installation;
use herma_model::contract::Toolchain;
use herma_model::engine::DestinationKind;

use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::output::{DoctorItem, DoctorOutput};
use crate::screen::{Screen, Tone};

pub(crate) fn doctor(environment: &Environment, screen: &Screen) -> Ended {
    let mut items = Vec::new();
    match open(environment, screen) {
        Ok(installation) => {
            items.push(found("home", true, installation.home.root().display().to_string()));
            items.push(found("key", true, installation.key.key_id().to_string()));
            items.push(found("git", true, "found".to_owned()));
            items.extend(destinations(&installation));
            items.extend(engines(&installation));
        }
        Err(failure) => items.push(DoctorItem {
            name: "installation".to_owned(),
            ok: false,
            required: true,
            detail: failure.what,
            next_step: failure.next_step,
        }),
    }
    items.extend(toolchains(environment));
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

fn found(name: &str, required: bool, detail: String) -> DoctorItem {
    DoctorItem { name: name.to_owned(), ok: true, required, detail, next_step: None }
}

fn missing(name: &str, why: herma_destination::Unready) -> DoctorItem {
    DoctorItem {
        name: name.to_owned(),
        ok: false,
        required: false,
        detail: why.what,
        next_step: Some(why.next_step),
    }
}

fn destinations(installation: &Installation) -> Vec<DoctorItem> {
    [DestinationKind::Host, DestinationKind::Sandbox, DestinationKind::Docker]
        .into_iter()
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
            let name = format!("engine {}", engine.name());
            found(&name, false, format!("version {}, built in: {}", engine.version(), engine.built_in()))
        })
        .collect()
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
