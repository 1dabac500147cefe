//! Whether the introductions of an approver hold, back to the first one.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::Digest;
use herma_core::approver::{ApproverName, ApproverRecord, Revocation};
use herma_core::signed::Signed;
use herma_evidence::{PublicKey, TrustChain, signed};

use super::KnownApprover;

/// The files of one approver, not yet verified.
pub(super) struct Entry {
    pub(super) signed: Signed<ApproverRecord>,
    pub(super) revoked: Option<Revocation>,
}

/// Judges everybody. `first` is the key of the first approver, who alone may vouch for itself.
pub(super) fn judge(entries: BTreeMap<ApproverName, Entry>, first: Option<Digest>) -> Vec<KnownApprover> {
    let standings: Vec<_> = entries.keys().map(|name| standing(&entries, first, name)).collect();
    let known = |(entry, standing): (Entry, _)| KnownApprover {
        record: entry.signed.record,
        revoked: entry.revoked,
        standing,
    };
    entries.into_values().zip(standings).map(known).collect()
}

/// The same, by the trust chain as well: who was revoked stays so, and who counts is who the chain added.
pub(super) fn judge_by_chain(
    mut entries: BTreeMap<ApproverName, Entry>,
    first: Option<Digest>,
    chain: &TrustChain,
) -> Vec<KnownApprover> {
    for (name, entry) in &mut entries {
        if let Some(revocation) = chain.revocation(name) {
            entry.revoked = Some(revocation.clone());
        }
    }
    let mut known = judge(entries, first);
    for approver in &mut known {
        let named = chain.approver(&approver.record.name);
        if approver.standing.is_ok() && (named.is_none() || named != signed::digest(&approver.record).ok()) {
            approver.standing = Err("its record is not the one in the trust chain".to_owned());
        }
    }
    known
}

/// Nobody is trusted, for this reason.
pub(super) fn distrust(mut known: Vec<KnownApprover>, why: &str) -> Vec<KnownApprover> {
    for approver in &mut known {
        if approver.standing.is_ok() {
            approver.standing = Err(why.to_owned());
        }
    }
    known
}

fn standing(
    entries: &BTreeMap<ApproverName, Entry>,
    first: Option<Digest>,
    name: &ApproverName,
) -> Result<(), String> {
    let mut passed = BTreeSet::new();
    let mut name = name;
    loop {
        let entry = entries.get(name).ok_or_else(|| format!("the record of {name} is not there"))?;
        let record = &entry.signed.record;
        let key = own_key(record)?;
        if !passed.insert(name) {
            return Err(format!("the introductions of {name} go in a circle"));
        }
        let introducer = &record.introduced_by;
        if introducer == name {
            holds(&entry.signed, &key)?;
            return match first {
                Some(first) if first == record.key_id => Ok(()),
                _ => Err(format!("{name} vouches for itself and is not the first approver")),
            };
        }
        let above = entries
            .get(introducer)
            .ok_or_else(|| format!("the record of {introducer}, who let {name} in, is not there"))?;
        holds(&entry.signed, &own_key(&above.signed.record)?)?;
        if above.revoked.as_ref().is_some_and(|revocation| !revocation.keeps.contains(&record.key_id)) {
            return Err(format!("{introducer} was revoked before it let {name} in"));
        }
        name = introducer;
    }
}

/// The key in a record, if the record names it right.
fn own_key(record: &ApproverRecord) -> Result<PublicKey, String> {
    let key = PublicKey::from_pem(&record.public_key).map_err(|e| format!("{}: {e}", record.name))?;
    if key.key_id() == record.key_id {
        Ok(key)
    } else {
        Err(format!("the record of {} names another key than the one it holds", record.name))
    }
}

fn holds(signed: &Signed<ApproverRecord>, key: &PublicKey) -> Result<(), String> {
    let name = &signed.record.name;
    signed::check(signed, key).map_err(|bad| format!("the introduction of {name} does not hold: {bad}"))
}
