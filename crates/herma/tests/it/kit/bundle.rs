//! A bundle that a run left, read back.

use std::path::PathBuf;
use std::rc::Rc;

use herma_core::report::PathRule;
use herma_core::{Blocker, Event, EventType, Report, Status};
use herma_evidence::layout;
use tempfile::TempDir;

use super::Ended;

/// The directory of a bundle.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) dir: PathBuf,
    /// The directory of the bundle, which a test may read after its herma is gone.
    pub(super) _keep: Rc<TempDir>,
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ended: Ended,
    pub(crate) report: Report,
    pub(crate) bundle: Bundle,
}

impl Bundle {
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let path = self.dir.join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub(crate) fn report(&self) -> Report {
        herma_evidence::report::parse(&self.read(layout::REPORT)).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.text(layout::EVENTS).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn has_event(&self, kind: EventType) -> bool {
        self.events().iter().any(|event| event.kind == kind)
    }

    /// Every file that a bundle has is there, or the report says why not.
    pub(crate) fn assert_whole(&self) {
        let report = self.report();
        for name in layout::EXPECTED.into_iter().chain([layout::ATTESTATION]) {
            let (there, excused) = (self.dir.join(name).is_file(), report.not_applicable.contains_key(name));
            assert!(there != excused, "{name}: there: {there}, excused: {excused}: {report:#?}");
        }
    }
}

impl Finished {
    /// The verdict is this blocker, and no other is listed.
    pub(crate) fn assert_only(&self, blocker: Blocker) {
        let found: Vec<Blocker> = self.report.blockers.iter().map(|record| record.blocker).collect();
        assert_eq!(found, [blocker], "{:#?}", self.report);
        assert_eq!(self.report.status, blocker.status());
        assert_eq!(self.ended.code, Some(i32::from(blocker.status().exit_code())), "{:#?}", self.ended);
    }

    /// The verdict is a pass.
    pub(crate) fn assert_pass(&self) {
        assert_eq!(self.report.status, Status::Pass, "{:#?}", self.report);
        assert_eq!(self.ended.code, Some(0), "{:#?}", self.ended);
    }

    /// The verdict is `disallowed_file`, with exactly these violations, and nothing was verified.
    pub(crate) fn assert_disallowed(&self, violations: &[(&str, PathRule)]) {
        self.assert_only(Blocker::DisallowedFile);
        let found: Vec<(String, PathRule)> =
            self.report.path_violations.iter().map(|v| (v.path.to_string(), v.rule)).collect();
        let wanted: Vec<(String, PathRule)> =
            violations.iter().map(|(path, rule)| ((*path).to_owned(), *rule)).collect();
        assert_eq!(found, wanted, "{:#?}", self.report);
        assert!(self.report.verification.is_empty());
    }

    /// The paths that changed.
    pub(crate) fn changed(&self) -> Vec<String> {
        self.report.changed_files.iter().map(|change| change.path.to_string()).collect()
    }

    /// The output of the engine.
    pub(crate) fn engine_said(&self) -> String {
        String::from_utf8_lossy(&self.bundle.read(layout::ENGINE_STDOUT)).into_owned()
    }
}
