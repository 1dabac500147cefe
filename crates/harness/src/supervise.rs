//! Starts the engine in its destination and holds it to its limits, until nothing of it is alive.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use herma_destination::{Exit, Job, Limits as JobLimits, Prepared, Process, Rooms, Stdin, leftovers};
use herma_engines::{Engine, Said, SessionId, TOOL_HOOKS, Turn};
use herma_evidence::{Redactor, layout};
use herma_model::EventType;
use herma_model::contract::Limits;
use herma_model::engine::{EndedBy, EngineExit, EngineResult};
use herma_model::tool::{Asking, ToolUse};
use serde_json::json;

use crate::attempts;
use crate::children::{self, ChildDoor, Family};
use crate::dialogue::{Listener, Voice};
use crate::error::Stop;
use crate::gates::Ready;
use crate::governance::{RunGovernance, Seen, bounded, data};
use crate::models::RunRouter;
use crate::permission::{self, Judgement};
use crate::program;
use crate::pump::{Heard, pump};
use crate::run::Run;

/// How much of each of the engine's streams is kept.
const LOG_CAP: u64 = 64 << 20;
/// How long an engine may linger after it gave its result.
const LINGER: Duration = Duration::from_secs(10);
/// How long an engine has between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How many of the things that an engine says have an event of their own: it can talk without end.
const MOST_TOLD: u64 = 20_000;
/// How many items of a plan an event holds.
const MOST_ITEMS: usize = 256;
/// How often a process is looked at that holds its streams open.
const LOOK: Duration = Duration::from_millis(20);

/// How long a stream may stay open after everything is dead before whoever holds it is looked for again.
pub(crate) const HOLDERS: Duration = Duration::from_millis(100);
/// How long that is tried.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

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
    let listener = Listener::of(run, engine, &destination.view(&rooms(run)));
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
    if engine.capabilities().contains(&TOOL_HOOKS) || listener.speaks() {
        let (asking, policy) = (Asking::Courtesy, run.policies.digest());
        let model_calls = None;
        run.facts.tools = Some(ToolUse { asking, policy, asked: 0, denied: 0, unasked: 0, model_calls });
    }
    run.record(EventType::EngineStarted, json!({ "engine": run.plan.engine, "version": engine.version() }))?;
    run.settle()?;

    let (to_us, heard) = channel();
    let limits = &run.contract.terms.limits;
    let mut watch = Watch::new(limits, Voice::new(process.take_stdin()), children);
    listener.open().into_iter().try_for_each(|turn| watch.take(run, turn))?;
    let stdout = pump(process.take_stdout(), stdout_log, Some(listener), to_us.clone());
    let stderr = pump(process.take_stderr(), stderr_log, None, to_us);
    let (ended_by, exit) = watch.until_the_end(run, process.as_mut(), &heard)?;
    watch.until_silence(run, &heard)?;
    for pump in [stdout, stderr] {
        pump.join().map_err(|_| Stop::panicked("reading the engine's output"))??;
    }
    let Watch { result, malformed, reason, .. } = watch;
    run.facts.engine_ended = reason;
    run.facts.protocol_error = malformed;
    run.facts.engine_exit = Some(EngineExit { code: exit.code, signal: exit.signal, ended_by, result });
    Ok(())
}

/// Where the engine works, and what it may call.
pub(crate) fn rooms(run: &Run<'_>) -> Rooms {
    Rooms {
        workspace: run.dirs.workspace(),
        engine_dir: Some(run.dirs.engine()),
        router: run.router.as_ref().map(|router| router.socket().to_owned()),
        egress: run.egress.as_ref().map(|egress| egress.socket().to_owned()),
        governance: run.governance.as_ref().map(|governance| governance.socket().to_owned()),
    }
}

fn job(run: &Run<'_>, engine: &dyn Engine, ready: &Ready, listener: &Listener) -> Result<Job, Stop> {
    let (engine_dir, rooms) = (run.dirs.engine(), rooms(run));
    let router = run.router.as_ref();
    let view = ready.destination.view(&rooms);
    let launch = engine.launch(&run.order.assignment(), &view)?;
    // The way to the model is known to the agent's process only.
    let way = router.zip(view.router.as_ref()).map(|(router, socket)| router.variables(socket));
    let socket = view.governance.as_ref().map(|path| (children::SOCKET_VARIABLE, path));
    let family = socket.into_iter().chain([(children::WORKSPACE_VARIABLE, &view.workspace)]);
    let family = family.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
    let token = router.zip(launch.token).map(|(router, name)| router.token_in(&name));
    let file = launch.stdin.map_or(Stdin::Null, |name| Stdin::File(engine_dir.join(name)));
    Ok(Job {
        run_id: run.plan.run_id,
        argv: launch.argv,
        env: launch.env.into_iter().chain(family).chain(way.into_iter().flatten()).chain(token).collect(),
        path: attempts::path(run)
            .into_iter()
            .chain(launch.path)
            .chain(ready.toolchains.path.iter().cloned())
            .collect(),
        rooms,
        mounts: ready
            .toolchains
            .mounts
            .iter()
            .cloned()
            .chain(program::mounts(run, engine))
            .chain(attempts::mount(run))
            .collect(),
        hidden: Vec::new(),
        stdin: if listener.speaks() { Stdin::Pipe } else { file },
        limits: JobLimits::with_memory(run.contract.terms.limits.memory),
        herma: engine.built_in(),
    })
}

