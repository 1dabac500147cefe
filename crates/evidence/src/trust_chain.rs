//! The trust chain as it is read: line by line, each with its place, its predecessor and its signature.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::admission::AdmissionKind;
use herma_core::approval::{Answer, ApprovalId};
use herma_core::approver::{ApproverName, Revocation};
use herma_core::outcome::OutcomeWord;
use herma_core::signed::Signed;
use herma_core::trust::{ChainedApprover, TrustEntry, TrustHead, TrustRecord};
use herma_core::{Digest, RunId, Timestamp};

use crate::keys::PublicKey;
use crate::signed::{self, Signer};

/// The longest line of the chain.
pub const MAX_RECORD_LINE_BYTES: usize = 64 << 10;

/// The trust chain of an installation, as far as it was read.
#[derive(Clone, Debug)]
pub struct TrustChain {
    installation: PublicKey,
    digests: Vec<Digest>,
    approvers: BTreeMap<ApproverName, Added>,
    revoked: BTreeMap<ApproverName, Revocation>,
    admissions: BTreeMap<(AdmissionKind, String), Option<Digest>>,
    rulings: BTreeMap<ApprovalId, (Answer, Digest)>,
    consumed: BTreeMap<ApprovalId, RunId>,
    outcomes: BTreeMap<RunId, (OutcomeWord, Digest)>,
    revoked_grants: BTreeSet<Digest>,
    egress_list: Option<(u64, Digest)>,
}

/// An approver that the chain added.
#[derive(Clone, Debug)]
struct Added {
    key: PublicKey,
    record: Digest,
}

/// A line does not continue the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {sequence}: {problem}")]
pub struct BrokenTrust {
    /// Its place, from 1.
    pub sequence: u64,
    /// The problem.
    pub problem: String,
}

impl TrustChain {
    /// A chain without records, of the installation with this key.
    #[must_use]
    pub fn new(installation: PublicKey) -> Self {
        Self {
            installation,
            digests: Vec::new(),
            approvers: BTreeMap::new(),
            revoked: BTreeMap::new(),
            admissions: BTreeMap::new(),
            rulings: BTreeMap::new(),
            consumed: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            revoked_grants: BTreeSet::new(),
            egress_list: None,
        }
    }

    /// The head of the chain.
    #[must_use]
    pub fn head(&self) -> TrustHead {
        self.digests.last().map_or_else(TrustHead::empty, |last| TrustHead {
            sequence: self.digests.len() as u64,
            digest: *last,
        })
    }

