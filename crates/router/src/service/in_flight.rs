//! An in-flight call: its reservation, and its record when it ends. However it ends, it is settled and recorded exactly
//! once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use herma_core::model_call::{Attempt, Charge, Ended, Endpoint, TokensUsed};
use herma_core::{Digest, Timestamp};
use herma_dialect::{Doubt, Usage};
use smallvec::SmallVec;
use tracing::{Span, debug, info, info_span};

use super::audit_writer::EndedCall;
use super::reason::{Outcome, Reason};
use super::refused::Refused;
use super::runs::Run;
use super::shared::Shared;
use crate::audit::{Beginning, CallNumber, Unchained};
use crate::budget::{Amount, Price, Reservation};
use crate::grant::Link;

/// An in-flight call. Dropped before its end, it ends as `client_left`.
#[derive(Debug)]
pub(super) struct InFlightCall {
    pub(super) shared: Arc<Shared>,
    pub(super) run: Arc<Run>,
    pub(super) endpoint: Endpoint,
    pub(super) stream: bool,
    pub(super) asked: String,
    pub(super) rewrites: Vec<&'static str>,
    /// Whether a usage without output would be a wrong count.
    pub(super) expects_output: bool,
    request: Digest,
    time: Timestamp,
    started: Instant,
    first_byte: Option<Duration>,
    /// Nearly always one.
    attempts: SmallVec<[PendingAttempt; 1]>,
    /// Whether an attempt was charged at the most.
    guessed: bool,
    number: Option<CallNumber>,
    /// The reservation of the current attempt.
    reserved: Option<Reservation>,
    /// The price of the current attempt.
    price: Option<Price>,
    phase: Phase,
    /// Log records carry no text of the client: it may contain the run's token.
    span: Span,
}

/// An attempt, as it is known so far.
#[derive(Debug)]
struct PendingAttempt {
    upstream: Arc<str>,
    model: Arc<str>,
    outcome: Outcome,
    status: Option<u16>,
    charged: Charge,
}

/// The phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No attempt is under way.
    Waiting,
    /// An attempt is under way.
    Attempting,
    /// It is settled and recorded.
    Over,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) ended: Ended,
    pub(super) status: u16,
    pub(super) reason: Option<Reason>,
    pub(super) cost: Cost,
    pub(super) response: Option<Digest>,
    pub(super) answered: Option<String>,
    pub(super) stop: Option<String>,
    pub(super) tool_calls: u64,
}

/// The cost of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// It was never made.
    Nothing,
    /// The upstream saw it and charges no tokens for it.
    NoTokens,
    /// The usage that the upstream reported.
    Used(Usage),
    /// Unknown: charged at the most that it can cost.
    Unknown,
}

impl Cost {
    /// The cost of a response that reports this usage, with the reason where it is charged at the most. An impossible count,
    /// or one that the response contradicts, is not believed.
    pub(super) fn reported(
        usage: Option<Usage>,
        doubt: Option<Doubt>,
        expects_output: bool,
    ) -> (Self, Option<Reason>) {
        match (usage, doubt) {
            (None, _) => (Self::Unknown, Some(Reason::NoUsage)),
            (Some(_), Some(doubt)) => (Self::Unknown, Some(Reason::Doubted(doubt))),
            (Some(usage), None) if usage.input == 0 || (expects_output && usage.output == 0) => {
                (Self::Unknown, Some(Reason::ZeroUsage))
            }
            (Some(usage), None) => (Self::Used(usage), None),
        }
    }
}

impl InFlightCall {
    /// `None` where the run has ended. Boxed, because it is moved often.
    pub(super) fn new(
        shared: &Arc<Shared>,
        run: Arc<Run>,
        endpoint: Endpoint,
        body: &[u8],
        started: Instant,
    ) -> Option<Box<Self>> {
        if !run.begin() {
            return None;
        }
        shared.metrics.begin();
        let span = info_span!("model_call", run = %run.name, endpoint = endpoint.as_str());
        Some(Box::new(Self {
            request: Digest::of(body),
            time: shared.clock.now(),
            shared: shared.clone(),
            run,
            endpoint,
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
            span,
        }))
    }

    /// Records the reservation. It is on disk before an upstream is tried.
    pub(super) fn open(&mut self, reservation: Reservation) -> Result<(), Refused> {
        let beginning = Beginning {
            asked: &self.asked,
            endpoint: self.endpoint,
            request: self.request,
            stream: self.stream,
            time: self.time,
        };
        let Ok(number) = self.run.audit.begin(reservation.most(), &beginning) else {
            self.shared.budgets.release(reservation);
            return Err(Refused::AuditUnwritable);
        };
        self.number = Some(number);
        self.reserved = Some(reservation);
        Ok(())
    }

