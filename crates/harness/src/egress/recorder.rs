//! Makes an event of every decision of a run's proxy, before it takes effect; and bounds how many there are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use herma_core::EventType;
use herma_core::contract::{Action, Terms};
use herma_core::egress::{EgressMode, EgressUse};
use herma_core::event::{EgressDecided, EgressDecision, Event, Source};
use herma_egress::{DecisionRecorder, EgressVerdict, ProxyDecision, Reason, Unrecorded};
use herma_evidence::EventLog;
use herma_rules::egress_actions::{attempted_at, possible_at};
use tracing::{Level, Span, enabled, info, info_span};

/// How many decisions get an event of their own, whatever they are.
const MAX_EVENTS: u64 = 1_000;
/// How many different denials get one beyond that. Nothing else bounds how many hosts an agent can think of.
const MAX_DENIALS: usize = 4_000;
/// How many denied hosts a blocker names.
const MAX_NAMED: usize = 5;

/// Records what a run's proxy decides.
pub(super) struct Recorder {
    events: Arc<EventLog>,
    /// The run's rules.
    terms: Vec<Terms>,
    state: Mutex<State>,
    /// The span of the run.
    span: Span,
}

#[derive(Default)]
struct State {
    recorded: u64,
    /// The denials that have an event: which host, port and reason.
    denials: BTreeSet<(String, u16, Reason)>,
    named: Vec<String>,
    attempted: BTreeSet<Action>,
    unwritten: Option<String>,
}

/// The recorded decisions, for the verdict.
pub(super) struct Noted {
    /// How many decisions have an event.
    pub(super) recorded: u64,
    /// The denied hosts, as text.
    pub(super) denied: Option<String>,
    /// The forbidden actions that denied attempts count as.
    pub(super) attempted: BTreeSet<Action>,
    /// Why a decision could not be recorded, where one could not.
    pub(super) unwritten: Option<String>,
}

impl Recorder {
    pub(super) fn new(events: Arc<EventLog>, terms: Vec<Terms>) -> Self {
        Self { events, terms, state: Mutex::default(), span: Span::current() }
    }

    /// The decisions so far.
    pub(super) fn noted(&self) -> Noted {
        let state = self.state();
        let more = match state.denials.len().saturating_sub(state.named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Noted {
            recorded: state.recorded,
            denied: (!state.named.is_empty()).then(|| format!("{}{more}", state.named.join(", "))),
            attempted: state.attempted.clone(),
            unwritten: state.unwritten.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a decision that has an event. The host is the agent's text, which may contain the run's token.
    fn log(&self, decision: &EgressDecision) {
        if !enabled!(Level::INFO) {
            return;
        }
        let EgressDecision { request, port, .. } = *decision;
        let (host, method) = (self.events.redactor().redact(&decision.host), decision.method.as_str());
        let span = info_span!(parent: &self.span, "egress_decision", request, method, host, port);
        let (verdict, reason) = (decision.verdict.as_str(), decision.reason.as_deref());
        span.in_scope(|| info!(verdict, reason, "egress decided"));
    }

    fn attempted(&self, decided: &ProxyDecision) -> BTreeSet<Action> {
        match decided.verdict {
            EgressVerdict::Denied(_) => {
                self.terms.iter().flat_map(|terms| attempted_at(terms, &decided.host)).collect()
            }
            EgressVerdict::Allowed | EgressVerdict::Failed(_) => BTreeSet::new(),
        }
    }
}

impl State {
    /// Whether this decision gets an event. The first denial of each host, port and reason does, as long as there is any
    /// room.
    fn wants(&mut self, decided: &ProxyDecision) -> bool {
        let is_new = match decided.verdict {
            EgressVerdict::Denied(reason) if self.denials.len() < MAX_DENIALS => {
                let is_new = self.denials.insert((decided.host.clone(), decided.port, reason));
                if is_new && self.named.len() < MAX_NAMED && !decided.host.is_empty() {
                    self.named.push(format!("{}:{} ({})", decided.host, decided.port, reason.code()));
                }
                is_new
            }
            _ => false,
        };
        is_new || self.recorded < MAX_EVENTS
    }
}

impl DecisionRecorder for Recorder {
    fn decided(&self, decided: &ProxyDecision) -> Result<(), Unrecorded> {
        let attempted = self.attempted(decided);
        let mut state = self.state();
        state.attempted.extend(&attempted);
        if !state.wants(decided) {
            return Ok(());
        }
        let decision = data(decided, &attempted);
        let appended = self.events.record(Source::Harness, EgressDecided::Decision(decision.clone()));
        match appended {
            Ok(()) => {
                state.recorded += 1;
                drop(state);
                // A decision without an event did not take effect.
                self.log(&decision);
                Ok(())
            }
            Err(error) => {
                let why = error.to_string();
                state.unwritten.get_or_insert(why.clone());
                Err(Unrecorded(why))
            }
        }
    }
}

fn data(decided: &ProxyDecision, attempted: &BTreeSet<Action>) -> EgressDecision {
    let (verdict, reason) = match decided.verdict {
        EgressVerdict::Allowed => ("allowed", None),
        EgressVerdict::Denied(reason) => ("denied", Some(reason.code())),
        EgressVerdict::Failed(fault) => ("failed", Some(fault.code())),
    };
    let possible = possible_at(&decided.host);
    let counts = !possible.is_empty() && matches!(decided.verdict, EgressVerdict::Denied(_));
    EgressDecision {
        request: decided.request,
        method: decided.method.clone(),
        host: decided.host.clone(),
        port: decided.port,
        verdict: verdict.to_owned(),
        reason: reason.map(str::to_owned),
        rule: decided.rule.clone(),
        address: decided.address.map(|address| address.to_string()),
        detail: Some(decided.detail.clone()).filter(|detail| !detail.is_empty()),
        could_be: counts.then(|| possible.to_vec()),
        forbidden: counts.then(|| attempted.clone()),
    }
}

/// The decisions of a run that a dead process left, as far as it had recorded them; none for a run without a proxy.
pub(crate) fn recover(had_proxy: bool, mode: EgressMode, events: &[Event]) -> Option<EgressUse> {
    let decided = |event: &Event| event.kind == EventType::EgressDecided;
    (had_proxy || events.iter().any(decided)).then(|| EgressUse::from_events(mode, events))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(host: &str, port: u16) -> ProxyDecision {
        ProxyDecision {
            request: 1,
            method: "CONNECT".to_owned(),
            host: host.to_owned(),
            port,
            verdict: EgressVerdict::Denied(Reason::NotListed),
            rule: None,
            address: None,
            detail: String::new(),
        }
    }

    #[test]
    fn a_flood_is_bounded_and_a_new_host_is_still_recorded_after_it() {
        let mut state = State::default();
        let mut record = |decided: &ProxyDecision| {
            let wanted = state.wants(decided);
            state.recorded += u64::from(wanted);
            wanted
        };
        for _ in 0..100_000 {
            record(&denied("example.org", 443));
        }
        assert!(!record(&denied("example.org", 443)));
        assert!(record(&denied("example.net", 443)), "the first denial of another host");
        assert!(record(&denied("example.org", 444)), "and of another port");
        for host in 0..100_000 {
            record(&denied(&format!("h{host}.example.org"), 443));
        }
        assert!(!record(&denied("one-more.example.org", 443)), "no end to it would fill the disk");
        let most = MAX_EVENTS + u64::try_from(MAX_DENIALS).unwrap();
        assert!((u64::try_from(MAX_DENIALS).unwrap()..=most).contains(&state.recorded), "{}", state.recorded);
        assert_eq!(state.named.len(), MAX_NAMED);
    }
}