    /// Whether the chain was once exactly this: the head is that of one of its prefixes.
    #[must_use]
    pub fn contains(&self, head: &TrustHead) -> bool {
        let at = usize::try_from(head.sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        match at {
            None => *head == TrustHead::empty(),
            Some(at) => self.digests.get(at) == Some(&head.digest),
        }
    }

    /// The line of the next record, signed. It is not part of the chain until it is followed.
    pub fn next(
        &self,
        entry: TrustEntry,
        signer: &dyn Signer,
        at: Timestamp,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let TrustHead { sequence, digest } = self.head();
        let record = TrustRecord { sequence: sequence + 1, previous: digest, at, entry };
        serde_json_canonicalizer::to_vec(&signed::sign(record, signer)?)
    }

    /// Checks that a line (without its newline) continues the chain, and advances it.
    pub fn follow(&mut self, line: &[u8]) -> Result<(), BrokenTrust> {
        let sequence = self.head().sequence + 1;
        let broken = |problem| BrokenTrust { sequence, problem };
        let signed = parse(line).map_err(broken)?;
        self.check(&signed).map_err(broken)?;
        self.apply(signed.record.entry).map_err(broken)?;
        self.digests.push(Digest::of(line));
        Ok(())
    }

    fn check(&self, signed: &Signed<TrustRecord>) -> Result<(), String> {
        let (TrustHead { sequence, digest }, record) = (self.head(), &signed.record);
        if record.sequence != sequence + 1 {
            return Err(format!("it says that it is record {}", record.sequence));
        }
        if record.previous != digest {
            return Err("it does not name the digest of the record before it".to_owned());
        }
        let own;
        let key = match &record.entry {
            TrustEntry::Started { installation, approver, .. } => {
                if sequence != 0 {
                    return Err("a chain starts once".to_owned());
                }
                if *installation != self.installation.key_id() {
                    return Err(format!(
                        "the chain is that of the installation with the key {installation}, and this one has {}",
                        self.installation.key_id()
                    ));
                }
                own = key_of(approver)?;
                &own
            }
            _ if sequence == 0 => return Err("the chain does not start with its first record".to_owned()),
            entry if entry.takes_away() => &self.installation,
            _ => self.signer(signed.key_id)?,
        };
        signed::check(signed, key).map_err(|bad| bad.to_string())
    }

    /// The key of an approver who may sign at this position.
    fn signer(&self, key_id: Digest) -> Result<&PublicKey, String> {
        let mut added = self.approvers.iter().filter(|(_, added)| added.key.key_id() == key_id);
        let (name, added) = added.next().ok_or("no approver of the chain signed it")?;
        if self.revoked.contains_key(name) {
            return Err(format!("{name}, who signed it, was revoked before"));
        }
        Ok(&added.key)
    }

    fn apply(&mut self, entry: TrustEntry) -> Result<(), String> {
        match entry {
            TrustEntry::Started { approver, .. } | TrustEntry::ApproverAdded { approver } => {
                let added = Added { key: key_of(&approver)?, record: approver.record };
                if self.knows(&approver.name) {
                    return Err(format!("{} was added before", approver.name));
                }
                self.approvers.insert(approver.name, added);
            }
            TrustEntry::ApproverRevoked { revocation } => {
                self.revoked.entry(revocation.name.clone()).or_insert(revocation);
            }
            TrustEntry::AdmissionSigned { kind, name, record } => {
                self.admissions.insert((kind, name), Some(record));
            }
            TrustEntry::AdmissionRevoked { kind, name } => {
                self.admissions.insert((kind, name), None);
            }
            TrustEntry::ApprovalRuled { approval, answer, record } => {
                self.rulings.insert(approval, (answer, record));
            }
            TrustEntry::ApprovalConsumed { approval, run } => {
                self.consumed.entry(approval).or_insert(run);
            }
            TrustEntry::OutcomeGiven { run, outcome, record } => {
                self.outcomes.insert(run, (outcome, record));
            }
            TrustEntry::EgressGrantRevoked { grant } => {
                self.revoked_grants.insert(grant);
            }
            TrustEntry::EgressListSigned { serial, record } => {
                if self.egress_list.is_some_and(|(last, _)| serial <= last) {
                    return Err(format!("the egress list {serial} is not later than the one before it"));
                }
                self.egress_list = Some((serial, record));
            }
        }
        Ok(())
    }

    /// Whether the name belongs or belonged to an approver.
    #[must_use]
    pub fn knows(&self, name: &ApproverName) -> bool {
        self.approvers.contains_key(name) || self.revoked.contains_key(name)
    }

    /// The digest of the record by which an approver was added.
    #[must_use]
    pub fn approver(&self, name: &ApproverName) -> Option<Digest> {
        self.approvers.get(name).map(|added| added.record)
    }

    /// The revocation of an approver.
    #[must_use]
    pub fn revocation(&self, name: &ApproverName) -> Option<&Revocation> {
        self.revoked.get(name)
    }

    /// The signed admission that counts: none where it was revoked, nothing where there never was one.
    #[must_use]
    pub fn admission(&self, kind: AdmissionKind, name: &str) -> Option<Option<Digest>> {
        self.admissions.get(&(kind, name.to_owned())).copied()
    }

    /// The last ruling on an approval, and its digest.
    #[must_use]
    pub fn ruling(&self, approval: ApprovalId) -> Option<(Answer, Digest)> {
        self.rulings.get(&approval).copied()
    }

    /// The run that used an approval.
    #[must_use]
    pub fn consumed_by(&self, approval: ApprovalId) -> Option<RunId> {
        self.consumed.get(&approval).copied()
    }

    /// The last outcome of a run, and its digest.
    #[must_use]
    pub fn outcome(&self, run: RunId) -> Option<(OutcomeWord, Digest)> {
        self.outcomes.get(&run).copied()
    }

    /// The number and the digest of the egress list that counts.
    #[must_use]
    pub fn egress_list(&self) -> Option<(u64, Digest)> {
        self.egress_list
    }

    /// Whether an egress grant was revoked.
    #[must_use]
    pub fn is_grant_revoked(&self, grant: &Digest) -> bool {
        self.revoked_grants.contains(grant)
    }
}

/// Reads one line without its newline. Only the canonical form is accepted.
fn parse(line: &[u8]) -> Result<Signed<TrustRecord>, String> {
    if line.len() > MAX_RECORD_LINE_BYTES {
        return Err(format!("it has {} bytes, expected at most {MAX_RECORD_LINE_BYTES}", line.len()));
    }
    let signed: Signed<TrustRecord> =
        serde_json::from_slice(line).map_err(|e| format!("not a record of the trust chain: {e}"))?;
    let canonical = serde_json_canonicalizer::to_vec(&signed).map_err(|e| e.to_string())?;
    if canonical == line { Ok(signed) } else { Err("it is not in canonical form".to_owned()) }
}

fn key_of(approver: &ChainedApprover) -> Result<PublicKey, String> {
    PublicKey::from_pem(&approver.public_key).map_err(|e| format!("{}: {e}", approver.name))
}
