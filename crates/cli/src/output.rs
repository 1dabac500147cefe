//! The output types of `--json`, which `herma-api` has.

pub use herma_api::output::*;

use crate::failure::Failure;

/// The output of a command that failed.
pub(crate) fn error_output(failure: &Failure) -> ErrorOutput {
    ErrorOutput {
        schema: "herma.error/v1",
        error: failure.what.clone(),
        next_step: failure.next_step.clone(),
        exit_code: failure.code,
    }
}