    /// Notes an upstream that is skipped.
    pub(super) fn skipped(&mut self, link: &Link, outcome: Outcome) {
        self.asking(link);
        self.price = None;
        self.failed(outcome, None);
    }

    /// Begins an attempt. Its cost is unknown until it ends.
    pub(super) fn asking(&mut self, link: &Link) {
        self.phase = Phase::Attempting;
        self.price = link.price;
        self.attempts.push(PendingAttempt {
            upstream: link.upstream.clone(),
            model: link.model.clone(),
            outcome: Outcome::Pending,
            status: None,
            charged: Charge::default(),
        });
    }

    /// The attempt ended before it can have cost anything.
    pub(super) fn failed(&mut self, outcome: Outcome, status: Option<u16>) {
        self.attempt_ended(outcome, status);
        self.phase = Phase::Waiting;
    }

    /// The cost of the attempt is unknown: it is charged at the most, and the call goes on with the reservation `next`.
    pub(super) fn lost(
        &mut self,
        outcome: Outcome,
        status: Option<u16>,
        next: Reservation,
    ) -> Result<(), Refused> {
        self.attempt_ended(outcome, status);
        let (Some(number), Some(reservation)) = (self.number, self.reserved.take()) else {
            self.shared.budgets.release(next);
            return Err(Refused::AuditUnwritable);
        };
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.charged = reservation.most();
        }
        self.shared.budgets.abandon(reservation);
        (self.guessed, self.phase) = (true, Phase::Waiting);
        if self.run.audit.more(number, next.most()).is_err() {
            self.shared.budgets.release(next);
            return Err(Refused::AuditUnwritable);
        }
        self.reserved = Some(next);
        Ok(())
    }

    /// Notes the outcome of the current attempt. Its cost is recorded when the call ends.
    pub(super) fn attempt_ended(&mut self, outcome: Outcome, status: Option<u16>) {
        let span = &self.span;
        if let Some(attempt) = self.attempts.last_mut() {
            self.shared.metrics.attempt(&attempt.upstream, outcome);
            span.in_scope(|| debug!(upstream = %attempt.upstream, outcome = outcome.code(), status, "upstream attempt ended"));
            (attempt.outcome, attempt.status) = (outcome, status);
        }
    }

    /// Notes the first byte of the response.
    pub(super) fn first_byte(&mut self) {
        if self.first_byte.is_none() {
            let took = self.started.elapsed();
            self.shared.metrics.first_byte(took);
            self.first_byte = Some(took);
        }
    }

    /// Ends a call that the router refuses.
    pub(super) fn refuse(&mut self, refused: &Refused) {
        let ended = if self.attempts.is_empty() { Ended::Refused } else { Ended::Failed };
        self.end(Ending {
            ended,
            status: refused.status(),
            reason: Some(refused.reason()),
            cost: Cost::Nothing,
            response: None,
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    }

    /// Ends a call whose cost is unknown.
    pub(super) fn unknown(&mut self, refused: &Refused) {
        self.end(Ending {
            ended: Ended::Failed,
            status: refused.status(),
            reason: Some(refused.reason()),
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
            phase => phase == Phase::Attempting,
        };
        // Without an attempt under way nothing is charged, whatever the ending says.
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
        self.shared.metrics.end(self.endpoint, ending.ended, ending.reason, used.as_ref());
        self.span.in_scope(|| {
            info!(
                ended = ending.ended.as_str(),
                status = ending.status,
                reason = ending.reason.map(Reason::code),
                tokens = charged.tokens,
                latency_us = micros(self.started.elapsed()),
                "model call ended"
            );
        });
        let record = Unchained {
            answered: ending.answered,
            asked: std::mem::take(&mut self.asked),
            attempts: self.attempts.drain(..).map(PendingAttempt::recorded).collect(),
            charged,
            endpoint: self.endpoint,
            ended: ending.ended,
            first_byte_us: self.first_byte.map(micros),
            latency_us: micros(self.started.elapsed()),
            reason: ending.reason.map(|reason| reason.code().to_owned()),
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

    /// Settles the reservation, and gives the charge of the last attempt.
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

impl PendingAttempt {
    fn recorded(self) -> Attempt {
        let Self { upstream, model, outcome, status, charged } = self;
        Attempt {
            charged,
            model: model.as_ref().to_owned(),
            outcome: outcome.code().to_owned(),
            status,
            upstream: upstream.as_ref().to_owned(),
        }
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        // The client left. The cost of an attempt under way is unknown.
        let cost = if self.phase == Phase::Attempting { Cost::Unknown } else { Cost::Nothing };
        self.end(Ending {
            ended: Ended::ClientLeft,
            status: 0,
            reason: Some(Reason::ClientLeft),
            cost,
            response: None,
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    }
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
