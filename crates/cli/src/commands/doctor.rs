//! `herma doctor`: checks this machine and suggests fixes.

use std::process::ExitCode;

use herma_api::{check_engine, check_installation, check_toolchains, find_engine};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::output::{DoctorItem, DoctorOutput};
use crate::screen::{Screen, Tone};

pub(crate) fn doctor(args: &args::Doctor, environment: &Environment, screen: &Screen) -> Ended {
    let mut items = Vec::new();
    match (open(environment, screen), &args.engine) {
        (Ok(installation), Some(name)) => {
            items.extend(check_engine(&installation, find_engine(&installation, name)?));
        }
        (Ok(installation), None) => items.extend(check_installation(&installation)),
        (Err(failure), _) => items.push(DoctorItem {
            name: "installation".to_owned(),
            ok: false,
            required: true,
            detail: failure.what,
            next_step: failure.next_step,
        }),
    }
    if args.engine.is_none() {
        let settings = &environment.settings;
        items.extend(check_toolchains(&settings.search_path, &settings.user_home));
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