/// Holds an engine to its limits.
struct Watch<'a> {
    limits: &'a Limits,
    children: Option<&'a Arc<ChildDoor>>,
    voice: Voice,
    started: Instant,
    last_life: Option<Instant>,
    result: Option<EngineResult>,
    result_at: Option<Instant>,
    malformed: Option<String>,
    /// How much it has said.
    told: u64,
    /// What else is known of its end.
    reason: Option<String>,
}

impl<'a> Watch<'a> {
    fn new(limits: &'a Limits, voice: Voice, children: Option<&'a Arc<ChildDoor>>) -> Self {
        let started = Instant::now();
        Self {
            limits,
            children,
            voice,
            started,
            last_life: None,
            result: None,
            result_at: None,
            malformed: None,
            told: 0,
            reason: None,
        }
    }

    /// Waits until the engine ends or a limit ends it, then until nothing of it is alive.
    fn until_the_end(
        &mut self,
        run: &mut Run<'_>,
        process: &mut dyn Process,
        heard: &Receiver<Heard>,
    ) -> Result<(EndedBy, Exit), Stop> {
        loop {
            let pause = match heard.recv_timeout(LOOK) {
                Ok(heard) => {
                    self.hear(run, heard)?;
                    Duration::ZERO
                }
                Err(RecvTimeoutError::Timeout) => Duration::ZERO,
                // Its streams are closed: it is about to end, or will say nothing more.
                Err(RecvTimeoutError::Disconnected) => LOOK,
            };
            let ended = process.wait(pause);
            if !matches!(ended, Ok(None)) {
                let Ending { exit, reason } = Ending::of(ended, process);
                process.kill_all()?;
                self.reason = reason;
                return Ok((EndedBy::Exited, exit.unwrap_or(UNKNOWN)));
            }
            self.wait_for_children();
            let orphan = run.is_orphan().then_some(EndedBy::TotalLimit);
            if let Some(limit) = self.over().or(orphan) {
                if self.voice.farewell() {
                    // Told to stop, and that nothing more will be said. How it takes that does not matter.
                    let _ = process.wait(GRACE);
                }
                return Ok((limit, stop(process)?));
            }
        }
    }

