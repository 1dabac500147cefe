//! `herma resume`: continues an earlier run as a new one.

use std::sync::Arc;

use herma_harness::{ResumeError, resume as resume_order};

use crate::args;
use crate::commands::run::{exit_code, govern, tell};
use crate::commands::{Ended, find_finished_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

pub(crate) fn resume(args: &args::Resume, environment: &Environment, screen: &Screen) -> Ended {
    let installation = Arc::new(open(environment, screen)?);
    let (parent, _) = find_finished_run(&installation, &args.run)?;
    let mut order = resume_order(&installation, parent.run_id, args.message.as_deref())?;
    order.keep_workspace = args.keep_workspace;
    order.fault.clone_from(&environment.fault);
    let finished = govern(&installation, order, screen)?;
    tell(&installation, &finished, screen)?;
    Ok(exit_code(&finished))
}

impl From<ResumeError> for Failure {
    fn from(error: ResumeError) -> Self {
        let hint = match &error {
            ResumeError::Unable(_) => {
                "run its contract again with `herma run`; `herma engines` lists which engines can `resume`"
            }
            ResumeError::Child(_) => "run the contract that asked for it again with `herma run`",
            ResumeError::NoSession(_) | ResumeError::Kept(..) => "run its contract again with `herma run`",
            ResumeError::Evidence(..) => "nothing is built on it: run its contract again with `herma run`",
            ResumeError::MessageTooLong(_) => {
                "put what is long into a file of the target, or into the contract"
            }
            ResumeError::Secret(_) => "take it out: an agent needs no secret",
        };
        Self::bad_input(error).hint(hint)
    }
}
