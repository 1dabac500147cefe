//! Temporary grants: signed by an approver, one file each in `egress/grants`, over by themselves.

use herma_core::approver::ApproverName;
use herma_core::signed::Signed;
use herma_core::trust::TrustEntry;
use herma_core::{Digest, Timestamp};
use herma_egress::grants::Grant;
use herma_evidence::signed;
use serde::{Deserialize, Serialize};

use super::error::EgressError;
use super::files::EgressFiles;
use crate::approvers::{Approver, Approvers};

const DIR: &str = "grants";
/// How many digits of its digest a grant is called by.
const ID_DIGITS: usize = 12;

/// A grant of this installation, and its state.
#[derive(Clone, Debug)]
pub struct KnownGrant {
    /// Its short id.
    pub id: String,
    /// The signed content.
    pub grant: Grant,
    /// The digest of that.
    pub digest: Digest,
    /// The approver who signed it, if the signature counts.
    pub by: Option<ApproverName>,
    /// Its state.
    pub state: GrantState,
}

/// The state of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantState {
    /// It counts.
    Holds,
    /// Its time is over, or has not come.
    Over,
    /// It was taken back at this time.
    Revoked(Timestamp),
    /// Its signature does not count, with the reason.
    Untrusted(String),
}

impl GrantState {
    /// Its name in output.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Over => "over",
            Self::Revoked(_) => "revoked",
            Self::Untrusted(_) => "untrusted",
        }
    }
}

/// That a grant was taken back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoked {
    revoked_at: Timestamp,
}

impl EgressFiles {
    /// Writes a grant that an approver signs.
    pub fn grant(&self, grant: Grant, approver: &Approver) -> Result<KnownGrant, EgressError> {
        let digest = signed::digest(&grant)?;
        let id = id_of(&digest);
        let signed = signed::sign(grant, approver)?;
        let _lock = self.lock()?;
        self.write(&format!("{DIR}/{id}.json"), &serde_json::to_vec_pretty(&signed)?)?;
        let by = Some(approver.name().clone());
        Ok(KnownGrant { id, grant: signed.record, digest, by, state: GrantState::Holds })
    }

    /// Every grant that was ever made here and can be read, the newest first. An unreadable grant allows nothing.
    pub fn grants(&self, approvers: &Approvers, now: Timestamp) -> Result<Vec<KnownGrant>, EgressError> {
        let names = self.names(DIR, ".json")?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for name in names {
            let bytes = self.read(&format!("{DIR}/{name}.json"))?.unwrap_or_default();
            let Ok(signed) = serde_json::from_slice::<Signed<Grant>>(&bytes) else { continue };
            all.push(self.known(signed, approvers, now)?);
        }
        all.sort_by_key(|known| std::cmp::Reverse(known.grant.made()));
        Ok(all)
    }

    fn known(
        &self,
        signed: Signed<Grant>,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<KnownGrant, EgressError> {
        let digest = signed::digest(&signed.record)?;
        let id = id_of(&digest);
        let by = signer(&signed, approvers);
        let revoked = match self.revoked(&id)? {
            None if is_revoked_in_chain(approvers, &digest) => Some(Timestamp::UNIX_EPOCH),
            revoked => revoked,
        };
        let state = match (&by, revoked) {
            (_, Some(at)) => GrantState::Revoked(at),
            (Err(why), None) => GrantState::Untrusted(why.clone()),
            (Ok(_), None) if signed.record.holds_at(now) => GrantState::Holds,
            (Ok(_), None) => GrantState::Over,
        };
        Ok(KnownGrant { id, grant: signed.record, digest, by: by.ok(), state })
    }

    /// Takes a grant back, for ever. It needs no key: it only takes away.
    pub fn revoke(
        &self,
        named: &str,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<KnownGrant, EgressError> {
        let _lock = self.lock()?;
        let mut fitting =
            self.grants(approvers, now)?.into_iter().filter(|known| known.id.starts_with(named));
        let (Some(known), None) = (fitting.next(), fitting.next()) else {
            return Err(EgressError::NoGrant(named.to_owned()));
        };
        if let GrantState::Revoked(_) = known.state {
            return Ok(known);
        }
        let record = serde_json::to_vec(&Revoked { revoked_at: now })?;
        let appended =
            approvers.trust_log().take_away(TrustEntry::EgressGrantRevoked { grant: known.digest }, now);
        self.write(&format!("{DIR}/{}.revoked", known.id), &record)?;
        appended?;
        Ok(KnownGrant { state: GrantState::Revoked(now), ..known })
    }

    /// When a grant was taken back. A mark that cannot be read is one all the same.
    fn revoked(&self, id: &str) -> Result<Option<Timestamp>, EgressError> {
        let bytes = self.read(&format!("{DIR}/{id}.revoked"))?;
        Ok(bytes.map(|bytes| {
            serde_json::from_slice::<Revoked>(&bytes).map_or(Timestamp::UNIX_EPOCH, |mark| mark.revoked_at)
        }))
    }
}

/// Whether the trust chain says that the grant was revoked. With an unreadable chain no signature counts.
fn is_revoked_in_chain(approvers: &Approvers, grant: &Digest) -> bool {
    approvers.trust_log().read().is_ok_and(|chain| chain.is_grant_revoked(grant))
}

fn id_of(digest: &Digest) -> String {
    digest.hex().chars().take(ID_DIGITS).collect()
}

/// The approver who signed it, if it is trusted today.
fn signer(signed: &Signed<Grant>, approvers: &Approvers) -> Result<ApproverName, String> {
    let all = approvers.all().map_err(|e| e.to_string())?;
    let known = all.into_iter().find(|known| known.record.key_id == signed.key_id);
    let name = known.ok_or("no approver of this installation signed it")?.record.name;
    approvers.check(signed, &name).map(|()| name).map_err(|e| e.to_string())
}
