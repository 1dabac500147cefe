//! Faults that can be injected into a run, so that the failure matrix and the kill test run on the real binary.
//! A fault can only make a run worse: there is none that skips a gate or a check.

use std::str::FromStr;

use crate::event::EventType;
use crate::step::Step;

/// One fault of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// herma kills itself with SIGKILL after this step was written and before it is taken: `kill:engine`.
    Kill(Step),
    /// This event is not written: `drop-event:diff.checked`.
    DropEvent(EventType),
    /// herma kills itself between marking an approval as used and the store's transaction: `kill-after:approval-mark`.
    KillAfterMark,
    /// This file of the bundle is recorded as written an hour before it was, the first time: `backdate:report.md`.
    Backdate(String),
    /// Writing this file of the bundle fails as on a broken disk: `fail-write:patch.diff`.
    FailWrite(String),
    /// The workspace holds a file that was not in the base tree: `dirty-copy`.
    DirtyCopy,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "dirty-copy" {
            return Ok(Self::DirtyCopy);
        }
        match text.split_once(':') {
            Some(("kill-after", "approval-mark")) => Ok(Self::KillAfterMark),
            Some(("backdate", file)) if !file.is_empty() => Ok(Self::Backdate(file.to_owned())),
            Some(("kill", step)) => step.parse().map(Self::Kill),
            Some(("drop-event", event)) => event.parse().map(Self::DropEvent),
            Some(("fail-write", file)) if !file.is_empty() => Ok(Self::FailWrite(file.to_owned())),
            _ => Err(format!(
                "`{text}` is not a fault: expected kill:STEP, kill-after:approval-mark, drop-event:EVENT, \
                 fail-write:FILE, backdate:FILE or dirty-copy"
            )),
        }
    }
}
