//! Starts the engine in its destination and holds it to its limits, until nothing of it is alive.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use herma_core::Contract;
use herma_core::engine::{EndedBy, EngineExit};
use herma_core::event::EngineStarted;
use herma_core::tool::{Asking, ToolUse};
use herma_destination::{Exit, Job, JobPaths, Limits, Prepared, Process, Stdin};
use herma_engines::Engine;
use herma_evidence::{Redactor, layout};

use crate::attempts;
use crate::children::{self, ChildDoor, Family};
use crate::dialogue::{Listener, Voice};
use crate::error::Stop;
use crate::gates::Ready;
use crate::governance::RunGovernance;
use crate::models::RunRouter;
use crate::program;
use crate::pump::pump;
use crate::run::Run;
use crate::watch::Watch;

/// How much of each of the engine's streams is kept.
const LOG_CAP: u64 = 64 << 20;
/// How much of what an engine says may wait to be heard. One that speaks faster than herma listens waits, as at any pipe, and
/// its time runs out while it does: it must not fill herma's memory instead.
const MOST_WAITING: usize = 64;

/// How long a stream may stay open after everything is dead before whoever holds it is looked for again.
pub(crate) const HOLDERS: Duration = Duration::from_millis(100);
/// How long that is tried.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What every process of a run may use, and within which time it has to be started.
pub(crate) fn limits(contract: &Contract) -> Limits {
    let limits = &contract.terms.limits;
    Limits::with_memory(limits.memory).within(limits.total.duration())
}

/// An engine that waits for its start, and who will listen to it.
pub(crate) struct Staged<'a> {
    prepared: Prepared<'a>,
    listener: Listener,
}

/// Makes ready to start the engine, which has been prepared in its directory. It will not see what is in the `hidden`
/// directories of its workspace.
pub(crate) fn stage<'a>(
    run: &Run<'_>,
    engine: &dyn Engine,
    ready: &'a Ready,
    hidden: &[&str],
) -> Result<Staged<'a>, Stop> {
    let destination = ready.destination.as_ref();
    let listener = Listener::of(run, engine, &destination.view(&job_paths(run)));
    let hidden = hidden.iter().map(|&name| name.to_owned()).collect();
    let job = Job { hidden, ..job(run, engine, ready, &listener)? };
    let prepared = Prepared::begin(destination, job)?;
    Ok(Staged { prepared, listener })
}

/// Runs the engine. When this returns, every process of it is dead, its logs are written, and no child of the run is left.
pub(crate) fn engine(run: &mut Run<'_>, engine: &dyn Engine, staged: Staged<'_>) -> Result<(), Stop> {
    let Some(door) = run.governance.as_ref().map(RunGovernance::children) else {
        return attend(run, engine, staged, None);
    };
    Family::of(run).while_served(&door, || attend(run, engine, staged, Some(&door)))
}

fn attend(
    run: &mut Run<'_>,
    engine: &dyn Engine,
    staged: Staged<'_>,
    children: Option<&Arc<ChildDoor>>,
) -> Result<(), Stop> {
    let Staged { prepared, mut listener } = staged;
    let redactor = run.router.as_ref().map_or_else(Redactor::default, RunRouter::redactor);
    let stdout_log = run.bundle.log(layout::ENGINE_STDOUT, redactor.clone(), LOG_CAP)?;
    let stderr_log = run.bundle.log(layout::ENGINE_STDERR, redactor, LOG_CAP)?;
    run.facts.own_model_calls = run.router.as_ref().map_or(0, |router| router.calls_begun(run.plan.run_id));
    let mut process = prepared.start()?;
    run.facts.engine_started = true;
    if engine.capabilities().tool_hooks.is_there() || listener.speaks() {
        let (asking, policy) = (Asking::Courtesy, run.policies.digest());
        let model_calls = None;
        run.facts.tools = Some(ToolUse { asking, policy, asked: 0, denied: 0, unasked: 0, model_calls });
    }
    run.record(EngineStarted { engine: run.plan.engine.clone(), version: engine.version().to_owned() })?;
    run.settle()?;

    let (to_us, heard) = sync_channel(MOST_WAITING);
    let limits = &run.contract.terms.limits;
    let mut watch = Watch::new(limits, Voice::new(process.take_stdin()), children);
    listener.open().into_iter().try_for_each(|turn| watch.take(run, turn))?;
    let stdout = pump(process.take_stdout(), stdout_log, Some(listener), to_us.clone());
    let stderr = pump(process.take_stderr(), stderr_log, None, to_us);
    let (ended_by, exit) = watch.until_the_end(run, process.as_mut(), &heard)?;
    watch.until_silence(run, &heard)?;
    let mut unread_lines = 0;
    for pump in [stdout, stderr] {
        unread_lines += pump.join().map_err(|_| Stop::panicked("reading the engine's output"))??;
    }
    // At a terminal the engine may have been told as well as herma: how it ended says nothing then.
    let told = run.submission.cancellation.is_cancelled();
    let ended_by = if told { EndedBy::Interrupted } else { ended_by };
    let Watch { result, malformed, reason, .. } = watch;
    run.facts.engine_ended = reason;
    run.facts.protocol_error = malformed;
    let Exit { code, signal } = exit;
    run.facts.engine_exit = Some(EngineExit { code, signal, ended_by, result, unread_lines });
    Ok(())
}

