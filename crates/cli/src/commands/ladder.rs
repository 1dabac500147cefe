//! `herma prove` and `herma ladder`: an engine earns its stages one by one.

use std::process::ExitCode;

use herma_harness::{
    Installation, People, ProveError, Rung, RungState, ladder as all_rungs, prove as prove_stage,
};
use herma_model::proof::{CoverageState, Proof, Standing};
use herma_model::{Stage, Status};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::output::LadderOutput;
use crate::screen::{Screen, Tone, safe_line};
use crate::unlock::{UnlockArgs, unlock};

pub(crate) fn prove(args: &args::Prove, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let needs_people = args.stage.needs_approval();
    let approver =
        needs_people.then(|| unlock(&args.unlock, &installation, environment, screen)).transpose()?;
    let asker = match &args.asker {
        Some(name) if needs_people => {
            let asker = UnlockArgs {
                approver: Some(name.clone()),
                passphrase_file: args.asker_passphrase_file.clone(),
            };
            Some(unlock(&asker, &installation, environment, screen)?)
        }
        _ => None,
    };
    let people = People { approver: approver.as_ref(), asker: asker.as_ref() };
    let watch = |n: usize, total: usize, case: &str| {
        if !screen.is_json() {
            screen.note(format_args!("  {n:2}/{total}  {case}"));
        }
    };
    listen(&installation.interruption, screen)?;
    let proof = prove_stage(&installation, &args.engine, args.stage, &people, &watch)?;
    if screen.is_json() {
        screen.value(&proof)?;
    } else {
        show_proof(&proof, &installation, screen);
    }
    Ok(ExitCode::from(proof.status.exit_code()))
}

fn show_proof(proof: &Proof, installation: &Installation, screen: &Screen) {
    screen.line(format_args!(
        "{}  stage {} of {}",
        screen.status(proof.status),
        proof.stage,
        screen.paint(Tone::Bold, &proof.engine)
    ));
    for row in &proof.rows {
        let mark = if row.held { screen.paint(Tone::Good, "ok") } else { screen.paint(Tone::Bad, "BROKEN") };
        screen.line(format_args!("  {:22} {mark}  {}", row.case, safe_line(&row.detail)));
    }
    for compared in &proof.comparison {
        let standing = match compared.standing {
            Standing::Matches => screen.paint(Tone::Good, "matches"),
            Standing::Beats => screen.paint(Tone::Good, "beats"),
            Standing::FallsBehind => screen.paint(Tone::Bad, "FALLS BEHIND"),
            Standing::Blocked => screen.paint(Tone::Dim, "-"),
        };
        screen.line(format_args!(
            "  {:22} {standing}  {}",
            compared.criterion.as_str(),
            safe_line(&compared.detail)
        ));
    }
    if !proof.coverage.is_empty() {
        let covered = proof.coverage.iter().filter(|c| c.state == CoverageState::Covered).count();
        screen
            .line(format_args!("  {covered} of {} rows of the failure matrix covered", proof.coverage.len()));
    }
    for reason in &proof.reasons {
        screen.line(format_args!("  {}  {}", screen.paint(Tone::Warn, "not proven:"), safe_line(reason)));
    }
    if proof.status == Status::Pass {
        let file = herma_harness::Proofs::of(installation).file(&proof.engine, proof.stage);
        screen.line(format_args!("  proof    {}", file.display()));
        if proof.stage == Stage::CandidateDefault {
            screen.line("  Nothing was switched: being a candidate is evidence, not activation.");
        }
    }
}

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
            let file = herma_harness::Proofs::of(installation).file(&rung.engine, rung.stage);
            screen.line(format_args!("       {} bundles, listed in {}", rung.bundles.len(), file.display()));
        }
        if let Some(next) = &rung.next {
            screen.line(format_args!("       next: {next}"));
        }
    }
}

impl From<ProveError> for Failure {
    fn from(error: ProveError) -> Self {
        match error {
            ProveError::NoApprover => {
                Self::bad_input(error).hint("name one with --approver; `herma approver init NAME` makes one")
            }
            ProveError::Interrupted(_) => Self::blocked(error)
                .hint("prove it again; the runs so far are kept, and `herma runs` lists them"),
            other => Self::internal(other),
        }
    }
}
