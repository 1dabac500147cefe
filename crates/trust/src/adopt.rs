//! A home of an earlier version gets its trust chain, once, by an approver's signature.

use herma_core::Timestamp;
use herma_core::approval::{Answer, ApprovalState, Ruling};
use herma_core::trust::{TrustEntry, TrustHead};
use herma_evidence::signed;

use herma_home::Home;
use herma_store::BlockingStore;

use crate::admissions::Admissions;
use crate::approvers::{Approver, Approvers, chained};
use crate::chain::{Appending, TrustError, TrustLog};

/// Starts the chain of a home that has approvers and never had one, with everything that counts in it now. It is refused
/// where anything names a head of a chain, because that would be a way to lose what the chain took away.
pub fn adopt(
    home: &Home,
    log: &TrustLog,
    store: &BlockingStore,
    approver: &Approver,
    now: Timestamp,
) -> Result<TrustHead, TrustError> {
    let cannot = |why: String| TrustError::NotAdopted(why);
    let approvers = Approvers::before_chain(log.clone()).map_err(|e| cannot(e.to_string()))?;
    let known = approvers.signed_records().map_err(|e| cannot(e.to_string()))?;
    let mut first = None;
    let mut entries = Vec::new();
    for (known, signed) in &known {
        let entry = chained(signed).map_err(|e| cannot(e.to_string()))?;
        if known.record.name == *approver.name() {
            known.trusted().map_err(|e| cannot(e.to_string()))?;
            first = Some(entry);
        } else if known.standing.is_ok() {
            entries.push(TrustEntry::ApproverAdded { approver: entry });
        }
    }
    let first = first.ok_or_else(|| cannot(format!("there is no approver called {}", approver.name())))?;
    entries.extend(signed_admissions(&Admissions::open(home.admissions(), log.clone()), &approvers));
    entries.extend(open_grants(home, store, &approvers, now)?);
    let revoked = known.iter().filter_map(|(known, _)| known.revoked.clone());
    entries.extend(revoked.map(|revocation| TrustEntry::ApproverRevoked { revocation }));
    let mut appending = log.start(first, true, approver, now)?;
    for entry in entries {
        append(&mut appending, entry, approver, now)?;
    }
    Ok(appending.head())
}

fn append(
    appending: &mut Appending<'_>,
    entry: TrustEntry,
    approver: &Approver,
    now: Timestamp,
) -> Result<(), TrustError> {
    if !entry.takes_away() {
        return appending.append(entry, approver, now);
    }
    appending.append_revocation(entry, now)
}

/// The admissions whose signatures count by the files alone.
fn signed_admissions(admissions: &Admissions, approvers: &Approvers) -> Vec<TrustEntry> {
    let listed = admissions.list().unwrap_or_default();
    let entry = |id| {
        let signed = admissions.signature_if_current(&id).ok()??;
        approvers.check(&signed, &signed.record.approver).ok()?;
        let record = signed::digest(&signed.record).ok()?;
        Some(TrustEntry::AdmissionSigned { kind: id.kind(), name: id.name(), record })
    };
    listed.into_iter().filter_map(|listed| listed.id).filter_map(entry).collect()
}

/// The grants that no run has used yet.
fn open_grants(
    home: &Home,
    store: &BlockingStore,
    approvers: &Approvers,
    now: Timestamp,
) -> Result<Vec<TrustEntry>, TrustError> {
    let all = store.call(|store| store.approvals(None, u32::MAX));
    let all = all.map_err(|e| TrustError::NotAdopted(e.to_string()))?;
    let open = all.into_iter().filter(|approval| {
        approval.state_at(now) == ApprovalState::Granted && home.is_used(approval.request.id).is_none()
    });
    let entry = |signed: herma_core::signed::Signed<Ruling>| {
        approvers.check(&signed, &signed.record.approver).ok()?;
        let record = signed::digest(&signed.record).ok()?;
        let Ruling { id, answer, .. } = signed.record;
        Some(TrustEntry::ApprovalRuled { approval: id, answer, record }).filter(|_| answer == Answer::Granted)
    };
    Ok(open.filter_map(|approval| approval.ruling).filter_map(entry).collect())
}
