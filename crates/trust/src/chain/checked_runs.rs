//! The list of runs whose bundles were already found to agree with the trust chain, `trust/checked-runs`. It saves
//! reading every bundle of the home at the start of every run, and it is only a cache: a list that is missing, changed,
//! older or of another chain leaves bundles to be read again.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use herma_core::signed::{Signable, Signed};
use herma_core::trust::TrustHead;
use herma_core::{Digest, RunId};
use herma_evidence::{InstallationKey, PublicKey, signed};
use herma_files::{open_with, read_regular};
use serde::{Deserialize, Serialize};

/// The largest list that is read: about two million runs.
const MAX_BYTES: u64 = 64 << 20;

/// The first line of the list. The names of the runs follow, one a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The head of the chain that contains every head that these runs name.
    head: TrustHead,
    /// The digest of the names.
    runs: Digest,
}

impl Signable for Header {
    const KIND: &'static str = "herma.checked-runs/v1";
}

/// Runs whose bundles name heads that the chain contains, if it contains `head`.
#[derive(Debug)]
pub(super) struct CheckedRuns {
    pub(super) head: TrustHead,
    pub(super) runs: HashSet<RunId>,
}

impl CheckedRuns {
    /// The list in this file; none where it is not one that this installation signed.
    pub(super) fn read(file: &Path, installation: &PublicKey) -> Option<Self> {
        let bytes = read_regular(file, MAX_BYTES).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (header, names) = (&bytes[..end], &bytes[end + 1..]);
        let header: Signed<Header> = serde_json::from_slice(header).ok()?;
        signed::check(&header, installation).ok()?;
        if header.record.runs != Digest::of(names) {
            return None;
        }
        let runs = std::str::from_utf8(names).ok()?.lines().map(str::parse).collect::<Result<_, _>>();
        Some(Self { head: header.record.head, runs: runs.ok()? })
    }

    /// Writes the list in place. A torn or mixed list has another digest and does not count.
    pub(super) fn write(&self, file: &Path, key: &InstallationKey) -> io::Result<()> {
        let mut names = String::new();
        for run in &self.runs {
            writeln!(names, "{run}").map_err(io::Error::other)?;
        }
        let header = Header { head: self.head, runs: Digest::of(names.as_bytes()) };
        let mut text = serde_json::to_string(&signed::sign(header, key)?)?;
        text.push('\n');
        text.push_str(&names);
        let mut options = OpenOptions::new();
        open_with(options.write(true).create(true).truncate(true).mode(0o600), file)?
            .write_all(text.as_bytes())
    }
}
