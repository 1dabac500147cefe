//! A call under way: what is set aside for it, and what is written of it when it ends. However it ends, it is settled and
//! recorded exactly once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use herma_core::model_call::{Attempt, Charge, Door, Ended, TokensUsed};
use herma_core::{Digest, Timestamp};
use smallvec::SmallVec;

use super::refused::Refused;
use super::runs::Run;
use super::scribe::EndedCall;
use super::shared::Shared;
use crate::audit::{Beginning, CallNumber, Unchained};
use crate::budget::{Amount, Price, Reservation};
use crate::dialect::{Doubt, Usage};
use crate::grant::Link;

/// A call under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) shared: Arc<Shared>,
    pub(super) run: Arc<Run>,
    pub(super) door: Door,
    pub(super) stream: bool,
    pub(super) asked: String,
    pub(super) rewrites: Vec<&'static str>,
    /// Whether an answer without output would be a wrong count.
    pub(super) expects_output: bool,
    request: Digest,
    time: Timestamp,
    started: Instant,
    first_byte: Option<Duration>,
    /// Nearly always one.
    attempts: SmallVec<[Asked; 1]>,
    /// Whether an attempt was charged at the most.
    guessed: bool,
    number: Option<CallNumber>,
    /// What is set aside for the attempt that is under way.
    reserved: Option<Reservation>,
    /// What the one that is asked takes.
    price: Option<Price>,
    phase: Phase,
}

/// An attempt, as it is known so far.
#[derive(Debug)]
struct Asked {
    upstream: Arc<str>,
    model: Arc<str>,
    outcome: &'static str,
    status: Option<u16>,
    charged: Charge,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody is being asked.
    Waiting,
    /// An upstream is being asked.
    Asking,
    /// It is settled and recorded.
    Over,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) ended: Ended,
    pub(super) status: u16,
    pub(super) reason: Option<&'static str>,
    pub(super) cost: Cost,
    pub(super) response: Option<Digest>,
    pub(super) answered: Option<String>,
    pub(super) stop: Option<String>,
    pub(super) tool_calls: u64,
}

/// What an attempt cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// It was never made.
    Nothing,
    /// The upstream saw it and charges no tokens for it.
    NoTokens,
    /// What the upstream said.
    Used(Usage),
    /// Nobody knows: the most that it can cost.
    Unknown,
}

impl Cost {
    /// What an answer cost that reports this usage, and why it is charged at the most where it is. A count that cannot be, or
    /// that the answer itself contradicts, is not believed.
    pub(super) fn reported(
        usage: Option<Usage>,
        doubt: Option<Doubt>,
        expects_output: bool,
    ) -> (Self, Option<&'static str>) {
        match (usage, doubt) {
            (None, _) => (Self::Unknown, Some("no_usage")),
            (Some(_), Some(doubt)) => (Self::Unknown, Some(doubt.name())),
            (Some(usage), None) if usage.input == 0 || (expects_output && usage.output == 0) => {
                (Self::Unknown, Some("zero_usage"))
            }
            (Some(usage), None) => (Self::Used(usage), None),
        }
    }
}

impl Flight {
    /// None, if the run has ended. It goes through many hands, so that it stays where it is made.
    pub(super) fn new(
        shared: &Arc<Shared>,
        run: Arc<Run>,
        door: Door,
        body: &[u8],
        started: Instant,
    ) -> Option<Box<Self>> {
        if !run.begin() {
            return None;
        }
        shared.metrics.begin();
        Some(Box::new(Self {
            request: Digest::of(body),
            time: shared.clock.now(),
            shared: shared.clone(),
            run,
            door,
            stream: false,
            asked: String::new(),
            rewrites: Vec::new(),
            expects_output: false,
            started,
            first_byte: None,
            attempts: SmallVec::new(),
            guessed: false,
            number: None,
            reserved: None,
            price: None,
            phase: Phase::Waiting,
        }))
    }

    /// Sets the most that it can cost aside. That is on disk before an upstream is asked.
    pub(super) fn open(&mut self, reservation: Reservation) -> Result<(), Refused> {
        let beginning = Beginning {
            asked: &self.asked,
            door: self.door,
            request: self.request,
            stream: self.stream,
            time: self.time,
        };
        let Ok(number) = self.run.audit.begin(reservation.most(), &beginning) else {
            self.shared.budgets.release(reservation);
            return Err(unwritable());
        };
        self.number = Some(number);
        self.reserved = Some(reservation);
        Ok(())
    }

    /// An upstream that is not asked.
    pub(super) fn skipped(&mut self, link: &Link, why: &'static str) {
        self.asking(link);
        self.price = None;
        self.failed(why, None);
    }

    /// An upstream is about to be asked. Until it is known what came of it, nobody knows what it cost.
    pub(super) fn asking(&mut self, link: &Link) {
        self.phase = Phase::Asking;
        self.price = link.price;
        self.attempts.push(Asked {
            upstream: link.upstream.clone(),
            model: link.model.clone(),
            outcome: "no_answer",
            status: None,
            charged: Charge::default(),
        });
    }

    /// It said no before it can have charged anything.
    pub(super) fn failed(&mut self, why: &'static str, status: Option<u16>) {
        self.came_of_it(why, status);
        self.phase = Phase::Waiting;
    }

