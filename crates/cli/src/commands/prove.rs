//! `herma prove`: an engine earns its stages, one by one or several in one go.

use std::process::ExitCode;

use herma_core::engine::EngineName;
use herma_core::proof::{CoverageState, Proof, Standing};
use herma_core::{Stage, Status};
use herma_harness::Installation;
use herma_ladder::{
    Climb, ClimbState, ClimbStep, ClimbWatch, People, ProveError, climb_status, prove as prove_stage,
};
use herma_trust::Approver;

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::output::ProofsOutput;
use crate::screen::{Screen, Tone, safe_line};
use crate::unlock::{UnlockArgs, unlock};

pub(crate) fn prove(args: &args::Prove, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    if args.stale
        && let Some(engine) = &args.engine
        && installation.engines().get(engine).is_none()
    {
        return Err(Failure::bad_input(format!("herma has no engine `{engine}`"))
            .hint("`herma engines list` shows all of them"));
    }
    let climb = match (&args.engine, args.stage, args.up_to) {
        (Some(engine), Some(stage), _) => {
            let unlocked = Unlocked::of(args, stage.needs_approval(), &installation, environment, screen)?;
            return one(&installation, engine, stage, &unlocked, screen);
        }
        (Some(engine), None, Some(stage)) => Climb::up_to(&installation, engine, stage),
        (only, _, _) => Climb::stale(&installation, only.as_ref()),
    };
    let unlocked = Unlocked::of(args, climb.needs_approver(), &installation, environment, screen)?;
    listen(&installation.cancellation, screen)?;
    let steps =
        climb.carry_out(&installation, &unlocked.people(), &Shown { screen, installation: &installation })?;
    let status = climb_status(&steps);
    if screen.is_json() {
        screen.value(&ProofsOutput { schema: "herma.proofs/v1", status, steps })?;
    } else if steps.is_empty() {
        screen.line("No proof is stale.");
    }
    Ok(ExitCode::from(status.exit_code()))
}

/// Proves one stage.
fn one(
    installation: &Installation,
    engine: &EngineName,
    stage: Stage,
    unlocked: &Unlocked,
    screen: &Screen,
) -> Ended {
    let watch = |n: usize, total: usize, case: &str| note_case(screen, n, total, case);
    listen(&installation.cancellation, screen)?;
    let proof = prove_stage(installation, engine, stage, &unlocked.people(), &watch)?;
    if screen.is_json() {
        screen.value(&proof)?;
    } else {
        show_proof(&proof, installation, screen);
    }
    Ok(ExitCode::from(proof.status.exit_code()))
}

/// The people that the stages to prove need, their keys unlocked.
struct Unlocked {
    approver: Option<Approver>,
    asker: Option<Approver>,
}

impl Unlocked {
    fn of(
        args: &args::Prove,
        needed: bool,
        installation: &Installation,
        environment: &Environment,
        screen: &Screen,
    ) -> Result<Self, Failure> {
        let open = |args: &UnlockArgs| unlock(args, installation, environment, screen);
        let approver = needed.then(|| open(&args.unlock)).transpose()?;
        let asker = match &args.asker {
            Some(name) if needed => Some(open(&UnlockArgs {
                approver: Some(name.clone()),
                passphrase_file: args.asker_passphrase_file.clone(),
            })?),
            _ => None,
        };
        Ok(Self { approver, asker })
    }

    fn people(&self) -> People<'_> {
        People { approver: self.approver.as_ref(), asker: self.asker.as_ref() }
    }
}

fn note_case(screen: &Screen, n: usize, total: usize, case: &str) {
    if !screen.is_json() {
        screen.note(format_args!("  {n:2}/{total}  {case}"));
    }
}

/// Shows a climb under way.
struct Shown<'a> {
    screen: &'a Screen,
    installation: &'a Installation,
}

impl ClimbWatch for Shown<'_> {
    fn stage(&self, engine: &EngineName, stage: Stage) {
        if !self.screen.is_json() {
            self.screen.note(format_args!("stage {stage} of {engine}"));
        }
    }

    fn case(&self, number: usize, total: usize, case: &str) {
        note_case(self.screen, number, total, case);
    }

    fn done(&self, step: &ClimbStep) {
        if self.screen.is_json() {
            return;
        }
        if let Some(proof) = &step.proof {
            return show_proof(proof, self.installation, self.screen);
        }
        let tone = if step.state == ClimbState::Current { Tone::Good } else { Tone::Warn };
        self.screen.line(format_args!(
            "{}  stage {} of {}  {}",
            self.screen.paint(tone, step.state.as_str()),
            step.stage,
            self.screen.paint(Tone::Bold, &step.engine),
            safe_line(&step.detail)
        ));
    }
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
    for row in &proof.not_applicable {
        let mark = screen.paint(Tone::Dim, "not applicable");
        screen.line(format_args!("  {:22} {mark}  {}", row.case, safe_line(&row.reason)));
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
        let file = installation.proofs().file(&proof.engine, proof.stage);
        screen.line(format_args!("  proof    {}", file.display()));
        if proof.stage == Stage::CandidateDefault {
            screen.line("  Nothing was switched: being a candidate is evidence, not activation.");
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
            // An error that a person can fix, such as policies that cannot be read, is not an internal one.
            ProveError::Run(error) => error.into(),
            ProveError::Ask(error) => error.into(),
            other => Self::internal(other),
        }
    }
}
