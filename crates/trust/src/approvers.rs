//! The approvers of an installation: their records, their introductions, and the signatures that count.

mod error;
mod files;
mod introductions;

use std::sync::Arc;

use herma_core::approver::{ApproverName, ApproverRecord, Custody, Revocation};
use herma_core::secret::Secret;
use herma_core::signed::{Signable, Signed};
use herma_core::trust::{ChainedApprover, TrustEntry, TrustHead};
use herma_core::{Digest, Timestamp};
use herma_evidence::{
    ApproverKey, KeyError, PublicKey, Signer, Trust, TrustChain, TrustedApprover, Unlocked, signed,
};

pub use self::error::{ApproverError, BrokenIntroduction, Distrust};
use self::files::Files;
use crate::chain::{Appending, TrustLog};

/// The approvers of an installation, read from its directory.
#[derive(Clone, Debug)]
pub struct Approvers {
    files: Files,
    trust: TrustLog,
    /// Whether the home is about to get its chain, so that the files alone count.
    adopting: bool,
}

/// An approver whose record is in the installation.
#[derive(Clone, Debug)]
pub struct KnownApprover {
    /// The record that its introducer signed.
    pub record: ApproverRecord,
    /// That its key must not be believed any more.
    pub revoked: Option<Revocation>,
    /// Whether the introductions hold back to the first approver, or where they break.
    pub standing: Result<(), BrokenIntroduction>,
}

/// An approver whose key is open, so that it can sign.
#[derive(Debug)]
pub struct Approver {
    name: ApproverName,
    key: ApproverKey,
}

impl KnownApprover {
    /// Whether its signatures count, or why not.
    pub fn trusted(&self) -> Result<(), Distrust> {
        let name = self.record.name.clone();
        if let Some(Revocation { revoked_at, reason, .. }) = &self.revoked {
            return Err(Distrust::Revoked { name, at: *revoked_at, reason: reason.clone() });
        }
        self.standing.clone().map_err(|source| Distrust::Introduction { name, source })
    }

    /// The key that its signatures are checked with.
    pub fn key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_pem(&self.record.public_key)
    }
}

impl Approver {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &ApproverName {
        &self.name
    }
}

impl Signer for Approver {
    fn key_id(&self) -> Digest {
        self.key.key_id()
    }

    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign(bytes)
    }
}

impl Approvers {
    /// The approvers of the home that this trust chain is of. Their directory is made when the first one is.
    #[must_use]
    pub fn open(trust: TrustLog) -> Self {
        Self { files: Files::new(trust.approvers()), trust, adopting: false }
    }

    /// The approvers of a home that never had a trust chain, judged by their files alone, so that one of them can adopt it.
    pub fn before_chain(trust: TrustLog) -> Result<Self, ApproverError> {
        trust.never_started()?;
        Ok(Self { adopting: true, ..Self::open(trust) })
    }

    /// The trust chain that they are judged by.
    #[must_use]
    pub fn trust_log(&self) -> &TrustLog {
        &self.trust
    }

    /// Every approver that was ever let in, by name.
    pub fn all(&self) -> Result<Vec<KnownApprover>, ApproverError> {
        let (entries, first) = (self.files.read()?, self.files.first()?);
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        if self.adopting {
            return Ok(introductions::judge(entries, first));
        }
        Ok(match self.trust.read() {
            Ok(chain) => introductions::judge_by_chain(entries, first, &chain),
            Err(why) => introductions::distrust(introductions::judge(entries, first), why),
        })
    }

    /// Everybody with the signature under their record.
    pub(crate) fn signed_records(
        &self,
    ) -> Result<Vec<(KnownApprover, Signed<ApproverRecord>)>, ApproverError> {
        let mut signed = self.files.read()?;
        let all = self.all()?.into_iter();
        Ok(all
            .filter_map(|known| Some((signed.remove(&known.record.name)?.signed, known)))
            .map(|(s, k)| (k, s))
            .collect())
    }

    /// One approver by name.
    pub fn find(&self, name: &ApproverName) -> Result<KnownApprover, ApproverError> {
        let found = self.all()?.into_iter().find(|known| known.record.name == *name);
        found.ok_or_else(|| ApproverError::Unknown(name.clone()))
    }

    /// Those whose signatures count today, each in their own name.
    pub fn trusted(&self) -> Result<Vec<TrustedApprover>, ApproverError> {
        let all = self.all()?;
        let trusted = all.into_iter().filter(|known| known.trusted().is_ok());
        let named =
            |known: KnownApprover| Ok(TrustedApprover { key: known.key()?, name: Some(known.record.name) });
        trusted.map(named).collect()
    }