    /// An attempt of which nobody knows what it cost: it is charged at the most, and the call goes on with `next` set
    /// aside anew.
    pub(super) fn lost(
        &mut self,
        why: &'static str,
        status: Option<u16>,
        next: Reservation,
    ) -> Result<(), Refused> {
        self.came_of_it(why, status);
        let (Some(number), Some(reservation)) = (self.number, self.reserved.take()) else {
            self.shared.budgets.release(next);
            return Err(unwritable());
        };
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.charged = reservation.most();
        }
        self.shared.budgets.abandon(reservation);
        (self.guessed, self.phase) = (true, Phase::Waiting);
        if self.run.audit.more(number, next.most()).is_err() {
            self.shared.budgets.release(next);
            return Err(unwritable());
        }
        self.reserved = Some(next);
        Ok(())
    }

    /// What came of the attempt that is under way. What it cost is written when the call ends.
    pub(super) fn came_of_it(&mut self, outcome: &'static str, status: Option<u16>) {
        if let Some(attempt) = self.attempts.last_mut() {
            self.shared.metrics.attempt(&attempt.upstream, outcome);
            (attempt.outcome, attempt.status) = (outcome, status);
        }
    }

    /// Takes note of the answer's first byte.
    pub(super) fn first_byte(&mut self) {
        if self.first_byte.is_none() {
            let took = self.started.elapsed();
            self.shared.metrics.first_byte(took);
            self.first_byte = Some(took);
        }
    }

    /// Ends a call that no upstream answers.
    pub(super) fn refuse(&mut self, refused: &Refused) {
        let ended = if self.attempts.is_empty() { Ended::Refused } else { Ended::Failed };
        self.end(Ending {
            ended,
            status: refused.error.status,
            reason: Some(refused.reason),
            cost: Cost::Nothing,
            response: None,
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    }

    /// Ends a call of which nobody knows what it cost.
    pub(super) fn unknown(&mut self, refused: &Refused) {
        self.end(Ending {
            ended: Ended::Failed,
            status: refused.error.status,
            reason: Some(refused.reason),
            cost: Cost::Unknown,
            response: None,
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    }

    /// Settles and records the call. Only the first time counts.
    pub(super) fn end(&mut self, ending: Ending) {
        if let Some(ended) = self.close(ending) {
            ended.record(&self.shared);
        }
    }

    /// Settles the call and gives its record. Only the first time.
    pub(super) fn close(&mut self, ending: Ending) -> Option<EndedCall> {
        let is_asking = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => return None,
            phase => phase == Phase::Asking,
        };
        // Where nobody is asked nothing is charged, whatever the ending says.
        let cost = if is_asking { ending.cost } else { Cost::Nothing };
        let last = self.settle(cost);
        if let Some(attempt) = self.attempts.last_mut().filter(|_| is_asking) {
            attempt.charged = last;
        }
        let charged = self.attempts.iter().fold(Charge::default(), |sum, attempt| sum.plus(attempt.charged));
        let used = match cost {
            Cost::Used(usage) => Some(tokens(&usage)),
            Cost::Nothing | Cost::NoTokens | Cost::Unknown => None,
        };
        self.shared.metrics.end(self.door, ending.ended, ending.reason, used.as_ref());
        let record = Unchained {
            answered: ending.answered,
            asked: std::mem::take(&mut self.asked),
            attempts: self.attempts.drain(..).map(Asked::recorded).collect(),
            charged,
            door: self.door,
            ended: ending.ended,
            first_byte_us: self.first_byte.map(micros),
            latency_us: micros(self.started.elapsed()),
            reason: ending.reason.map(str::to_owned),
            request: self.request,
            response: ending.response,
            rewrites: self.rewrites.iter().map(|name| (*name).to_owned()).collect(),
            settled: !self.guessed && cost != Cost::Unknown,
            status: ending.status,
            stop: ending.stop,
            stream: self.stream,
            time: self.time,
            tool_calls: ending.tool_calls,
            used,
        };
        Some(EndedCall { run: self.run.clone(), number: self.number, record })
    }

    /// Settles what is set aside, and gives what the last attempt is charged at.
    fn settle(&mut self, cost: Cost) -> Amount {
        let Some(reservation) = self.reserved.take() else { return Amount::default() };
        let budgets = &self.shared.budgets;
        let charged = match cost {
            Cost::Nothing => Amount::default(),
            Cost::NoTokens => Amount { requests: 1, ..Amount::default() },
            Cost::Used(usage) => Amount {
                requests: 1,
                tokens: usage.input.saturating_add(usage.output),
                micro_usd: self.price.map_or(0, |price| price.cost_of(&usage)),
            },
            Cost::Unknown => {
                let most = reservation.most();
                budgets.abandon(reservation);
                return most;
            }
        };
        budgets.settle(reservation, charged);
        charged
    }
}

impl Asked {
    fn recorded(self) -> Attempt {
        let Self { upstream, model, outcome, status, charged } = self;
        Attempt {
            charged,
            model: model.as_ref().to_owned(),
            outcome: outcome.to_owned(),
            status,
            upstream: upstream.as_ref().to_owned(),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Whoever waited for the answer is gone. Where an upstream was being asked, nobody knows what that cost.
        let cost = if self.phase == Phase::Asking { Cost::Unknown } else { Cost::Nothing };
        self.end(Ending {
            ended: Ended::ClientLeft,
            status: 0,
            reason: Some("client_left"),
            cost,
            response: None,
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    }
}

fn unwritable() -> Refused {
    let message =
        "the call cannot be recorded, so it is not made; the operator has to look at the router's disk";
    Refused::new(503, "audit_unwritable", message)
}

fn tokens(usage: &Usage) -> TokensUsed {
    TokensUsed {
        cache_write: usage.cache_write,
        cached_input: usage.cached_input,
        input: usage.input,
        output: usage.output,
        reasoning: usage.reasoning,
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}
