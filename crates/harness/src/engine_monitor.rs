//! Reads an engine's output and enforces its limits, until it has ended.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use herma_core::contract::Limits;
use herma_core::engine::{EndedBy, EngineResult};
use herma_core::event::{EngineMessage, EventData, PlanUpdated};
use herma_destination::{Exit, Process, leftovers};
use herma_engines::{AgentEvent, DialogueAction, PermissionRequest, PermissionSource, SessionId, hook};

use crate::child_queue::ChildRunQueue;
use crate::context::RunContext;
use crate::dialogue::StdinWriter;
use crate::engine_results::EngineResults;
use crate::error::Stop;
use crate::governance::{Seen, bounded, data};
use crate::permission::{self, Judgement};
use crate::process_end::{HOLDER_INTERVAL, ProcessEnd, STREAM_TIMEOUT, UNKNOWN_EXIT};
use crate::pump::EngineOutput;

/// The longest life of an engine after its result.
const LINGER: Duration = Duration::from_secs(10);
/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// The most events from one engine's output.
const MAX_EVENTS: u64 = 20_000;
/// The most items of a plan in an event.
const MAX_PLAN_ITEMS: usize = 256;
/// The pause between two looks at a process whose streams are closed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Enforces the limits of one engine.
pub(crate) struct EngineMonitor<'a> {
    ctx: &'a RunContext<'a>,
    limits: &'a Limits,
    children: Option<&'a Arc<ChildRunQueue>>,
    stdin: StdinWriter,
    started: Instant,
    last_output: Option<Instant>,
    pub(crate) result: Option<EngineResult>,
    result_at: Option<Instant>,
    pub(crate) malformed: Option<String>,
    /// The number of things that it has said.
    said: u64,
    /// The cause of its end beyond its exit.
    pub(crate) reason: Option<String>,
}

/// The state of the engine's process.
enum Polled {
    Running,
    Ended(ProcessEnd),
}

impl<'a> EngineMonitor<'a> {
    pub(crate) fn new(
        ctx: &'a RunContext<'a>,
        stdin: StdinWriter,
        children: Option<&'a Arc<ChildRunQueue>>,
    ) -> Self {
        Self {
            ctx,
            limits: &ctx.contract.terms.limits,
            children,
            stdin,
            started: Instant::now(),
            last_output: None,
            result: None,
            result_at: None,
            malformed: None,
            said: 0,
            reason: None,
        }
    }

    /// Waits until the engine ends, a limit ends it or the run is cancelled, then until no process of it is alive.
    pub(crate) fn wait(
        &mut self,
        found: &mut EngineResults,
        process: &mut dyn Process,
        received: &Receiver<EngineOutput>,
    ) -> Result<(EndedBy, Exit), Stop> {
        loop {
            if let Polled::Ended(ProcessEnd { exit, reason }) = self.poll(found, process, received)? {
                process.kill_all()?;
                self.reason = reason;
                return Ok((EndedBy::Exited, exit.unwrap_or(UNKNOWN_EXIT)));
            }
            self.reset_idle_for_children();
            let cancelled = self.ctx.is_cancelled().then_some(EndedBy::Interrupted);
            let orphan = self.ctx.is_orphan().then_some(EndedBy::TotalLimit);
            if let Some(ended_by) = cancelled.or(self.exceeded_limit()).or(orphan) {
                if self.stdin.shut_down() {
                    self.give_grace(found, process, received)?;
                }
                process.terminate();
                self.give_grace(found, process, received)?;
                return Ok((ended_by, process.kill_all()?));
            }
        }
    }

    /// Handles the next output, if it comes soon, and polls the process.
    fn poll(
        &mut self,
        found: &mut EngineResults,
        process: &mut dyn Process,
        received: &Receiver<EngineOutput>,
    ) -> Result<Polled, Stop> {
        let pause = match received.recv_timeout(POLL_INTERVAL) {
            Ok(received) => {
                self.handle(found, received)?;
                Duration::ZERO
            }
            Err(RecvTimeoutError::Timeout) => Duration::ZERO,
            // Its streams are closed: it is about to end, or will write nothing more.
            Err(RecvTimeoutError::Disconnected) => POLL_INTERVAL,
        };
        Ok(match process.wait(pause) {
            Ok(None) => Polled::Running,
            ended => Polled::Ended(ProcessEnd::of(ended, process)),
        })
    }

    /// Waits for its end a little longer. Keep draining stdout: a blocked writer cannot exit.
    fn give_grace(
        &mut self,
        found: &mut EngineResults,
        process: &mut dyn Process,
        received: &Receiver<EngineOutput>,
    ) -> Result<(), Stop> {
        let began = Instant::now();
        while began.elapsed() < GRACE && matches!(self.poll(found, process, received)?, Polled::Running) {}
        Ok(())
    }

    /// Handles the output up to its end. A process that was not found before holds streams that stay open.
    pub(crate) fn drain(
        &mut self,
        found: &mut EngineResults,
        received: &Receiver<EngineOutput>,
    ) -> Result<(), Stop> {
        let give_up = Instant::now() + STREAM_TIMEOUT;
        while Instant::now() < give_up {
            match received.recv_timeout(HOLDER_INTERVAL) {
                Ok(received) => self.handle(found, received)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => drop(leftovers::kill(self.ctx.plan.run_id)?),
            }
        }
        Err(Stop::internal("something holds the engine's output open and cannot be found"))
    }

