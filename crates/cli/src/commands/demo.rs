//! `herma demo`: a whole run on a built-in repository, and why its result can be trusted.

use std::sync::Arc;

use herma_api::{find_fixture, read_contract};
use herma_core::engine::{DestinationKind, EngineName};
use herma_harness::{Finished, Installation, Order};
use herma_trust::verify_bundle;

use crate::args;
use crate::commands::run::{exit_code, govern, show_verdict};
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, Tone};

pub(crate) fn demo(args: &args::Demo, environment: &Environment, screen: &Screen) -> Ended {
    let fixture = find_fixture(args.fixture.as_str())?;
    let script = fixture.script(&args.script).ok_or_else(|| {
        let known: Vec<_> = fixture.scripts.iter().map(|(name, _)| *name).collect();
        Failure::bad_input(format!("the fixture `{}` has no script `{}`", fixture.name, args.script))
            .hint(format!("it has: {}", known.join(", ")))
    })?;
    let read = read_contract(&format!("fixture:{}", fixture.name), &environment.settings)?;
    let installation = Arc::new(open(environment, screen)?);
    let (destination, note) = choose(args, &installation);
    let order = Order {
        contract: read.contract,
        contract_text: read.text,
        contract_dir: read.dir,
        engine: EngineName::fake(),
        destination: Some(destination),
        script: Some(script.to_owned()),
        keep_workspace: false,
        egress: herma_core::egress::EgressMode::Strict,
        resumes: None,
        fault: environment.fault.clone(),
    };
    if !screen.is_json() {
        screen.line(format_args!("{}: {}", screen.paint(Tone::Bold, fixture.name), fixture.summary));
        screen.line(note);
        screen.line("");
    }
    let finished = govern(&installation, order, screen)?;
    if screen.is_json() {
        screen.value(&finished.report)?;
    } else {
        show_verdict(&finished.report, &finished.bundle, screen);
        explain(&installation, &finished, screen);
    }
    Ok(exit_code(&finished))
}

/// The sandbox if it is ready, else the host, with a note. Only the demo chooses; a run never falls back.
fn choose(args: &args::Demo, installation: &Installation) -> (DestinationKind, String) {
    if let Some(asked) = args.destination {
        let kind = DestinationKind::from(asked);
        return (kind, format!("The engine `fake` works in the destination `{}`.", kind.as_str()));
    }
    let sandbox = installation.destination(DestinationKind::Sandbox, None);
    match sandbox.and_then(|sandbox| sandbox.rehearse()) {
        Ok(ready) => {
            (DestinationKind::Sandbox, format!("The engine `fake` works in the sandbox ({}).", ready.detail))
        }
        Err(why) => (
            DestinationKind::Host,
            format!(
                "The engine `fake` works on the host, WITHOUT CONFINEMENT: {}. For the sandbox: {}",
                why.what, why.next_step
            ),
        ),
    }
}

/// Why it can be trusted, by checking it, and what to try next.
fn explain(installation: &Installation, finished: &Finished, screen: &Screen) {
    let trust = installation.trust();
    let checks = verify_bundle(&finished.bundle, &trust, Some(installation.git()), None);
    screen.line("");
    screen.line(screen.paint(Tone::Bold, "Why this can be trusted"));
    super::verify::show_checks(&checks, screen);
    let run = finished.report.run_id.short();
    screen.line("");
    screen.line(screen.paint(Tone::Bold, "Try next"));
    for (command, what) in [
        (format!("herma show {run}"), "the run on one screen"),
        (format!("herma diff {run}"), "the patch"),
        (format!("herma verify {run}"), "the checks above, again"),
        ("herma demo --script disallowed-file".to_owned(), "an engine that oversteps"),
        ("herma init".to_owned(), "a first contract for your own repository"),
    ] {
        screen.line(format_args!("  {command:38} {}", screen.paint(Tone::Dim, what)));
    }
}