/// Where the engine works, and what it may call.
pub(crate) fn job_paths(run: &Run<'_>) -> JobPaths {
    JobPaths {
        workspace: run.dirs.workspace(),
        engine_dir: Some(run.dirs.engine()),
        router: run.router.as_ref().map(|router| router.socket().to_owned()),
        egress: run.egress.as_ref().map(|egress| egress.socket().to_owned()),
        governance: run.governance.as_ref().map(|governance| governance.socket().to_owned()),
    }
}

fn job(run: &Run<'_>, engine: &dyn Engine, ready: &Ready, listener: &Listener) -> Result<Job, Stop> {
    let (engine_dir, paths) = (run.dirs.engine(), job_paths(run));
    let router = run.router.as_ref();
    let view = ready.destination.view(&paths);
    let launch = engine.launch(&run.order.assignment(), &view)?;
    // The way to the model is known to the agent's process only.
    let way = router.zip(view.router.as_ref()).map(|(router, socket)| router.variables(socket));
    let socket = view.governance.as_ref().map(|path| (children::SOCKET_VARIABLE, path));
    let family = socket.into_iter().chain([(children::WORKSPACE_VARIABLE, &view.workspace)]);
    let family = family.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
    let token = router.zip(launch.token).map(|(router, name)| router.token_in(&name));
    let file = launch.stdin.map_or(Stdin::Null, |name| Stdin::File(engine_dir.join(name)));
    let env = launch.env.into_iter().chain(family).chain(way.into_iter().flatten()).chain(token).collect();
    let toolchains = &ready.toolchains;
    let mounts = toolchains.mounts.iter().cloned();
    let mounts = mounts.chain(program::mounts(run, engine)).chain(attempts::mount(run)).collect();
    let path = attempts::path(run).into_iter().chain(launch.path).chain(toolchains.path.iter().cloned());
    let job = Job::new(run.plan.run_id, launch.argv, paths)
        .with_env(env)
        .with_search_path(path.collect())
        .with_mounts(mounts)
        .with_stdin(if listener.speaks() { Stdin::Pipe } else { file })
        .with_limits(limits(run.contract));
    Ok(if engine.built_in() { job.with_herma() } else { job })
}

/// The exit of a process that was lost from sight: nobody can say what it was.
pub(crate) const UNKNOWN: Exit = Exit { code: None, signal: None };

/// How a process ended, and what herma knows beyond its exit.
pub(crate) struct Ending {
    pub(crate) exit: Option<Exit>,
    pub(crate) reason: Option<String>,
}

impl Ending {
    /// What waiting came to. That a process is lost, as when somebody kills its container, is its own failure and not
    /// herma's: the run is judged by it.
    pub(crate) fn of(waited: io::Result<Option<Exit>>, process: &dyn Process) -> Self {
        let over = process.exceeded_limit().map(|limit| format!("it met the limit `{limit}`"));
        match waited {
            Ok(exit) => Self { exit, reason: over },
            Err(why) => Self { exit: Some(UNKNOWN), reason: over.or_else(|| Some(why.to_string())) },
        }
    }
}
