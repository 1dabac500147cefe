//! The check of the model calls: one chain, of this run, that adds up to what the report says.

use herma_core::model_call::{Chain, Ended, LONGEST_LINE, ModelCall, Sums};
use herma_core::report::{ModelToolCalls, Usage};
use herma_core::{Blocker, Report, Status};

use super::content::absent;
use super::pass::BundleContents;
use crate::layout;
use crate::lines::LineBuffer;

/// The facts of the model calls.
pub(super) struct ModelCallsSeen {
    lines: LineBuffer,
    read: ModelCallsRead,
}

struct ModelCallsRead {
    chain: Chain,
    broken: Option<String>,
    sums: Sums,
    /// A refusal with which the run cannot pass.
    refused: Option<Blocker>,
}

impl ModelCallsSeen {
    /// A reader for the calls of this run.
    pub(super) fn new(run: &str) -> Self {
        let read =
            ModelCallsRead { chain: Chain::new(run), broken: None, sums: Sums::default(), refused: None };
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
}

impl ModelCallsRead {
    fn line(&mut self, line: &[u8], whole: bool) {
        if self.broken.is_some() {
            return;
        }
        if !whole {
            self.broken = Some(format!("line {}: it is torn or too long", self.chain.seq() + 1));
            return;
        }
        match self.chain.follow(line) {
            Ok(call) => {
                self.sums.add(&call);
                self.refused = self.refused.or_else(|| refusal(&call));
            }
            Err(broken) => self.broken = Some(broken.to_string()),
        }
    }
}

/// The blocker that a refused call leads to, where it leads to one.
#[must_use]
pub fn refusal(call: &ModelCall) -> Option<Blocker> {
    let named = |blocker: &Blocker| call.reason.as_deref() == Some(blocker.as_str());
    let refused = call.ended == Ended::Refused;
    [Blocker::ModelMismatch, Blocker::BudgetExhausted].into_iter().find(named).filter(|_| refused)
}

/// The chain holds, its sums are the report's, and what was refused is among the blockers.
pub(super) fn model_calls(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let Some(calls) = &seen.model_calls else { return without(seen, report) };
    let read = &calls.read;
    if let Some(broken) = &read.broken {
        return Err(format!("{}: {broken}", layout::MODEL_CALLS));
    }
    if report.model.is_none() {
        return Err(format!("{} is there, and the report names no model", layout::MODEL_CALLS));
    }
    let (found, said) = (Usage::from(&read.sums), report.usage);
    for (what, found, said) in [
        ("requests", found.requests, said.requests),
        ("input tokens", found.input_tokens, said.input_tokens),
        ("output tokens", found.output_tokens, said.output_tokens),
        ("charged tokens", found.charged_tokens, said.charged_tokens),
        ("millionths of a dollar", found.usd.0, said.usd.0),
        ("unsettled calls", found.unsettled, said.unsettled),
    ] {
        if found != said {
            return Err(format!("{} adds up to {found} {what}, the report says {said}", layout::MODEL_CALLS));
        }
    }
    tools(read.sums.tool_calls, report)?;
    let listed = |blocker| report.blockers.iter().any(|record| record.blocker == blocker);
    match read.refused {
        // A gate that is missing says more than what was refused on the way to it.
        Some(blocker) if report.engine_started && !listed(blocker) => {
            Err(format!("a call was refused as {blocker}, which is not among the blockers"))
        }
        _ => Ok(()),
    }
}

/// The tool calls that the report says the model asked for are those of its answers, and are compared with what is known of
/// the engine.
fn tools(found: u64, report: &Report) -> Result<(), String> {
    let Some(used) = &report.tools else { return Ok(()) };
    let Some(ModelToolCalls { asked_for, at_gates, unreconciled }) = used.model_calls else {
        return Err(format!(
            "{} is there, and the report does not say what tool calls the model asked for",
            layout::MODEL_CALLS
        ));
    };
    let said = asked_for.saturating_add(at_gates);
    if found != said {
        return Err(format!("{} adds up to {found} tool calls, the report says {said}", layout::MODEL_CALLS));
    }
    let difference = used.difference(asked_for);
    if unreconciled != difference {
        return Err(format!(
            "the tool calls that the model asked for and those of the engine differ by {difference}, the report says \
             {unreconciled}"
        ));
    }
    Ok(())
}

/// Without the file nothing is counted; and an engine that may ask a model leaves it.
fn without(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let named = seen.contract().map_or(report.model.is_some(), |contract| contract.terms.model.is_some());
    if named && report.engine_started && absent(seen, report, layout::MODEL_CALLS)?.is_some() {
        return Ok(());
    }
    let counted =
        report.usage != Usage::NONE || report.tools.as_ref().is_some_and(|used| used.model_calls.is_some());
    if !counted || excused(seen, report) {
        return Ok(());
    }
    Err(format!("the report counts model calls, and {} is not there", layout::MODEL_CALLS))
}

/// Whether the file could not be written, so that what was used is known and not shown.
fn excused(seen: &BundleContents, report: &Report) -> bool {
    report.status != Status::Pass && matches!(absent(seen, report, layout::MODEL_CALLS), Ok(Some(_)))
}