    /// Hears what was said up to the end. Streams that stay open are held by something that was not found before.
    fn until_silence(&mut self, run: &mut Run<'_>, heard: &Receiver<Heard>) -> Result<(), Stop> {
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            match heard.recv_timeout(HOLDERS) {
                Ok(heard) => self.hear(run, heard)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => drop(leftovers::kill(run.plan.run_id)?),
            }
        }
        Err(Stop::Internal("something holds the engine's output open and cannot be found".to_owned()))
    }

    /// Who waits for a child is not idle.
    fn wait_for_children(&mut self) {
        if self.children.is_some_and(|door| door.is_busy())
            && let Some(life) = &mut self.last_life
        {
            *life = Instant::now();
        }
    }

    /// The limit that is over, if one is.
    fn over(&self) -> Option<EndedBy> {
        let limits = self.limits;
        // Who was answered to the end and told so has nothing left to do.
        let linger = if self.voice.is_over() { GRACE } else { LINGER }.min(limits.idle.duration());
        match (self.result_at, self.last_life) {
            (Some(at), _) if at.elapsed() >= linger => Some(EndedBy::EarlyStop),
            _ if self.started.elapsed() >= limits.total.duration() => Some(EndedBy::TotalLimit),
            (None, Some(life)) if life.elapsed() >= limits.idle.duration() => Some(EndedBy::IdleLimit),
            (_, None) if self.started.elapsed() >= limits.startup.duration() => Some(EndedBy::StartupLimit),
            _ => None,
        }
    }

    fn hear(&mut self, run: &mut Run<'_>, heard: Heard) -> Result<(), Stop> {
        let said = match heard {
            Heard::Life => {
                self.last_life = Some(Instant::now());
                return Ok(());
            }
            Heard::Said(said) => said,
            Heard::Turn(turn) => return self.take(run, turn),
        };
        self.heard_that(run, said)
    }

    /// Takes herma's turn in a dialogue.
    fn take(&mut self, run: &mut Run<'_>, turn: Turn) -> Result<(), Stop> {
        let said = match turn {
            Turn::Say(line) => self.voice.say(&line),
            Turn::Answer(question) => {
                let judgement = permission::judge(run, question.tool, question.command);
                let yes = question.yes.filter(|_| judgement.decision.allowed);
                self.evaluated(run, &judgement, Seen::Dialogue, yes.is_some())?;
                self.voice.say(&yes.unwrap_or(question.no))
            }
            Turn::Farewell(line) => {
                self.voice.prepare_farewell(line);
                Ok(())
            }
            Turn::End => {
                self.voice.end();
                Ok(())
            }
        };
        if let Err(why) = said {
            self.malformed.get_or_insert(why);
        }
        Ok(())
    }

    fn heard_that(&mut self, run: &mut Run<'_>, said: Said) -> Result<(), Stop> {
        match said {
            Said::Hello => Ok(()),
            Said::All(all) => all.into_iter().try_for_each(|said| self.heard_that(run, said)),
            Said::Session(session) => {
                run.facts.session = SessionId::try_from(session.clone()).ok();
                self.tell(run, EventType::EngineMessage, json!({ "session": bounded(session) }))
            }
            Said::NoWayBack => {
                // What would be kept of it could not be used.
                run.facts.session = None;
                Ok(())
            }
            Said::Used { input, output } => self.tell(
                run,
                EventType::EngineMessage,
                json!({ "input_tokens": input, "output_tokens": output }),
            ),
            Said::Message(text) => self.tell(run, EventType::EngineMessage, json!({ "text": bounded(text) })),
            Said::Plan(items) => {
                let items: Vec<String> = items.into_iter().take(MOST_ITEMS).map(bounded).collect();
                self.tell(run, EventType::PlanUpdated, json!({ "items": items }))
            }
            Said::Tool { name, command } => {
                let judgement = permission::judge(run, name, command);
                self.evaluated(run, &judgement, Seen::Told, true)
            }
            Said::Result(result) => {
                // The worst word counts: an engine cannot take back that it failed.
                let worse = |old: EngineResult| if old == EngineResult::Completed { result } else { old };
                self.result = Some(self.result.map_or(result, worse));
                self.result_at.get_or_insert_with(Instant::now);
                Ok(())
            }
            Said::Malformed(what) => {
                self.malformed.get_or_insert(what);
                Ok(())
            }
        }
    }
}

impl Watch<'_> {
    /// Records what the engine said, as long as there is room for it.
    fn tell(&mut self, run: &mut Run<'_>, kind: EventType, data: serde_json::Value) -> Result<(), Stop> {
        if self.has_room() { run.record_said(kind, data) } else { Ok(()) }
    }

    /// Records a tool call, and what is to be said of it; `allowed` is what the agent was told, where it asked.
    fn evaluated(
        &mut self,
        run: &mut Run<'_>,
        judgement: &Judgement,
        seen: Seen,
        allowed: bool,
    ) -> Result<(), Stop> {
        let Judgement { call, decision, forbidden } = judgement;
        let data = data(call, decision, forbidden, seen, allowed);
        let told = if forbidden.is_empty() { self.has_room() } else { true };
        // That it was kept from doing it does not make it as if it had not tried.
        run.facts.attempted(forbidden.iter().copied());
        if seen.asked() {
            run.facts.note_asked(1, u64::from(!allowed));
        } else {
            run.facts.note_told();
        }
        if told { run.record(EventType::ToolEvaluated, data) } else { Ok(()) }
    }

    /// Whether one more thing that the engine said gets an event. All of it is in its log.
    fn has_room(&mut self) -> bool {
        self.told += 1;
        self.told <= MOST_TOLD
    }
}

/// The exit of a process that was lost from sight: nobody can say what it was.
const UNKNOWN: Exit = Exit { code: None, signal: None };

/// How a process ended, and what herma knows beyond its exit.
pub(crate) struct Ending {
    pub(crate) exit: Option<Exit>,
    pub(crate) reason: Option<String>,
}

impl Ending {
    /// What waiting came to. That a process is lost, as when somebody kills its container, is its own failure and not
    /// herma's: the run is judged by it.
    pub(crate) fn of(waited: std::io::Result<Option<Exit>>, process: &dyn Process) -> Self {
        let over = process.over_limit().map(|limit| format!("it met the limit `{limit}`"));
        match waited {
            Ok(exit) => Self { exit, reason: over },
            Err(why) => Self { exit: Some(UNKNOWN), reason: over.or_else(|| Some(why.to_string())) },
        }
    }
}

/// TERM, grace, KILL of everything.
fn stop(process: &mut dyn Process) -> Result<Exit, Stop> {
    process.terminate();
    // However it ends in its grace, or is lost: what counts is that nothing of it is left.
    let _ = process.wait(GRACE);
    Ok(process.kill_all()?)
}
