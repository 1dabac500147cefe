//! `herma resume`: continues an earlier run as a new one.

use std::io::{IsTerminal as _, stdin};
use std::sync::Arc;

use herma_core::RunId;
use herma_evidence::file_reading::read_named;
use herma_harness::{
    Installation, ResumeError, ResumeFrom, ResumeOptions, kept_workspace, resume as resume_order,
};

use crate::args;
use crate::commands::run::{exit_code, govern, tell};
use crate::commands::{Ended, find_finished_run, open};
use crate::confirm::agrees;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// The largest script that is read.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

pub(crate) fn resume(args: &args::Resume, environment: &Environment, screen: &Screen) -> Ended {
    let script = args.script.as_ref().map(|file| {
        let text = read_named(file, MAX_SCRIPT_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
        text.map_err(|e| Failure::bad_input(format!("{}: cannot be read: {e}", file.display())))
    });
    let script = script.transpose()?;
    let installation = Arc::new(open(environment, screen)?);
    let (parent, _) = find_finished_run(&installation, &args.run)?;
    let flags = (args.from_workspace, args.from_base);
    let from = start(flags, &installation, parent.run_id, screen)?;
    let options = ResumeOptions { message: args.message.as_deref(), from, script };
    let mut order = resume_order(&installation, parent.run_id, options)?;
    order.keep_workspace = args.keep_workspace;
    order.fault.clone_from(&environment.fault);
    let finished = govern(&installation, order, screen)?;
    tell(&installation, &finished, screen)?;
    Ok(exit_code(&finished))
}

/// The files to start from. With a kept workspace a person decides: by a flag, or at the terminal.
pub(crate) fn start(
    (from_workspace, from_base): (bool, bool),
    installation: &Installation,
    run: RunId,
    screen: &Screen,
) -> Result<ResumeFrom, Failure> {
    if from_workspace {
        return Ok(ResumeFrom::Workspace);
    }
    if from_base || !kept_workspace(installation, run) {
        return Ok(ResumeFrom::Patch);
    }
    if !stdin().is_terminal() || screen.is_json() {
        return Err(Failure::bad_input(format!(
            "run {} keeps the workspace in which it was interrupted",
            run.short()
        ))
        .hint("say where to start: `--from-workspace`, or `--from-base` to leave it aside"));
    }
    screen.note(format_args!("Run {} keeps the workspace in which it was interrupted.", run.short()));
    let workspace = agrees("Start from it? Type yes, or anything else to start from the base:", screen)?;
    Ok(if workspace { ResumeFrom::Workspace } else { ResumeFrom::Patch })
}

impl From<ResumeError> for Failure {
    fn from(error: ResumeError) -> Self {
        let hint = match &error {
            ResumeError::Unable(_) => {
                "run its contract again with `herma run`; `herma engines` lists which engines can `resume`"
            }
            ResumeError::Child(_) => "run the contract that asked for it again with `herma run`",
            ResumeError::NoSession(_)
            | ResumeError::Kept(..)
            | ResumeError::Discarded(..)
            | ResumeError::NoWorkspace(_) => "run its contract again with `herma run`",
            ResumeError::Evidence(..) => "nothing is built on it: run its contract again with `herma run`",
            ResumeError::MessageTooLong(_) => {
                "put what is long into a file of the target, or into the contract"
            }
            ResumeError::Secret(_) => "take it out: an agent needs no secret",
        };
        Self::bad_input(error).hint(hint)
    }
}