    /// The keys whose signatures count: the installation's on evidence, the approvers' on outcomes.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust { keys: vec![self.trust.installation_key()], approvers: self.trusted().unwrap_or_default() }
    }

    /// Makes a key and lets its owner in. The first approver vouches for itself; every later one needs an introducer. A
    /// key in custody `Token` is given back and kept nowhere.
    pub fn init(
        &self,
        name: &ApproverName,
        custody: Custody,
        passphrase: Option<&Secret<String>>,
        introducer: Option<&Approver>,
        now: Timestamp,
    ) -> Result<(KnownApprover, Option<Secret<String>>), ApproverError> {
        let _lock = self.files.lock()?;
        let all = self.all()?;
        if self.files.is_taken(name)? {
            return Err(ApproverError::NameTaken(name.clone()));
        }
        if let Some(key) = self.files.first()?
            && !all.iter().any(|known| known.record.key_id == key)
        {
            return Err(self.files.without_first(key));
        }
        let is_first = all.is_empty();
        if is_first {
            self.trust.never_started()?;
        }
        match introducer {
            Some(introducer) => is_trusted(&all, introducer)?,
            None if is_first => {}
            None => return Err(ApproverError::NeedsIntroducer(name.clone())),
        }
        let key = ApproverKey::generate()?;
        let (locked, token) = match (custody, passphrase) {
            (Custody::Passphrase, Some(passphrase)) => (Some(key.lock(passphrase)?), None),
            (Custody::Token, None) => (None, Some(key.to_token())),
            (Custody::Passphrase, None) => return Err(ApproverError::NoPassphrase),
            (Custody::Token, Some(_)) => return Err(ApproverError::TokenWithPassphrase),
        };
        let mut appending = if is_first { None } else { Some(self.trust.lock()?) };
        if appending.as_ref().is_some_and(|appending| appending.chain().knows(name)) {
            return Err(ApproverError::NameTaken(name.clone()));
        }
        let record = ApproverRecord {
            name: name.clone(),
            public_key: key.public().to_pem()?,
            key_id: key.key_id(),
            custody,
            introduced_by: introducer.map_or(name, Approver::name).clone(),
            created_at: now,
            trust_head: Some(appending.as_ref().map_or_else(TrustHead::empty, Appending::head)),
        };
        let voucher = introducer.map_or(&key as &dyn Signer, |introducer| introducer);
        let signed = signed::sign(record, voucher)?;
        if let Some(locked) = locked {
            self.files.write_key(name, &locked)?;
        }
        if is_first {
            self.files.write_first(key.key_id())?;
        }
        self.files.write_record(&signed)?;
        // The chain comes last: a record counts only once the chain names it.
        let approver = chained(&signed)?;
        match &mut appending {
            Some(appending) => appending.append(TrustEntry::ApproverAdded { approver }, voucher, now)?,
            None => drop(self.trust.start(approver, false, voucher, now)?),
        }
        Ok((KnownApprover { record: signed.record, revoked: None, standing: Ok(()) }, token))
    }

    /// Opens the key of an approver who is trusted.
    pub fn unlock(
        &self,
        name: &ApproverName,
        passphrase: &Secret<String>,
    ) -> Result<Approver, ApproverError> {
        let known = self.find(name)?;
        known.trusted().map_err(ApproverError::Untrusted)?;
        if known.record.custody == Custody::Token {
            return Err(ApproverError::KeptElsewhere(name.clone()));
        }
        let (key, relocked) = match ApproverKey::unlock(&self.files.read_key(name)?, passphrase)? {
            Unlocked::Current(key) => (key, None),
            Unlocked::Outdated(outdated) => {
                let (key, locked) = outdated.relock(passphrase)?;
                (key, Some(locked))
            }
        };
        if key.key_id() != known.record.key_id {
            return Err(ApproverError::OtherKey(name.clone()));
        }
        if let Some(locked) = relocked {
            self.files.write_key(name, &locked)?;
        }
        Ok(Approver { name: name.clone(), key })
    }

    /// The trusted approver whose token this is.
    pub fn from_token(&self, token: &str) -> Result<Approver, ApproverError> {
        let key = ApproverKey::from_token(token)?;
        let all = self.all()?;
        let mine: Vec<_> = all.iter().filter(|known| known.record.key_id == key.key_id()).collect();
        let first = mine.first().ok_or(ApproverError::UnknownToken)?;
        let trusted = mine.iter().find(|known| known.trusted().is_ok()).unwrap_or(first);
        trusted.trusted().map_err(ApproverError::Untrusted)?;
        Ok(Approver { name: trusted.record.name.clone(), key })
    }

    /// Takes an approver's trust away for ever. It needs no key: it only takes away. Whom the approver let in before
    /// stays.
    pub fn revoke(
        &self,
        name: &ApproverName,
        reason: &str,
        now: Timestamp,
    ) -> Result<KnownApprover, ApproverError> {
        let _lock = self.files.lock()?;
        self.revoke_among(&self.revocable()?, name, reason, now)
    }

    /// The same, unless no approver would be trusted after it.
    pub fn revoke_unless_last(
        &self,
        name: &ApproverName,
        reason: &str,
        now: Timestamp,
    ) -> Result<KnownApprover, ApproverError> {
        let _lock = self.files.lock()?;
        let all = self.revocable()?;
        let mut trusted = all.iter().filter(|known| known.trusted().is_ok());
        if let (Some(one), None) = (trusted.next(), trusted.next())
            && one.record.name == *name
        {
            return Err(ApproverError::Last(name.clone()));
        }
        self.revoke_among(&all, name, reason, now)
    }

    /// All approvers. Where the chain cannot be used none is trusted, and the files say whom an approver introduced.
    fn revocable(&self) -> Result<Vec<KnownApprover>, ApproverError> {
        match self.trust.read() {
            Ok(_) => self.all(),
            Err(_) => Ok(introductions::judge(self.files.read()?, self.files.first()?)),
        }
    }

    /// Revokes one of these, which are all approvers. The directory is locked.
    fn revoke_among(
        &self,
        all: &[KnownApprover],
        name: &ApproverName,
        reason: &str,
        now: Timestamp,
    ) -> Result<KnownApprover, ApproverError> {
        let known = all.iter().find(|known| known.record.name == *name);
        let known = known.ok_or_else(|| ApproverError::Unknown(name.clone()))?;
        if known.revoked.is_some() {
            return Err(ApproverError::AlreadyRevoked(name.clone()));
        }
        if reason.trim().is_empty() {
            return Err(ApproverError::NoReason);
        }
        let kept = all.iter().filter(|other| {
            other.record.introduced_by == *name && other.record.name != *name && other.standing.is_ok()
        });
        let revocation = Revocation {
            name: name.clone(),
            key_id: known.record.key_id,
            reason: reason.to_owned(),
            keeps: kept.map(|other| other.record.key_id).collect(),
            revoked_at: now,
        };
        // The chain decides; the file is for people, and for a chain that cannot be appended to.
        let entry = TrustEntry::ApproverRevoked { revocation: revocation.clone() };
        let appended = self.trust.take_away(entry, now);
        self.files.write_revocation(&revocation)?;
        appended?;
        Ok(KnownApprover { revoked: Some(revocation), ..known.clone() })
    }

    /// Whether the record was signed by this approver, who is trusted today, or why that does not count.
    ///
    /// A revocation takes back everything that the key ever signed, also records that claim to be older: the date is the
    /// signer's own, and the finder of a lost key can write any. Another approver admits again what a person who left had
    /// admitted, and results that they accepted are run again.
    pub fn check<T: Signable>(&self, signed: &Signed<T>, by: &ApproverName) -> Result<(), Distrust> {
        let known = self.find(by).map_err(|e| Distrust::Approver(Arc::new(e)))?;
        known.trusted()?;
        let key = known.key().map_err(|e| Distrust::Key(Arc::new(e)))?;
        signed::check(signed, &key)
            .map_err(|bad| Distrust::Signature { by: by.clone(), source: Arc::new(bad) })
    }

    /// The chain, if it contains the head that the signer of a record saw.
    pub(crate) fn chain_of(&self, seen: Option<TrustHead>) -> Result<Arc<TrustChain>, Distrust> {
        let chain = self.trust.read().map_err(|e| Distrust::Chain(Arc::new(e)))?;
        match seen {
            Some(head) if !chain.contains(&head) => Err(Distrust::RolledBack(head)),
            _ => Ok(chain),
        }
    }
}

/// How the chain names an approver.
pub(crate) fn chained(signed: &Signed<ApproverRecord>) -> Result<ChainedApprover, ApproverError> {
    let ApproverRecord { name, public_key, .. } = &signed.record;
    let record = signed::digest(&signed.record)?;
    Ok(ChainedApprover { name: name.clone(), public_key: public_key.clone(), record })
}

/// Whether this open key is that of a trusted approver of this installation.
fn is_trusted(all: &[KnownApprover], approver: &Approver) -> Result<(), ApproverError> {
    let known = all.iter().find(|known| known.record.name == approver.name);
    let known = known.ok_or_else(|| ApproverError::Unknown(approver.name.clone()))?;
    if known.record.key_id != approver.key_id() {
        return Err(ApproverError::OtherKey(approver.name.clone()));
    }
    known.trusted().map_err(ApproverError::Untrusted)
}
