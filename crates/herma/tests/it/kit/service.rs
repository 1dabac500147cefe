//! A process that runs orders through `RunService`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use herma_core::RunId;

use super::{Ended, HERMA, Herma, Started, environment, until};

/// The example `run-service`, at work in the home of a test.
pub(crate) struct Service {
    started: Started,
    orders: Option<PipeWriter>,
}

impl Herma {
    /// Starts the example, with at most so many runs at once.
    pub(crate) fn service(&self, max_concurrent: usize) -> Service {
        let (stdin, orders) = std::io::pipe().unwrap();
        let args: [OsString; 5] = [
            HERMA.into(),
            self.home().into(),
            self.at("user").into(),
            environment("PATH"),
            max_concurrent.to_string().into(),
        ];
        let started = Started::reading(&[example().into()], &[], &self.at("."), &args, Stdio::from(stdin));
        Service { started, orders: Some(orders) }
    }
}

/// Cargo builds the examples of this package next to its tests.
fn example() -> PathBuf {
    let example = Path::new(HERMA).parent().unwrap().join("examples/run-service");
    assert!(example.is_file(), "{} is missing: cargo builds it with the tests", example.display());
    example
}

impl Service {
    /// Submits a run of this contract, played by this script.
    pub(crate) fn submit(&mut self, contract: &Path, script: &Path) {
        self.order(&format!("run {} {}", contract.display(), script.display()));
    }

    /// Cancels one run.
    pub(crate) fn cancel(&mut self, run: RunId) {
        self.order(&format!("cancel {run}"));
    }

    fn order(&mut self, line: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The runs so far, in the order in which they began.
    pub(crate) fn submitted(&self) -> Vec<RunId> {
        self.said("submitted").map(|words| words[1].parse().unwrap()).collect()
    }

    /// Waits until so many runs have begun.
    pub(crate) fn until_submitted(&self, count: usize) -> Vec<RunId> {
        until("the runs begin", || self.submitted().len() >= count);
        self.submitted()
    }

    /// The runs that are closed, each with its status.
    pub(crate) fn closed(&self) -> BTreeMap<RunId, String> {
        self.said("closed").map(|words| (words[1].parse().unwrap(), words[2].clone())).collect()
    }

    /// Whether the service has published this event of the run.
    pub(crate) fn published(&self, run: RunId, event: &str) -> bool {
        self.said("event").any(|words| words[1] == run.to_string() && words[2] == event)
    }

    fn said(&self, what: &str) -> impl Iterator<Item = Vec<String>> {
        let lines: Vec<Vec<String>> = self
            .started
            .stdout_so_far()
            .lines()
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
        let what = what.to_owned();
        lines.into_iter().filter(move |words| words[0] == what && words.len() >= 2)
    }

    /// Submits nothing more and waits until every run is closed.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.orders.take());
        self.started.end_patiently()
    }

    /// Kills it as a power cut would.
    pub(crate) fn kill(self) -> Ended {
        self.started.kill()
    }
}
