//! `herma ladder`: what every engine has proven.

use std::process::ExitCode;

use herma_harness::Installation;
use herma_ladder::{Rung, RungState, ladder as all_rungs};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::LadderOutput;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn ladder(args: &args::Ladder, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    if let Some(engine) = &args.engine
        && installation.engines().get(engine).is_none()
    {
        return Err(Failure::bad_input(format!("herma has no engine `{engine}`"))
            .hint("`herma engines list` shows all of them"));
    }
    let rungs = all_rungs(&installation, args.engine.as_ref());
    if screen.is_json() {
        screen.value(&LadderOutput { schema: "herma.ladder/v1", rungs })?;
    } else {
        show_rungs(&rungs, &installation, screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn show_rungs(rungs: &[Rung], installation: &Installation, screen: &Screen) {
    let mut engine = None;
    for rung in rungs {
        if engine != Some(&rung.engine) {
            engine = Some(&rung.engine);
            screen.line(screen.paint(Tone::Bold, &rung.engine));
        }
        let tone = match rung.state {
            RungState::BuiltIn | RungState::Proven => Tone::Good,
            RungState::Broken => Tone::Bad,
            RungState::Unproven => Tone::Dim,
        };
        let state = screen.paint(tone, format_args!("{:9}", rung.state.as_str()));
        screen.line(format_args!(
            "  {}  {:15} {state}  {}",
            rung.stage,
            rung.stage.name(),
            safe_line(&rung.detail)
        ));
        if !rung.bundles.is_empty() {
            let file = installation.proofs().file(&rung.engine, rung.stage);
            screen.line(format_args!("       {} bundles, listed in {}", rung.bundles.len(), file.display()));
        }
        if let Some(next) = &rung.next {
            screen.line(format_args!("       next: {next}"));
        }
    }
}
