//! A cheap check that single files of a bundle are as they were signed, for displaying them. `verify` judges a
//! whole bundle.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use herma_core::Digest;
use sha2::{Digest as _, Sha256};

use crate::envelope::{BadEnvelope, Envelope};
use crate::file_reading::{MAX_RECORD_BYTES, open_regular, read_regular};
use crate::keys::PublicKey;
use crate::layout;
use crate::verify::ExpectedRun;

/// The size of a read.
const CHUNK: usize = 256 << 10;

/// The differences of these files from the signed ones, in words; empty if there are none. A bundle of another run
/// than the expected one counts as changed.
#[must_use]
pub fn touched(dir: &Path, keys: &[PublicKey], expected: &ExpectedRun, names: &[&str]) -> Vec<String> {
    match signed(dir, keys, expected) {
        Ok(signed) => names.iter().filter_map(|name| differs(dir, name, &signed)).collect(),
        Err(why) => vec![why],
    }
}

/// The digests that one of the keys signed for the expected run.
fn signed(
    dir: &Path,
    keys: &[PublicKey],
    expected: &ExpectedRun,
) -> Result<BTreeMap<String, Digest>, String> {
    let named = |what: &dyn std::fmt::Display| format!("{}: {what}", layout::ATTESTATION);
    let bytes = read_regular(&dir.join(layout::ATTESTATION), MAX_RECORD_BYTES).map_err(|e| named(&e))?;
    let read = || {
        let envelope = Envelope::parse(&bytes)?;
        let (statement, signature, signed) =
            (envelope.statement()?, envelope.signature()?, envelope.signed()?);
        Ok((statement, signature, signed))
    };
    let (statement, (key_id, signature), signed) = read().map_err(|e: BadEnvelope| named(&e))?;
    let known = keys.iter().find(|key| key.key_id() == key_id);
    if !known.is_some_and(|key| key.verifies(&signed, &signature)) {
        return Err(named(&"its signature is not that of this installation"));
    }
    if let Some(mismatch) = expected.mismatch(&statement.predicate) {
        return Err(mismatch);
    }
    Ok(statement.subjects().map(|(name, digest)| (name.to_owned(), digest)).collect())
}

fn differs(dir: &Path, name: &str, signed: &BTreeMap<String, Digest>) -> Option<String> {
    match (digest(&dir.join(name)), signed.get(name)) {
        (Ok(found), Some(signed)) if found == *signed => None,
        (Err(error), None) if error.kind() == io::ErrorKind::NotFound => None,
        (Ok(_), Some(_)) => Some(format!("{name} is not what was signed")),
        (Ok(_), None) => Some(format!("{name} was not there when the rest was signed")),
        (Err(error), _) => Some(format!("{name} cannot be read: {error}")),
    }
}

fn digest(path: &Path) -> io::Result<Digest> {
    let (mut file, mut hash, mut chunk) = (open_regular(path)?, Sha256::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => hash.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Digest::from_bytes(hash.finalize().into()))
}
