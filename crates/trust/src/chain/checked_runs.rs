//! The list of runs whose bundles were already found to agree with the trust chain, `trust/checked-runs`, each with the digest of
//! its attestation. It saves parsing every attestation of the home at the start of every run, and it is only a cache: a list that
//! is missing, changed, older or of another chain, and an attestation with another digest, are read again.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use herma_core::signed::{Signable, Signed};
use herma_core::trust::TrustHead;
use herma_core::{Digest, RunId};
use herma_evidence::{InstallationKey, PublicKey, signed};
use herma_files::{open_with, read_regular};
use serde::{Deserialize, Serialize};

/// The largest list that is read: about half a million runs.
const MAX_BYTES: u64 = 64 << 20;

/// The first line of the list. The runs follow, one a line, each with the digest of its attestation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The head of the chain that contains every head that these runs name.
    head: TrustHead,
    /// The digest of these lines.
    runs: Digest,
}

impl Signable for Header {
    const KIND: &'static str = "herma.checked-runs/v1";
}

/// Runs whose bundles name heads that the chain contains, if it contains `head`.
#[derive(Debug)]
pub(super) struct CheckedRuns {
    pub(super) head: TrustHead,
    pub(super) runs: HashMap<RunId, Digest>,
}

impl CheckedRuns {
    /// The list in this file; none where it is not one that this installation signed.
    pub(super) fn read(file: &Path, installation: &PublicKey) -> Option<Self> {
        let bytes = read_regular(file, MAX_BYTES).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (header, lines) = (&bytes[..end], &bytes[end + 1..]);
        let header: Signed<Header> = serde_json::from_slice(header).ok()?;
        signed::check(&header, installation).ok()?;
        if header.record.runs != Digest::of(lines) {
            return None;
        }
        let entry = |line: &str| {
            let (run, digest) = line.split_once(' ')?;
            Some((run.parse().ok()?, digest.parse().ok()?))
        };
        let runs = std::str::from_utf8(lines).ok()?.lines().map(entry).collect::<Option<_>>()?;
        Some(Self { head: header.record.head, runs })
    }

    /// Writes the list in place. A torn or mixed list has another digest and does not count.
    pub(super) fn write(&self, file: &Path, key: &InstallationKey) -> io::Result<()> {
        let mut lines = String::new();
        for (run, digest) in &self.runs {
            writeln!(lines, "{run} {digest}").map_err(io::Error::other)?;
        }
        let header = Header { head: self.head, runs: Digest::of(lines.as_bytes()) };
        let mut text = serde_json::to_string(&signed::sign(header, key)?)?;
        text.push('\n');
        text.push_str(&lines);
        // A home without a chain has no such directory yet, and as many runs as any other.
        if let Some(dir) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut options = OpenOptions::new();
        open_with(options.write(true).create(true).truncate(true).mode(0o600), file)?
            .write_all(text.as_bytes())
    }
}
