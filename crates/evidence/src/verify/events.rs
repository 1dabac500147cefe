//! Checks of the event log and of time: chain, order, freshness.

use std::collections::BTreeMap;

use herma_core::blocker::Blocker;
use herma_core::event::{self, Event, EventType, RunCompleted, Source};
use herma_core::{Report, RunId, Status, Timestamp};

use super::check::Good;
use super::children::ChildrenSeen;
use super::egress::EgressSeen;
use super::pass::BundleContents;
use crate::chain::{Chain, LONGEST_LINE};
use crate::layout;
use crate::lines::LineBuffer;
use crate::report;

/// The number of harness events that are kept; no run has nearly as many.
const MAX_HARNESS_EVENTS: usize = 100_000;

/// The facts of the event log.
pub(super) struct EventsSeen {
    lines: LineBuffer,
    read: EventLogRead,
}

struct EventLogRead {
    chain: Chain,
    broken: Option<String>,
    /// The harness's events without their data.
    harness: Vec<Event>,
    first: Option<Event>,
    last: Option<Event>,
    earliest: Option<Timestamp>,
    backwards: Option<u64>,
    egress: EgressSeen,
    children: ChildrenSeen,
    /// The data of what is recorded once in a run.
    once: BTreeMap<EventType, serde_json::Map<String, serde_json::Value>>,
    repeated: Option<EventType>,
}

/// The harness events that a run records once and its report repeats.
const ONCE: [EventType; 11] = [
    EventType::RunStarted,
    EventType::ContractCreated,
    EventType::ConfinementProbed,
    EventType::ApprovalGranted,
    EventType::ApprovalConsumed,
    EventType::EligibilityDecided,
    EventType::WorkspacePrepared,
    EventType::EngineStarted,
    EventType::PatchApplied,
    EventType::DiffChecked,
    EventType::VerificationCompleted,
];

impl EventsSeen {
    pub(super) fn new() -> Self {
        let read = EventLogRead {
            chain: Chain::new(None),
            broken: None,
            harness: Vec::new(),
            first: None,
            last: None,
            earliest: None,
            backwards: None,
            egress: EgressSeen::default(),
            children: ChildrenSeen::default(),
            once: BTreeMap::new(),
            repeated: None,
        };
        Self { lines: LineBuffer::new(LONGEST_LINE), read }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        let Self { lines, read } = self;
        if read.broken.is_none() {
            lines.push(chunk, &mut |line| read.line(line.bytes, line.is_whole()));
        }
    }

    pub(super) fn finish(&mut self) {
        let Self { lines, read } = self;
        lines.finish(&mut |line| read.line(line.bytes, false));
    }

    /// The last event, which holds the verdict.
    pub(super) fn first(&self) -> Option<&Event> {
        self.read.first.as_ref()
    }

    pub(super) fn last(&self) -> Option<&Event> {
        self.read.last.as_ref()
    }

    /// Its egress decisions.
    pub(super) fn egress(&self) -> &EgressSeen {
        &self.read.egress
    }

    /// Its child runs.
    pub(super) fn children(&self) -> &ChildrenSeen {
        &self.read.children
    }

    /// The data of an event that is recorded once, where it is there.
    pub(super) fn data(&self, kind: EventType) -> Option<&serde_json::Map<String, serde_json::Value>> {
        self.read.once.get(&kind)
    }

    /// An event that is there more often than once, and must not be.
    pub(super) fn repeated(&self) -> Option<EventType> {
        self.read.repeated
    }

    /// When the first event of the harness of that kind was written.
    pub(super) fn first_at(&self, kind: EventType) -> Option<Timestamp> {
        self.read.harness.iter().find(|event| event.kind == kind).map(|event| event.ts)
    }

    fn run_id(&self) -> Option<RunId> {
        self.last().map(|event| event.run_id)
    }
}

impl EventLogRead {
    fn line(&mut self, line: &[u8], whole: bool) {
        if self.broken.is_some() {
            return;
        }
        if !whole {
            self.broken = Some(format!("line {}: it is torn or too long", self.chain.seq() + 1));
            return;
        }
        let before = self.chain.last_ts();
        let event = match self.chain.follow(line) {
            Ok(event) => event,
            Err(broken) => {
                self.broken = Some(broken.to_string());
                return;
            }
        };
        self.earliest.get_or_insert(event.ts);
        if before.is_some_and(|before| event.ts < before) {
            self.backwards.get_or_insert(event.seq + 1);
        }
        if event.source == Source::Harness {
            if self.harness.len() >= MAX_HARNESS_EVENTS {
                self.broken = Some(format!("more than {MAX_HARNESS_EVENTS} events of the harness"));
                return;
            }
            self.egress.event(&event);
            self.children.event(&event);
            if ONCE.contains(&event.kind) && self.once.insert(event.kind, event.data.clone()).is_some() {
                self.repeated.get_or_insert(event.kind);
            }
            self.harness.push(Event { data: serde_json::Map::new(), ..event.clone() });
        }
        if self.first.is_none() {
            self.first = Some(event.clone());
        }
        self.last = Some(event);
    }
}

/// The events of a bundle.
enum Events<'a> {
    Found(&'a EventsSeen),
    /// They are excused; no pass is without them.
    Excused(Good),
}