    /// An engine that waits for a child run is not idle.
    fn reset_idle_for_children(&mut self) {
        if self.children.is_some_and(|queue| queue.is_busy())
            && let Some(last) = &mut self.last_output
        {
            *last = Instant::now();
        }
    }

    /// The limit that the engine has exceeded.
    fn exceeded_limit(&self) -> Option<EndedBy> {
        let limits = self.limits;
        // An engine whose dialogue is complete has nothing left to do.
        let linger = if self.stdin.is_complete() { GRACE } else { LINGER }.min(limits.idle.duration());
        match (self.result_at, self.last_output) {
            (Some(at), _) if at.elapsed() >= linger => Some(EndedBy::EarlyStop),
            _ if self.started.elapsed() >= limits.total.duration() => Some(EndedBy::TotalLimit),
            (None, Some(last)) if last.elapsed() >= limits.idle.duration() => Some(EndedBy::IdleLimit),
            (_, None) if self.started.elapsed() >= limits.startup.duration() => Some(EndedBy::StartupLimit),
            _ => None,
        }
    }

    fn handle(&mut self, found: &mut EngineResults, received: EngineOutput) -> Result<(), Stop> {
        match received {
            EngineOutput::Life => {
                self.last_output = Some(Instant::now());
                Ok(())
            }
            EngineOutput::AgentEvent(said) => self.handle_event(found, said),
            EngineOutput::Turn(turn) => self.take_turn(found, turn),
        }
    }

    /// Takes herma's turn in a dialogue.
    pub(crate) fn take_turn(&mut self, found: &mut EngineResults, turn: DialogueAction) -> Result<(), Stop> {
        let written = match turn {
            DialogueAction::Say(line) => self.stdin.write_line(&line),
            DialogueAction::Answer(question) => {
                let PermissionRequest { tool, command, by, yes, no } = question;
                let judgement = permission::judge(self.ctx, tool, command);
                let yes = yes.filter(|_| judgement.decision.allowed);
                let seen = if by == PermissionSource::Hook { Seen::Hook } else { Seen::Dialogue };
                self.record_tool_call(found, &judgement, seen, yes.is_some())?;
                let answer = yes.unwrap_or_else(|| no.because(&hook::in_words(&judgement.decision.reason)));
                self.stdin.write_line(&answer)
            }
            DialogueAction::ShutdownMessage(line) => {
                self.stdin.set_shutdown_message(line);
                Ok(())
            }
            DialogueAction::End => {
                self.stdin.close();
                Ok(())
            }
        };
        if let Err(too_much) = written {
            self.malformed.get_or_insert(too_much.to_string());
        }
        Ok(())
    }

    fn handle_event(&mut self, found: &mut EngineResults, said: AgentEvent) -> Result<(), Stop> {
        match said {
            AgentEvent::Hello => Ok(()),
            AgentEvent::All(all) => all.into_iter().try_for_each(|said| self.handle_event(found, said)),
            AgentEvent::Session(session) => {
                found.session = SessionId::try_from(session.clone()).ok();
                self.record_output(EngineMessage::Session { session: bounded(session) })
            }
            AgentEvent::NoWayBack => {
                // No later run could resume it.
                found.session = None;
                Ok(())
            }
            AgentEvent::Used { input, output } => {
                self.record_output(EngineMessage::Tokens { input_tokens: input, output_tokens: output })
            }
            AgentEvent::Message(text) => self.record_output(EngineMessage::Text { text: bounded(text) }),
            AgentEvent::Plan(items) => {
                let items: Vec<String> = items.into_iter().take(MAX_PLAN_ITEMS).map(bounded).collect();
                self.record_output(PlanUpdated { items })
            }
            AgentEvent::Tool { name, command } => {
                let judgement = permission::judge(self.ctx, name, command);
                self.record_tool_call(found, &judgement, Seen::Told, true)
            }
            AgentEvent::Result(result) => {
                // The worst result counts: an engine cannot take back that it failed.
                let worse = |old: EngineResult| if old == EngineResult::Completed { result } else { old };
                self.result = Some(self.result.map_or(result, worse));
                self.result_at.get_or_insert_with(Instant::now);
                Ok(())
            }
            AgentEvent::Malformed(what) => {
                self.malformed.get_or_insert(what);
                Ok(())
            }
        }
    }
}

impl EngineMonitor<'_> {
    /// Records what the engine said, up to the limit of events.
    fn record_output(&mut self, data: impl Into<EventData>) -> Result<(), Stop> {
        if self.has_room() { self.ctx.record_agent(data) } else { Ok(()) }
    }

    /// Records a tool call; `allowed` is the answer to an agent that asked.
    fn record_tool_call(
        &mut self,
        found: &mut EngineResults,
        judgement: &Judgement,
        seen: Seen,
        allowed: bool,
    ) -> Result<(), Stop> {
        let Judgement { call, decision, forbidden } = judgement;
        let has_room = if forbidden.is_empty() { self.has_room() } else { true };
        // A denied attempt is an attempt.
        found.attempted(forbidden.iter().copied());
        match seen {
            Seen::Told => found.count_told(),
            Seen::Dialogue => found.count_asked(allowed),
            Seen::Hook => found.count_hooked(allowed),
        }
        if has_room { self.ctx.record(data(call, decision, forbidden, seen, allowed)) } else { Ok(()) }
    }

    /// Whether one more thing that the engine said gets an event. The log has all of it.
    fn has_room(&mut self) -> bool {
        self.said += 1;
        self.said <= MAX_EVENTS
    }
}
