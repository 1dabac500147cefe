//! Checks of the seal: the files that are there, the envelope, the signature, the digests.

use std::collections::BTreeMap;

use herma_core::Digest;

use super::Trust;
use super::check::Good;
use super::pass::BundleContents;
use crate::envelope::Statement;
use crate::layout;

/// Why there is nothing to check yet: a run leaves its report and its attestation last.
pub(super) fn unfinished(seen: &BundleContents) -> Option<String> {
    let is_there = |name: &&str| seen.files.contains_key(*name);
    let (begun, ended) = ([layout::EVENTS, layout::TRACE], [layout::REPORT, layout::ATTESTATION]);
    let under_way = begun.iter().any(is_there) && !ended.iter().any(is_there);
    under_way.then(|| {
        format!(
            "the run is not finished: there is no {} and no {} yet; it is under way, or was left by a herma that was \
             killed, and then `herma runs` closes it",
            layout::REPORT,
            layout::ATTESTATION
        )
    })
}

/// Nothing is missing, nothing is extra, and everything is a regular file.
pub(super) fn files(seen: &BundleContents) -> Result<Good, String> {
    if let [first, rest @ ..] = seen.problems.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        return Err(format!("{first}{more}"));
    }
    for name in [layout::ATTESTATION, layout::REPORT] {
        if !seen.files.contains_key(name) {
            return Err(format!("{name} is missing"));
        }
    }
    let signed = signed(seen)?;
    // The outcome comes after the attestation; it has its own signature and check.
    let apart = |name: &str| name == layout::ATTESTATION || name == layout::OUTCOME;
    let there = || seen.files.keys().map(String::as_str).filter(|name| !apart(name));
    if let Some(missing) = signed.keys().find(|name| !seen.files.contains_key(**name)) {
        return Err(format!("{missing} is missing"));
    }
    match there().find(|name| !signed.contains_key(name)) {
        Some(extra) => Err(format!("{extra} is extra: the attestation does not cover it")),
        None => Ok(Good::Passed(format!("{} files", seen.files.len()))),
    }
}

/// The attestation is exactly the canonical form of a statement in an envelope.
pub(super) fn envelope(seen: &BundleContents) -> Result<Good, String> {
    seen.envelope().map(|_| Good::Passed("canonical".to_owned()))
}

/// One of the trusted keys signed the statement.
pub(super) fn signature(seen: &BundleContents, trust: &Trust) -> Result<Good, String> {
    let (envelope, _) = seen.envelope()?;
    let (key_id, signature) = envelope.signature().map_err(|e| e.to_string())?;
    let signed = envelope.signed().map_err(|e| e.to_string())?;
    let Some(key) = trust.keys.iter().find(|key| key.key_id() == key_id) else {
        return Err(format!("the signer {key_id} is not known; give its public key if you trust it"));
    };
    if !key.verifies(&signed, &signature) {
        return Err(format!("the signature is not that of {key_id}"));
    }
    Ok(Good::Passed(format!("signed by {key_id}")))
}

/// Whether a trusted key signed the report as it was read.
pub(super) fn vouches_for_report(seen: &BundleContents, trust: &Trust) -> bool {
    let signed_as = |statement: &Statement| {
        let found = seen.files.get(layout::REPORT).map(|(digest, _)| *digest);
        statement.subjects().any(|(name, digest)| name == layout::REPORT && Some(digest) == found)
    };
    signature(seen, trust).is_ok() && seen.envelope().is_ok_and(|(_, statement)| signed_as(statement))
}

/// Every file has the digest that was signed.
pub(super) fn subjects(seen: &BundleContents) -> Result<Good, String> {
    let signed = signed(seen)?;
    for (name, digest) in &signed {
        match seen.files.get(*name) {
            None => return Err(format!("{name} is missing or was not read")),
            Some((found, _)) if found != digest => {
                return Err(format!("{name} has the digest {found}, signed was {digest}"));
            }
            Some(_) => {}
        }
    }
    Ok(Good::Passed(format!("{} digests", signed.len())))
}

fn signed(seen: &BundleContents) -> Result<BTreeMap<&str, Digest>, String> {
    let (_, statement) = seen.envelope()?;
    Ok(statement.subjects().collect())
}
