//! The engine step: starts the engine in its destination and enforces its limits, until no process of it is alive.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use herma_core::engine::{EndedBy, EngineExit};
use herma_core::event::EngineStarted;
use herma_core::tool::{PermissionProtocol, ToolUse};
use herma_destination::{Exit, Job, Overlay, Prepared, Stdin};
use herma_engines::Engine;
use herma_evidence::layout;

use crate::child_queue::{ChildRunQueue, SOCKET_VARIABLE, WORKSPACE_VARIABLE};
use crate::children::Family;
use crate::context::RunContext;
use crate::dialogue::{Listener, StdinWriter};
use crate::engine_monitor::EngineMonitor;
use crate::engine_results::EngineResults;
use crate::error::Stop;
use crate::gates::Ready;
use crate::governance::RunGovernance;
use crate::path_shims;
use crate::process_end::limits;
use crate::program;
use crate::pump::{LineReaders, pump};
use crate::services::Services;
use crate::transcriber::Transcriber;
use crate::tree_diff::BaseTree;
use crate::verification::begin;

/// The most bytes of each of the engine's streams in the log.
const MAX_LOG_BYTES: u64 = 64 << 20;
/// The most lines of output that wait to be handled. An engine that writes faster blocks, as at any pipe.
const MAX_WAITING_LINES: usize = 64;

/// An engine that waits for its start, and the reader of its output.
pub(crate) struct StagedEngine<'a> {
    prepared: Prepared<'a>,
    listener: Listener,
}

impl StagedEngine<'_> {
    /// The same with the overlays of the environment.
    pub(crate) fn with_overlays(self, overlays: Vec<Overlay>) -> Self {
        Self { prepared: self.prepared.with_overlays(overlays), ..self }
    }
}

/// Prepares the start of the engine. It will not see the `hidden` directories of its workspace.
pub(crate) fn stage<'a>(
    ctx: &RunContext<'_>,
    services: &Services,
    engine: &dyn Engine,
    ready: &'a Ready,
    hidden: &[&str],
) -> Result<StagedEngine<'a>, Stop> {
    let destination = ready.destination.as_ref();
    let listener = Listener::of(ctx, engine, &destination.view(&services.job_paths(ctx)));
    let hidden = hidden.iter().map(|&name| name.to_owned()).collect();
    let job = Job { hidden, ..job(ctx, services, engine, ready, &listener)? };
    let prepared = begin(destination, job, ctx.contract)?;
    Ok(StagedEngine { prepared, listener })
}

/// Runs the engine. After this every process of it is dead, its logs are written, and no child of the run is left.
pub(crate) fn run_engine(
    ctx: &RunContext<'_>,
    services: &Services,
    staged: StagedEngine<'_>,
    base: &BaseTree,
    found: &mut Option<EngineResults>,
) -> Result<(), Stop> {
    let results = found.insert(EngineResults::default());
    let run = |children| attend(ctx, services, staged, children, results);
    let Some(queue) = services.governance.as_ref().map(RunGovernance::children) else { return run(None) };
    Family::of(ctx, base, services.router.as_ref()).while_served(&queue, || run(Some(&queue)))
}

fn attend(
    ctx: &RunContext<'_>,
    services: &Services,
    staged: StagedEngine<'_>,
    children: Option<&Arc<ChildRunQueue>>,
    found: &mut EngineResults,
) -> Result<(), Stop> {
    let engine = ctx.engine()?;
    let StagedEngine { prepared, mut listener } = staged;
    let redactor = services.redactor();
    let stdout_log = ctx.bundle.log(layout::ENGINE_STDOUT, redactor.clone(), MAX_LOG_BYTES)?;
    let stderr_log = ctx.bundle.log(layout::ENGINE_STDERR, redactor.clone(), MAX_LOG_BYTES)?;
    let transcriber = Transcriber::of(ctx, engine, redactor)?;
    found.own_model_calls = services.router.as_ref().map_or(0, |router| router.calls_begun(ctx.plan.run_id));
    let mut process = prepared.start()?;
    found.started = true;
    if engine.capabilities().tool_hooks.is_there() || listener.answers() {
        let (asking, policy) = (PermissionProtocol::Courtesy, ctx.policies.digest());
        found.tools = Some(ToolUse { asking, policy, asked: 0, denied: 0, unasked: 0, model_calls: None });
    }
    ctx.record(EngineStarted { engine: ctx.plan.engine.clone(), version: engine.version().to_owned() })?;
    ctx.settle()?;

    let (to_us, received) = sync_channel(MAX_WAITING_LINES);
    let mut monitor = EngineMonitor::new(ctx, StdinWriter::new(process.take_stdin()), children);
    listener.open().into_iter().try_for_each(|turn| monitor.take_turn(found, turn))?;
    let stdout =
        pump(process.take_stdout(), stdout_log, Some(LineReaders { listener, transcriber }), to_us.clone());
    let stderr = pump(process.take_stderr(), stderr_log, None, to_us);
    let (ended_by, exit) = monitor.wait(found, process.as_mut(), &received)?;
    monitor.drain(found, &received)?;
    let mut unread_lines = 0;
    for pump in [stdout, stderr] {
        unread_lines += pump.join().map_err(|_| Stop::panicked("reading the engine's output"))??;
    }
    // A signal from the terminal may have reached the engine too: its own exit says nothing then.
    let ended_by = if ctx.is_cancelled() { EndedBy::Interrupted } else { ended_by };
    let EngineMonitor { result, malformed, reason, .. } = monitor;
    found.ended = reason;
    found.protocol_error = malformed;
    let Exit { code, signal } = exit;
    found.exit = Some(EngineExit { code, signal, ended_by, result, unread_lines });
    Ok(())
}

fn job(
    ctx: &RunContext<'_>,
    services: &Services,
    engine: &dyn Engine,
    ready: &Ready,
    listener: &Listener,
) -> Result<Job, Stop> {
    let (engine_dir, paths) = (ctx.dirs.engine(), services.job_paths(ctx));
    let router = services.router.as_ref();
    let view = ready.destination.view(&paths);
    let launch = engine.launch(&ctx.order.assignment(), &view)?;
    // Only the agent's process gets the way to the model.
    let way = router.zip(view.router.as_ref()).map(|(router, socket)| router.variables(socket));
    let socket = view.governance.as_ref().map(|path| (SOCKET_VARIABLE, path));
    let own = socket.into_iter().chain([(WORKSPACE_VARIABLE, &view.workspace)]);
    let own = own.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
    let token = router.zip(launch.token).map(|(router, name)| router.token_in(&name));
    let file = launch.stdin.map_or(Stdin::Null, |name| Stdin::File(engine_dir.join(name)));
    let tools = &ready.tools;
    // Later ones win: nothing of the environment changes what the engine needs.
    let env = tools.env.iter().cloned().chain(launch.env).chain(own).chain(way.into_iter().flatten());
    let env = env.chain(token).collect();
    let mounts = tools.mounts.iter().cloned();
    let mounts = mounts.chain(program::mounts(ctx, engine)).chain(path_shims::mount(ctx)).collect();
    let path = path_shims::path(ctx).into_iter().chain(launch.path).chain(tools.search_path.iter().cloned());
    let job = Job::new(ctx.plan.run_id, launch.argv, paths)
        .with_env(env)
        .with_search_path(path.collect())
        .with_mounts(mounts)
        .with_stdin(if listener.answers() { Stdin::Pipe } else { file })
        .with_limits(limits(ctx.contract));
    Ok(if engine.built_in() { job.with_herma() } else { job })
}