/// The events, or the reason for their absence.
fn events<'a>(seen: &'a BundleContents, report: &Report) -> Result<Events<'a>, String> {
    match (&seen.events, seen.reason(layout::EVENTS)?) {
        (Some(events), _) => Ok(Events::Found(events)),
        (None, Some(reason)) if report.status != Status::Pass => {
            Ok(Events::Excused(Good::NotApplicable(reason.to_owned())))
        }
        (None, _) => Err(format!("{} is not there", layout::EVENTS)),
    }
}

/// Every event is canonical, in its place, of this run, and names the digest of the one before.
pub(super) fn chain(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    let events = match events(seen, report)? {
        Events::Found(events) => events,
        Events::Excused(without) => return Ok(without),
    };
    if let Some(broken) = &events.read.broken {
        return Err(format!("{}: {broken}", layout::EVENTS));
    }
    match events.run_id() {
        None => Err(format!("{} is empty", layout::EVENTS)),
        Some(id) if id != report.run_id => Err(format!("the events are of another run, {id}")),
        Some(_) => Ok(Good::Passed(format!("{} events", events.read.chain.seq()))),
    }
}

/// The required events are there in order, the first one first and the last one last; or the report says that they
/// are not.
pub(super) fn order(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    let trace_is_sound = match (&seen.trace, seen.reason(layout::TRACE)?) {
        (Some(Err(problem)), _) => Err(format!("{}: {problem}", layout::TRACE)),
        (None, None) => Err(format!("{} is not there", layout::TRACE)),
        (None, Some(_)) if report.status == Status::Pass => Err(format!("a pass without {}", layout::TRACE)),
        _ => Ok(()),
    };
    let events = match events(seen, report)? {
        Events::Found(events) => &events.read,
        Events::Excused(without) => return trace_is_sound.map(|()| without),
    };
    trace_is_sound?;
    let said = |blocker| report.blockers.iter().any(|record| record.blocker == blocker);
    let completed = events.harness.iter().filter(|e| e.kind == EventType::RunCompleted).count();
    // Closing is tried a second time where the first could not be finished, and then the run is not a pass any more.
    if completed > 1 && events.last.as_ref().is_none_or(is_pass) {
        return Err("run.completed is there twice, and the last one is a pass".to_owned());
    }
    let admitted =
        !report.required_events_passed && (said(Blocker::MissingRequiredEvent) || said(Blocker::Interrupted));
    if !report.required_events_passed && !admitted {
        return Err("the report says that events are missing and has no such blocker".to_owned());
    }
    match (problem(report, events), admitted) {
        (None, false) => Ok(Good::Passed("all required events are there, in order".to_owned())),
        (None, true) => Ok(Good::Passed("the report says that events are missing".to_owned())),
        (Some(problem), true) => Ok(Good::Passed(format!("{problem}, as the report says"))),
        (Some(problem), false) => Err(problem),
    }
}

fn problem(report: &Report, events: &EventLogRead) -> Option<String> {
    let is = |event: &Option<Event>, kind| {
        event.as_ref().is_some_and(|e| e.source == Source::Harness && e.kind == kind)
    };
    if !is(&events.first, EventType::RunStarted) {
        return Some("the first event is not run.started".to_owned());
    }
    if !is(&events.last, EventType::RunCompleted) {
        return Some("the last event is not run.completed".to_owned());
    }
    let confined = report.destination.confines();
    let Report { stage, status, engine_started, .. } = *report;
    let required = event::required(event::EndSummary { stage, status, engine_started, confined });
    let missing = event::first_missing(&required, &events.harness)?;
    Some(format!("{missing} is not there, or not in its place"))
}

/// Whether its verdict is a pass, or cannot be read.
fn is_pass(event: &Event) -> bool {
    RunCompleted::from_data(&event.data).map_or(true, |verdict| verdict.status == Status::Pass)
}

/// Every file and every event was written between the run's start and its end.
pub(super) fn freshness(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    let (started, finished) = (report.run_started_at, report.run_finished_at);
    if started > finished {
        return Err("the run ended before it started".to_owned());
    }
    let inside = |at: Timestamp| started <= at && at <= finished;
    if let Some((name, artifact)) = report.artifacts.iter().find(|(_, a)| !inside(a.written_at)) {
        return Err(format!("{name} was written at {}, outside the run", artifact.written_at));
    }
    if report.freshness != report::freshness(&report.artifacts, started, finished) {
        return Err("the report's freshness is not that of its files".to_owned());
    }
    if let Some(Ok(steps)) = &seen.trace
        && let Some(step) = steps.iter().find(|step| !inside(step.ts))
    {
        return Err(format!("step {} was written at {}, outside the run", step.step, step.ts));
    }
    if let Some(EventsSeen { read, .. }) = &seen.events {
        if let Some(line) = read.backwards {
            return Err(format!("{}: line {line}: it is older than the one before", layout::EVENTS));
        }
        // Events do not go back in time, so the ends speak for all of them.
        let ends = [read.earliest, read.chain.last_ts()];
        if let Some(at) = ends.into_iter().flatten().find(|at| !inside(*at)) {
            return Err(format!("an event was written at {at}, outside the run"));
        }
    }
    Ok(Good::Passed(format!("everything was written between {started} and {finished}")))
}
