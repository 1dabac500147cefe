//! The log of a run's events, written as they happen.

mod data;
mod feed;

pub use feed::{NextUpdate, RunFeed, RunUpdate, RunUpdates};

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use herma_core::event::{Event, EventData, EventType, Source};
use herma_core::{Fault, RunId};
use serde_json::{Map, Value};

use crate::append::Append;
use crate::bundle::{Bundle, WriteError};
use crate::chain::{Chain, LONGEST_LINE};
use crate::layout;
use crate::redact::Redactor;

/// How many events an agent may leave.
pub const MAX_AGENT_EVENTS: u64 = 10_000;
/// How many bytes of events an agent may leave.
pub const MAX_AGENT_BYTES: u64 = 16 << 20;

/// A receiver of every event that is appended to a log, in the order of the log.
pub trait EventSink: fmt::Debug + Send + Sync {
    /// The event is in the file. The log waits until this returns.
    fn appended(&self, event: &Event);
}

/// The log of a run's events. Threads may share it.
#[derive(Debug)]
pub struct EventLog {
    bundle: Bundle,
    run_id: RunId,
    redactor: RwLock<Redactor>,
    inner: Mutex<Inner>,
    feed: Option<Arc<RunFeed>>,
    sink: Option<Arc<dyn EventSink>>,
}

#[derive(Debug)]
struct Inner {
    file: Append,
    chain: Chain,
    events: Vec<Event>,
    agent_events: u64,
    agent_bytes: u64,
    left_out: u64,
}

impl EventLog {
    /// A log without an event; the file is made with the first one.
    #[must_use]
    pub fn create(bundle: &Bundle, run_id: RunId, redactor: Redactor) -> Self {
        let file = Append::new(bundle, layout::EVENTS);
        let inner = Inner::new(file, Chain::new(Some(run_id)), Vec::new());
        Self::over(bundle, run_id, redactor, inner)
    }

    fn over(bundle: &Bundle, run_id: RunId, redactor: Redactor, inner: Inner) -> Self {
        let (redactor, inner) = (RwLock::new(redactor), Mutex::new(inner));
        Self { bundle: bundle.clone(), run_id, redactor, inner, feed: None, sink: None }
    }

    /// Publishes every event that is appended from now on to this feed.
    #[must_use]
    pub fn with_feed(self, feed: Arc<RunFeed>) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// Hands every event that is appended from now on to this sink.
    #[must_use]
    pub fn with_sink(self, sink: Arc<dyn EventSink>) -> Self {
        Self { sink: Some(sink), ..self }
    }

    /// Continues the log of a run that was interrupted. Bytes behind the last sound event are cut off.
    pub fn resume(bundle: &Bundle, run_id: RunId, redactor: Redactor) -> Result<Self, WriteError> {
        let mut chain = Chain::new(Some(run_id));
        let mut events = Vec::new();
        let file = Append::resume(bundle, layout::EVENTS, LONGEST_LINE, |line| match chain.follow(line) {
            Ok(event) => {
                events.push(event);
                true
            }
            Err(_) => false,
        })?;
        if let Some(last) = chain.last_ts() {
            bundle.not_before(last);
        }
        let inner = Inner::new(file, chain, events);
        Ok(Self::over(bundle, run_id, redactor, inner))
    }

    /// Takes these secrets too out of what is appended from now on.
    pub fn redact_with(&self, redactor: Redactor) {
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = redactor;
    }

    /// The redactor of secrets.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        self.redactor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends one event with its typed payload.
    pub fn record(&self, source: Source, data: impl Into<EventData>) -> Result<(), WriteError> {
        let data = data.into();
        self.append(source, data.kind(), data.to_map())
    }

    /// Appends one event.
    pub fn append(
        &self,
        source: Source,
        kind: EventType,
        data: Map<String, Value>,
    ) -> Result<(), WriteError> {
        if matches!(self.bundle.fault(), Some(Fault::DropEvent(dropped)) if *dropped == kind) {
            return Ok(());
        }
        let redactor = self.redactor();
        let data = data::prepare(data, source, &redactor);
        let mut inner = self.lock();
        if source == Source::Agent && !inner.has_room() {
            inner.left_out += 1;
            return Ok(());
        }
        // The clock may step back; the order of events may not.
        let now = self.bundle.now();
        let ts = inner.chain.last_ts().map_or(now, |last| last.max(now));
        let (seq, prev) = (inner.chain.seq(), inner.chain.prev());
        let event = Event { seq, ts, run_id: self.run_id, source, kind, data, prev };
        let line = line(event, &redactor).map_err(|e| WriteError::new(layout::EVENTS, e))?;
        inner.file.line(&line)?;
        let event = inner
            .chain
            .follow(&line)
            .map_err(|e| WriteError::new(layout::EVENTS, std::io::Error::other(e)))?;
        inner.count(&event, line.len());
        if let Some(feed) = &self.feed {
            feed.publish(RunUpdate::Event(event.clone()));
        }
        if let Some(sink) = &self.sink {
            sink.appended(&event);
        }
        inner.events.push(event);
        Ok(())
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    /// How many events of this type there are so far.
    #[must_use]
    pub fn count(&self, kind: EventType) -> u64 {
        self.lock().events.iter().filter(|event| event.kind == kind).count() as u64
    }

    /// How many events of the agent were too many to keep.
    #[must_use]
    pub fn agent_events_left_out(&self) -> u64 {
        self.lock().left_out
    }

    /// Makes every event so far durable.
    pub fn settle(&self) -> Result<(), WriteError> {
        self.lock().file.settle()
    }

    /// Makes the file durable and records it. After that nothing may be appended.
    pub fn finish(&self) -> Result<(), WriteError> {
        self.lock().file.finish()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn new(file: Append, chain: Chain, events: Vec<Event>) -> Self {
        let mut inner =
            Self { file, chain, events: Vec::new(), agent_events: 0, agent_bytes: 0, left_out: 0 };
        for event in &events {
            inner.count(event, 0);
        }
        inner.events = events;
        inner
    }

    fn has_room(&self) -> bool {
        self.agent_events < MAX_AGENT_EVENTS && self.agent_bytes < MAX_AGENT_BYTES
    }

    fn count(&mut self, event: &Event, bytes: usize) {
        if event.source == Source::Agent {
            self.agent_events += 1;
            self.agent_bytes += bytes as u64;
        }
    }
}

/// The event's line. Escaping can bring together what was apart, so the line itself is looked at once more.
fn line(mut event: Event, redactor: &Redactor) -> Result<Vec<u8>, serde_json::Error> {
    let line = serde_json_canonicalizer::to_vec(&event)?;
    if !redactor.finds_secret(&line) {
        return Ok(line);
    }
    event.data = data::withheld();
    serde_json_canonicalizer::to_vec(&event)
}
