//! Checks `confinement.json`: it is of this run, and agrees with the events.

use herma_core::{EventType, Report, Status};
use serde_json::Value;

use super::check::Good;
use super::content::absent;
use super::pass::BundleContents;
use crate::layout;

/// The results of a run's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The number of probes.
    pub probes: usize,
    /// The probes that were not denied, each with its observation.
    pub broken: Vec<String>,
}

/// Parses `confinement.json`, whose format the destinations define.
pub trait ConfinementJudge {
    /// The probes in the record, or why it is not the record of this report's run.
    fn judge(&self, record: &[u8], report: &Report) -> Result<Probed, String>;
}

impl<F: Fn(&[u8], &Report) -> Result<Probed, String>> ConfinementJudge for F {
    fn judge(&self, record: &[u8], report: &Report) -> Result<Probed, String> {
        self(record, report)
    }
}

/// The probes ran where the report says, all of them were refused before an engine started, and the event counts them.
pub(super) fn confinement(seen: &BundleContents, judge: &dyn ConfinementJudge) -> Result<Good, String> {
    let report = seen.report()?;
    let told = seen.events.as_ref().and_then(|events| events.data(EventType::ConfinementProbed));
    let Some(record) = &seen.confinement else { return without(seen, report, told.is_some()) };
    let probed = judge.judge(record.as_ref().map_err(Clone::clone)?, report)?;
    if !report.destination.confines() {
        return Err("there are probes of `host`, where nothing is refused".to_owned());
    }
    if let Some(told) =
        told.filter(|told| !told.contains_key("left_out_bytes") && !told.contains_key("withheld"))
    {
        let broken: Vec<Value> = probed.broken.iter().cloned().map(Value::from).collect();
        let same = told.get("probes").and_then(Value::as_u64) == Some(probed.probes as u64)
            && (told.get("broken") == Some(&Value::Array(broken)) || is_cut(told.get("broken")));
        if !same {
            return Err("the event confinement.probed tells of other probes, or of other results".to_owned());
        }
    }
    match probed.broken.first() {
        Some(broken) if report.engine_started || report.status == Status::Pass => {
            Err(format!("the engine started though a probe was not refused: {broken}"))
        }
        Some(broken) => Ok(Good::Passed(format!("not refused, as the run says: {broken}"))),
        None => Ok(Good::Passed(format!("{} probes, all of them refused", probed.probes))),
    }
}

/// A run without the record is not confined, or ended before the probes.
fn without(seen: &BundleContents, report: &Report, told: bool) -> Result<Good, String> {
    let reason = seen.reason(layout::CONFINEMENT)?.unwrap_or_default();
    if !report.destination.confines() {
        if !report.walls.is_empty() {
            return Err("the report lists isolation layers of `host`, which has none".to_owned());
        }
        return Ok(Good::NotApplicable(reason.to_owned()));
    }
    if told || report.engine_started {
        return absent(seen, report, layout::CONFINEMENT)?
            .ok_or_else(|| format!("{} was not read", layout::CONFINEMENT));
    }
    Ok(Good::NotApplicable(reason.to_owned()))
}

/// Whether an event holds less than there was, because that held a secret or was too long.
pub(super) fn is_cut(value: Option<&Value>) -> bool {
    let text = value.map(Value::to_string).unwrap_or_default();
    text.contains("[redacted:") || text.contains("[left out:")
}
