//! Listens to an engine and holds it to its limits, until it has ended.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use herma_core::contract::Limits;
use herma_core::engine::{EndedBy, EngineResult};
use herma_core::event::{EngineMessage, EventData, PlanUpdated};
use herma_destination::{Exit, Process, leftovers};
use herma_engines::{AgentEvent, DialogueAction, PermissionRequest, PermissionSource, SessionId, hook};

use crate::children::ChildDoor;
use crate::dialogue::Voice;
use crate::error::Stop;
use crate::governance::{Seen, bounded, data};
use crate::permission::{self, Judgement};
use crate::pump::Heard;
use crate::run::Run;
use crate::supervise::{Ending, HOLDERS, PATIENCE, UNKNOWN};

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

/// Holds an engine to its limits.
pub(crate) struct Watch<'a> {
    limits: &'a Limits,
    children: Option<&'a Arc<ChildDoor>>,
    voice: Voice,
    started: Instant,
    last_life: Option<Instant>,
    pub(crate) result: Option<EngineResult>,
    result_at: Option<Instant>,
    pub(crate) malformed: Option<String>,
    /// How much it has said.
    told: u64,
    /// What else is known of its end.
    pub(crate) reason: Option<String>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(limits: &'a Limits, voice: Voice, children: Option<&'a Arc<ChildDoor>>) -> Self {
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

    /// Waits until the engine ends, a limit ends it or herma is told to end, then until nothing of it is alive.
    pub(crate) fn until_the_end(
        &mut self,
        run: &mut Run<'_>,
        process: &mut dyn Process,
        heard: &Receiver<Heard>,
    ) -> Result<(EndedBy, Exit), Stop> {
        loop {
            let ended = self.look(run, process, heard)?;
            if !matches!(ended, Ok(None)) {
                let Ending { exit, reason } = Ending::of(ended, process);
                process.kill_all()?;
                self.reason = reason;
                return Ok((EndedBy::Exited, exit.unwrap_or(UNKNOWN)));
            }
            self.wait_for_children();
            let told = run.submission.cancellation.is_cancelled().then_some(EndedBy::Interrupted);
            let orphan = run.is_orphan().then_some(EndedBy::TotalLimit);
            if let Some(ended_by) = told.or(self.over()).or(orphan) {
                if self.voice.farewell() {
                    // Told to stop, and that nothing more will be said. How it takes that does not matter.
                    self.give_grace(run, process, heard)?;
                }
                process.terminate();
                // However it ends in its grace, or is lost: what counts is that nothing of it is left.
                self.give_grace(run, process, heard)?;
                return Ok((ended_by, process.kill_all()?));
            }
        }
    }

    /// Hears what comes next, if it comes soon, and looks whether the engine has ended.
    fn look(
        &mut self,
        run: &mut Run<'_>,
        process: &mut dyn Process,
        heard: &Receiver<Heard>,
    ) -> Result<io::Result<Option<Exit>>, Stop> {
        let pause = match heard.recv_timeout(LOOK) {
            Ok(heard) => {
                self.hear(run, heard)?;
                Duration::ZERO
            }
            Err(RecvTimeoutError::Timeout) => Duration::ZERO,
            // Its streams are closed: it is about to end, or will say nothing more.
            Err(RecvTimeoutError::Disconnected) => LOOK,
        };
        Ok(process.wait(pause))
    }

    /// Waits for its end a little longer. It is heard meanwhile: who cannot speak cannot come to an end.
    fn give_grace(
        &mut self,
        run: &mut Run<'_>,
        process: &mut dyn Process,
        heard: &Receiver<Heard>,
    ) -> Result<(), Stop> {
        let began = Instant::now();
        while began.elapsed() < GRACE && matches!(self.look(run, process, heard)?, Ok(None)) {}
        Ok(())
    }

    /// Hears what was said up to the end. Streams that stay open are held by something that was not found before.
    pub(crate) fn until_silence(&mut self, run: &mut Run<'_>, heard: &Receiver<Heard>) -> Result<(), Stop> {
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
            Heard::AgentEvent(said) => said,
            Heard::Turn(turn) => return self.take(run, turn),
        };
        self.heard_that(run, said)
    }

    /// Takes herma's turn in a dialogue.
    pub(crate) fn take(&mut self, run: &mut Run<'_>, turn: DialogueAction) -> Result<(), Stop> {
        let said = match turn {
            DialogueAction::Say(line) => self.voice.say(&line),
            DialogueAction::Answer(question) => {
                let PermissionRequest { tool, command, by, yes, no } = question;
                let judgement = permission::judge(run, tool, command);
                let yes = yes.filter(|_| judgement.decision.allowed);
                let seen = if by == PermissionSource::Hook { Seen::Hook } else { Seen::Dialogue };
                self.evaluated(run, &judgement, seen, yes.is_some())?;
                self.voice
                    .say(&yes.unwrap_or_else(|| no.because(&hook::in_words(&judgement.decision.reason))))
            }
            DialogueAction::ShutdownMessage(line) => {
                self.voice.prepare_farewell(line);
                Ok(())
            }
            DialogueAction::End => {
                self.voice.end();
                Ok(())
            }
        };
        if let Err(why) = said {
            self.malformed.get_or_insert(why);
        }
        Ok(())
    }

    fn heard_that(&mut self, run: &mut Run<'_>, said: AgentEvent) -> Result<(), Stop> {
        match said {
            AgentEvent::Hello => Ok(()),
            AgentEvent::All(all) => all.into_iter().try_for_each(|said| self.heard_that(run, said)),
            AgentEvent::Session(session) => {
                run.facts.session = SessionId::try_from(session.clone()).ok();
                self.tell(run, EngineMessage::Session { session: bounded(session) })
            }
            AgentEvent::NoWayBack => {
                // What would be kept of it could not be used.
                run.facts.session = None;
                Ok(())
            }
            AgentEvent::Used { input, output } => {
                self.tell(run, EngineMessage::Tokens { input_tokens: input, output_tokens: output })
            }
            AgentEvent::Message(text) => self.tell(run, EngineMessage::Text { text: bounded(text) }),
            AgentEvent::Plan(items) => {
                let items: Vec<String> = items.into_iter().take(MOST_ITEMS).map(bounded).collect();
                self.tell(run, PlanUpdated { items })
            }
            AgentEvent::Tool { name, command } => {
                let judgement = permission::judge(run, name, command);
                self.evaluated(run, &judgement, Seen::Told, true)
            }
            AgentEvent::Result(result) => {
                // The worst word counts: an engine cannot take back that it failed.
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

impl Watch<'_> {
    /// Records what the engine said, as long as there is room for it.
    fn tell(&mut self, run: &mut Run<'_>, data: impl Into<EventData>) -> Result<(), Stop> {
        if self.has_room() { run.record_agent(data) } else { Ok(()) }
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
        match seen {
            Seen::Told => run.facts.note_told(),
            Seen::Dialogue => run.facts.note_asked(1, u64::from(!allowed)),
            Seen::Hook => run.facts.note_hooked(1, u64::from(!allowed)),
        }
        if told { run.record(data) } else { Ok(()) }
    }

    /// Whether one more thing that the engine said gets an event. All of it is in its log.
    fn has_room(&mut self) -> bool {
        self.told += 1;
        self.told <= MOST_TOLD
    }
}
