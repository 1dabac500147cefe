//! The preflight: the verification commands on the untouched base, before the engine starts and before a token is spent.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::environment::{BaseResult, PreflightRecord};
use herma_core::gate::Finding;
use herma_environments::build::BuiltEnvironment;
use herma_environments::preflight::{BaseRun, PreflightCache, PreflightKey, PreflightProblem, check, judge};
use herma_git::{CheckoutState, lay_out};

use super::view_of;
use crate::command_runner::{CommandRun, CommandRunner};
use crate::context::RunContext;
use crate::environment_views::ViewMaker;
use crate::error::Stop;
use crate::gates::Ready;
use crate::last_lines::LastLines;
use crate::tree_diff::BaseTree;

/// Runs the commands on the base, unless they ran before on the same base in the same environment.
pub(super) fn run(
    ctx: &RunContext<'_>,
    ready: &Ready,
    base: &BaseTree,
    environment: Option<(&BuiltEnvironment, &ViewMaker)>,
) -> Result<PreflightRecord, Stop> {
    // Without an environment nothing says which programs the commands found.
    let Some((built, _)) = environment else { return on_the_base(ctx, ready, base, None) };
    let cache = PreflightCache::open(&ctx.installation.home.preflights()).map_err(Stop::write)?;
    let key = PreflightKey {
        environment: Some(built.top().record().key),
        base_tree: &base.baseline.tree,
        history: base.repository(None).map(|repository| repository.digest()),
        content: base.git_dir.content_digest(),
        commands: &ctx.contract.terms.verify,
        destination: &format!("{}; files {}", ready.place, built.top().record().tree.digest),
    };
    if let Some(results) = cache.find(&key) {
        return Ok(PreflightRecord { reused: true, results, last_lines: Vec::new() });
    }
    ctx.note("preflight: running the verification commands on the base");
    let record = on_the_base(ctx, ready, base, environment)?;
    ctx.check_cancelled()?;
    // A failure may be one of chance: only a pass is kept.
    if record.results.iter().all(|result| matches!(result, BaseResult::Passed { .. })) {
        cache.keep(&key, &record.results).map_err(Stop::write)?;
    }
    Ok(record)
}

fn on_the_base(
    ctx: &RunContext<'_>,
    ready: &Ready,
    base: &BaseTree,
    environment: Option<(&BuiltEnvironment, &ViewMaker)>,
) -> Result<PreflightRecord, Stop> {
    let (checkout, home) = (ctx.dirs.preflight(), ctx.dirs.preflight_home());
    for dir in [&checkout, &home] {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    lay_out(&base.git_dir, &base.entries, &[&checkout])?;
    let checkout = CheckoutState::record(
        checkout,
        base.git_dir.format(),
        base.git_dir.checked_out(&base.entries).into_owned(),
    );
    if let Some(repository) = base.repository(None) {
        repository.make(&base.entries, checkout.root())?;
    }
    let write =
        |(built, views): (&BuiltEnvironment, &ViewMaker)| views.write(built.top(), &home, checkout.root());
    let first = environment.map(write).transpose()?;
    let fresh = |at: usize| {
        environment.zip(first.as_ref()).map(|(of, first)| view_of(of, ctx, first, at)).transpose()
    };
    let deadline = Instant::now() + ctx.contract.terms.limits.total.duration();
    let (mut results, mut last_lines) = (Vec::new(), Vec::new());
    for (at, command) in ctx.contract.terms.verify.iter().enumerate() {
        let lines = Arc::new(Mutex::new(LastLines::default()));
        let runner = CommandRunner { ready, deadline, log: lines.clone(), views: &fresh };
        let ran = runner.run(ctx, (at, command), checkout.root(), None)?;
        ctx.check_cancelled()?;
        let said = lines.lock().unwrap_or_else(PoisonError::into_inner).take(&ctx.events.redactor());
        let result = judged(&ran, &said, &checkout);
        if last_lines.is_empty() && !matches!(result, BaseResult::Passed { .. }) {
            last_lines = said;
        }
        let is_unrunnable = matches!(result, BaseResult::Unrunnable { .. });
        results.push(result);
        if is_unrunnable {
            break;
        }
    }
    ctx.remove_aside(checkout.root().to_owned());
    Ok(PreflightRecord { reused: false, results, last_lines })
}

fn judged(ran: &CommandRun, last_lines: &[String], checkout: &CheckoutState) -> BaseResult {
    let command = ran.verification.command.as_str();
    let changed = checkout.changed();
    if let Some(first) = changed.first() {
        return BaseResult::Unrunnable {
            command: command.to_owned(),
            reason: format!("it changes tracked files, such as {}", first.shortened()),
            fix: "make it leave them alone: verification refuses a command that changes what it tests"
                .to_owned(),
        };
    }
    judge(&BaseRun { command, exit: ran.exit, exceeded: ran.exceeded, last_lines })
}

/// Whether the engine may start after these results.
pub(super) fn finding(ctx: &RunContext<'_>, seen: &PreflightRecord) -> Finding {
    match check(&seen.results, ctx.contract.terms.expect_before) {
        Ok(()) => Finding::Passed,
        Err(problem) => {
            let record = Blocker::VerificationUnrunnable.because(problem.to_string());
            Finding::Missing(match problem {
                PreflightProblem::Unrunnable { fix, .. } => {
                    BlockerRecord { next_step: format!("{}.", capitalized(&fix)), ..record }
                }
                PreflightProblem::Unexpected { .. } => record,
            })
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
