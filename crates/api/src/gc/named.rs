//! The runs that records name. A record is searched for anything that looks like the id of a run, whatever its format: an id too many
//! keeps a bundle too many.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use herma_core::RunId;
use herma_core::trust::TrustHead;
use herma_evidence::envelope::Envelope;
use herma_evidence::layout;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;

/// The files and directories of the home with records that may name runs, and how messages call such a record. The list of checked
/// runs is a cache of all runs, and no record.
const RECORDS: [(&str, &str); 9] = [
    ("proofs", "a proof"),
    ("comparisons", "a comparison"),
    ("landed", "a landing"),
    ("applied", "an applied patch"),
    ("consumed", "an approval"),
    ("trust/chain.jsonl", "the trust chain"),
    ("admissions", "an admission"),
    ("egress", "a record of egress"),
    ("engines", "a record of an engine"),
];

/// The length of a run's id as text, and the places of its hyphens.
const ID_BYTES: usize = 36;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The largest log of events that is read.
const MAX_EVENTS_BYTES: u64 = 1 << 30;
/// The most approvals that are read.
const MAX_APPROVALS: u32 = i32::MAX as u32;

/// The runs that something names, each with the reasons, and everything that could not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) runs: BTreeMap<RunId, BTreeSet<&'static str>>,
    pub(super) unreadable: Vec<String>,
}

impl Named {
    /// Reads every record of the home and the approvals of the store.
    pub(super) fn read(installation: &Installation) -> Self {
        let mut named = Self::default();
        let root = installation.home.root();
        for (path, record) in RECORDS {
            named.read_below(&root.join(path), record);
        }
        match installation.store.call(|store| store.approvals(None, MAX_APPROVALS)) {
            Ok(approvals) => match serde_json::to_vec(&approvals.iter().map(used_by).collect::<Vec<_>>()) {
                Ok(text) => named.search(&text, "an approval"),
                Err(error) => named.unreadable.push(format!("the approvals: {error}")),
            },
            Err(error) => named.unreadable.push(format!("the approvals in the store: {error}")),
        }
        named
    }

    /// Reads a file, or every file below a directory. Names count as well as contents.
    fn read_below(&mut self, path: &Path, record: &'static str) {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.unreadable.push(failed(error)),
            Ok(meta) if meta.is_dir() => match fs::read_dir(path) {
                Err(error) => self.unreadable.push(failed(error)),
                Ok(entries) => {
                    for entry in entries {
                        match entry {
                            Ok(entry) => self.read_below(&entry.path(), record),
                            Err(error) => self.unreadable.push(failed(error)),
                        }
                    }
                }
            },
            Ok(_) => match read_regular(path, MAX_RECORD_BYTES) {
                Ok(bytes) => self.search(&bytes, record),
                Err(error) => self.unreadable.push(failed(error)),
            },
        }
        let name = path.file_name().unwrap_or_default();
        self.search(name.as_encoded_bytes(), record);
    }

    fn search(&mut self, text: &[u8], record: &'static str) {
        for run in ids(text) {
            self.add(run, record);
        }
    }

    /// Names one run.
    pub(super) fn add(&mut self, run: RunId, record: &'static str) {
        self.runs.entry(run).or_default().insert(record);
    }
}

/// The run that used an approval.
fn used_by(approval: &herma_core::approval::Approval) -> Option<RunId> {
    approval.consumed_by
}

/// Everything in the text that is the id of a run.
fn ids(text: &[u8]) -> BTreeSet<RunId> {
    let shaped = |at: &usize| {
        text.get(*at..at + ID_BYTES).is_some_and(|id| HYPHENS.iter().all(|hyphen| id[*hyphen] == b'-'))
    };
    let starts = memchr_hyphens(text).filter_map(|hyphen| hyphen.checked_sub(HYPHENS[0])).filter(shaped);
    starts.filter_map(|at| std::str::from_utf8(&text[at..at + ID_BYTES]).ok()?.parse().ok()).collect()
}

fn memchr_hyphens(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'-').map(|(at, _)| at)
}

/// The runs that runs under way name, in their plans and events: those that they resume, and their children. None of them has a report.
pub(crate) fn in_use(installation: &Installation) -> io::Result<BTreeSet<RunId>> {
    let mut named = BTreeSet::new();
    for run in installation.home.active_runs()? {
        let dirs = installation.home.run(run);
        for file in [dirs.plan(), dirs.bundle().join(layout::EVENTS)] {
            match read_regular(&file, MAX_EVENTS_BYTES) {
                Ok(bytes) => named.extend(ids(&bytes)),
                // It has not begun, or was closed a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(named)
}

/// The runs that a bundle names: its parent, its child runs, the run that it resumes.
pub(super) fn named_by_bundle(bundle: &Path) -> io::Result<BTreeSet<RunId>> {
    let mut named = BTreeSet::new();
    for name in [layout::REPORT, layout::EVENTS] {
        named.extend(ids(&read_regular(&bundle.join(name), MAX_EVENTS_BYTES)?));
    }
    Ok(named)
}

/// The head of the trust chain that a bundle names; none for a bundle of an earlier version.
pub(super) fn head_of(bundle: &Path) -> io::Result<Option<TrustHead>> {
    let bytes = read_regular(&bundle.join(layout::ATTESTATION), MAX_RECORD_BYTES)?;
    let envelope = Envelope::parse(&bytes).map_err(|e| io::Error::other(e.to_string()))?;
    let statement = envelope.statement().map_err(|e| io::Error::other(e.to_string()))?;
    Ok(statement.predicate.trust_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_in_any_text() {
        let id = "0199a213-81c0-7800-8aa1-bbab2a035a53";
        for text in
            [id.to_owned(), format!("\"run_id\":\"{id}\""), format!("-{id}-"), format!("a-b {id}.json")]
        {
            assert_eq!(ids(text.as_bytes()).into_iter().collect::<Vec<_>>(), [id.parse().unwrap()], "{text}");
        }
        assert!(ids(b"0199a213-81c0-7800-8aa1-bbab2a035a5").is_empty());
        assert!(ids(b"----------------------------------------").is_empty());
    }
}
