//! The router's metrics for Prometheus. Labels are upstream names and fixed codes only: no run, no client-chosen model
//! name, no address.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use herma_core::model_call::{Ended, Endpoint, TokensUsed};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::reason::{Outcome, Reason};

type Labels = [(&'static str, &'static str); 2];

/// An upstream, and the outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempted {
    upstream: Arc<str>,
    outcome: &'static str,
}

impl EncodeLabelSet for Attempted {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("upstream", &*self.upstream), ("outcome", self.outcome)].encode(encoder)
    }
}

/// The counters of a family, found without hashing labels.
#[derive(Debug)]
struct Known<K>(RwLock<Vec<(K, Counter)>>);

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K> Known<K> {
    /// More than a router has that is not reloaded again and again; further ones are hashed.
    const MOST: usize = 64;

    fn inc(&self, is: impl Fn(&K) -> bool, made: impl FnOnce() -> (K, Counter)) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, counter)) = known.iter().find(|(key, _)| is(key)) {
            counter.inc();
            return;
        }
        drop(known);
        let (key, counter) = made();
        counter.inc();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < Self::MOST {
            known.push((key, counter));
        }
    }
}

/// The counters of a router.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Mutex<Registry>,
    under_way: Gauge,
    calls: Family<Labels, Counter>,
    calls_known: Known<(Endpoint, Ended)>,
    refusals: Family<[(&'static str, &'static str); 1], Counter>,
    attempts: Family<Attempted, Counter>,
    attempts_known: Known<(Arc<str>, Outcome)>,
    input: Counter,
    output: Counter,
    unauthenticated: Counter,
    unwritten: Counter,
    first_byte: Arc<Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let buckets = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
        let mut registry = Registry::with_prefix("herma_router");
        let tokens = Family::<[(&'static str, &'static str); 1], Counter>::default();
        // The guard must be dropped before the next lookup locks again.
        let counter = |kind| Counter::clone(&tokens.get_or_create(&[("kind", kind)]));
        let metrics = Self {
            registry: Mutex::default(),
            under_way: Gauge::default(),
            calls: Family::default(),
            calls_known: Known::default(),
            refusals: Family::default(),
            attempts: Family::default(),
            attempts_known: Known::default(),
            input: counter("input"),
            output: counter("output"),
            unauthenticated: Counter::default(),
            unwritten: Counter::default(),
            first_byte: Arc::new(Histogram::new(buckets)),
        };
        registry.register("calls_under_way", "Calls that are under way", metrics.under_way.clone());
        registry.register(
            "calls",
            "Calls by the API that was called and how they ended",
            metrics.calls.clone(),
        );
        registry.register(
            "refusals",
            "Calls that were refused or failed, by reason",
            metrics.refusals.clone(),
        );
        registry.register("attempts", "Attempts by upstream and what came of them", metrics.attempts.clone());
        registry.register("tokens", "Tokens that were used, by kind", tokens.clone());
        registry.register(
            "unauthenticated",
            "Requests without a token that is known",
            metrics.unauthenticated.clone(),
        );
        registry.register("unwritten", "Calls that could not be recorded", metrics.unwritten.clone());
        registry.register(
            "first_byte_seconds",
            "Time to the first byte of an answer",
            (*metrics.first_byte).clone(),
        );
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }
}

impl Metrics {
    pub(super) fn begin(&self) {
        self.under_way.inc();
    }

    pub(super) fn over(&self) {
        self.under_way.dec();
    }

    /// In-flight calls.
    pub(super) fn calls_under_way(&self) -> usize {
        usize::try_from(self.under_way.get()).unwrap_or(0)
    }

    pub(super) fn unauthenticated(&self) {
        self.unauthenticated.inc();
    }

    pub(super) fn unwritten(&self, calls: usize) {
        self.unwritten.inc_by(calls as u64);
    }

    pub(super) fn attempt(&self, upstream: &Arc<str>, outcome: Outcome) {
        self.attempts_known.inc(
            |(known, counted)| Arc::ptr_eq(known, upstream) && *counted == outcome,
            || {
                let labels = Attempted { upstream: upstream.clone(), outcome: outcome.code() };
                ((upstream.clone(), outcome), Counter::clone(&self.attempts.get_or_create(&labels)))
            },
        );
    }

    pub(super) fn first_byte(&self, took: Duration) {
        self.first_byte.observe(took.as_secs_f64());
    }

    pub(super) fn end(
        &self,
        endpoint: Endpoint,
        ended: Ended,
        reason: Option<Reason>,
        used: Option<&TokensUsed>,
    ) {
        self.calls_known.inc(
            |known| *known == (endpoint, ended),
            || {
                let labels = [("endpoint", endpoint.as_str()), ("ended", ended.as_str())];
                ((endpoint, ended), Counter::clone(&self.calls.get_or_create(&labels)))
            },
        );
        if let Some(reason) = reason {
            self.refusals.get_or_create(&[("reason", reason.code())]).inc();
        }
        if let Some(used) = used {
            self.input.inc_by(used.input);
            self.output.inc_by(used.output);
        }
    }

    /// The exposition text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry.lock().unwrap_or_else(PoisonError::into_inner));
        text
    }
}
