//! Whether the introductions of an approver hold, back to the first one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use herma_core::Digest;
use herma_core::approver::{ApproverName, ApproverRecord, Revocation};
use herma_core::signed::Signed;
use herma_evidence::{PublicKey, TrustChain, signed};

use super::{BrokenIntroduction, KnownApprover};
use crate::chain::TrustError;

/// The files of one approver, not yet verified.
pub(super) struct Entry {
    pub(super) signed: Signed<ApproverRecord>,
    pub(super) revoked: Option<Revocation>,
}

/// Judges all approvers. `first` is the key of the first approver, who alone may vouch for itself.
pub(super) fn judge(entries: BTreeMap<ApproverName, Entry>, first: Option<Digest>) -> Vec<KnownApprover> {
    let standings: Vec<_> = entries.keys().map(|name| standing(&entries, first, name)).collect();
    let known = |(entry, standing): (Entry, _)| KnownApprover {
        record: entry.signed.record,
        revoked: entry.revoked,
        standing,
    };
    entries.into_values().zip(standings).map(known).collect()
}

/// The same, by the trust chain as well: a revoked approver stays revoked, and only those that the chain added count.
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
            approver.standing = Err(BrokenIntroduction::NotInChain);
        }
    }
    known
}

/// Distrusts all of them, because the chain cannot be used.
pub(super) fn distrust(mut known: Vec<KnownApprover>, why: TrustError) -> Vec<KnownApprover> {
    let why = Arc::new(why);
    for approver in &mut known {
        if approver.standing.is_ok() {
            approver.standing = Err(BrokenIntroduction::Chain(Arc::clone(&why)));
        }
    }
    known
}

fn standing(
    entries: &BTreeMap<ApproverName, Entry>,
    first: Option<Digest>,
    name: &ApproverName,
) -> Result<(), BrokenIntroduction> {
    let mut passed = BTreeSet::new();
    let mut next = name;
    loop {
        let name = next;
        let entry = entries.get(name).ok_or_else(|| BrokenIntroduction::Missing(name.clone()))?;
        let record = &entry.signed.record;
        let key = own_key(record)?;
        if !passed.insert(name) {
            return Err(BrokenIntroduction::Cycle(name.clone()));
        }
        let introducer = &record.introduced_by;
        if introducer == name {
            holds(&entry.signed, &key)?;
            return match first {
                Some(first) if first == record.key_id => Ok(()),
                _ => Err(BrokenIntroduction::NotFirst(name.clone())),
            };
        }
        let (introducer, name) = (introducer.clone(), name.clone());
        let Some(above) = entries.get(&introducer) else {
            return Err(BrokenIntroduction::MissingIntroducer { introducer, name });
        };
        holds(&entry.signed, &own_key(&above.signed.record)?)?;
        if above.revoked.as_ref().is_some_and(|revocation| !revocation.keeps.contains(&record.key_id)) {
            return Err(BrokenIntroduction::RevokedIntroducer { introducer, name });
        }
        next = &record.introduced_by;
    }
}

/// The key in a record, if the record names it right.
fn own_key(record: &ApproverRecord) -> Result<PublicKey, BrokenIntroduction> {
    let name = || record.name.clone();
    let key = PublicKey::from_pem(&record.public_key)
        .map_err(|e| BrokenIntroduction::Key { name: name(), source: Arc::new(e) })?;
    if key.key_id() == record.key_id { Ok(key) } else { Err(BrokenIntroduction::OtherKey(name())) }
}

fn holds(signed: &Signed<ApproverRecord>, key: &PublicKey) -> Result<(), BrokenIntroduction> {
    let name = signed.record.name.clone();
    signed::check(signed, key).map_err(|bad| BrokenIntroduction::Signature { name, source: Arc::new(bad) })
}
