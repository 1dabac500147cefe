//! The preflight: the verification commands on the untouched base, before an agent starts. It distinguishes a command that
//! cannot run at all from one that fails, and gives the likely reason and the fix.

mod cache;
mod rules;

use std::fmt;

pub use herma_core::environment::BaseResult;
use herma_core::environment::ExpectBefore;
use herma_core::visible::visible_line;
use herma_destination::{Exit, LimitName};

pub use cache::{PreflightCache, PreflightKey};

/// How a command ended on the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseRun<'a> {
    /// The command.
    pub command: &'a str,
    /// Its exit; none if it took too long.
    pub exit: Option<Exit>,
    /// The limit that it exceeded.
    pub exceeded: Option<LimitName>,
    /// The last lines that it printed.
    pub last_lines: &'a [String],
}

/// Why a run does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreflightProblem {
    /// A command cannot run.
    Unrunnable {
        /// The command.
        command: String,
        /// The likely reason.
        reason: String,
        /// The fix.
        fix: String,
    },
    /// The base does what it must not.
    Unexpected {
        /// The expected result.
        expected: ExpectBefore,
        /// The commands that decide it.
        commands: Vec<String>,
    },
}

impl fmt::Display for PreflightProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrunnable { command, reason, fix } => {
                let (command, reason) = (visible_line(command), visible_line(reason));
                write!(f, "`{command}` cannot run on the base: {reason}; {fix}")
            }
            Self::Unexpected { expected: ExpectBefore::Fail, .. } => f.write_str(
                "`expect_before: fail`, and every command passes on the base: there is nothing to fix",
            ),
            Self::Unexpected { commands, .. } => {
                let commands = visible_line(&commands.join("`, `"));
                write!(f, "`expect_before: pass`, and the base fails `{commands}`")
            }
        }
    }
}

/// Judges one command.
#[must_use]
pub fn judge(run: &BaseRun<'_>) -> BaseResult {
    let command = run.command.to_owned();
    let unrunnable = |reason: String, fix: &str| BaseResult::Unrunnable {
        command: command.clone(),
        reason,
        fix: fix.to_owned(),
    };
    let Some(exit) = run.exit else {
        return unrunnable("it took too long".to_owned(), "raise `limits.total`, or run fewer tests");
    };
    if exit.success() {
        return BaseResult::Passed { command };
    }
    if let Some(limit) = run.exceeded {
        return unrunnable(format!("it exceeded the limit `{limit}`"), "raise the limit, or run fewer tests");
    }
    match rules::reason(run.command, exit.code, run.last_lines) {
        Some((reason, fix)) => unrunnable(reason, fix),
        None => BaseResult::Failed { command, exit_code: exit.code },
    }
}

/// Whether a run may start after these results.
pub fn check(results: &[BaseResult], expected: ExpectBefore) -> Result<(), PreflightProblem> {
    let mut failed = Vec::new();
    for result in results {
        match result {
            BaseResult::Passed { .. } => {}
            BaseResult::Failed { command, .. } => failed.push(command.clone()),
            BaseResult::Unrunnable { command, reason, fix } => {
                let (command, reason, fix) = (command.clone(), reason.clone(), fix.clone());
                return Err(PreflightProblem::Unrunnable { command, reason, fix });
            }
        }
    }
    match expected {
        ExpectBefore::Pass if !failed.is_empty() => {
            Err(PreflightProblem::Unexpected { expected, commands: failed })
        }
        ExpectBefore::Fail if failed.is_empty() => {
            Err(PreflightProblem::Unexpected { expected, commands: Vec::new() })
        }
        ExpectBefore::Any | ExpectBefore::Pass | ExpectBefore::Fail => Ok(()),
    }
}
