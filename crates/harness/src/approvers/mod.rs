//! The approvers of an installation: who they are, who let them in, and whose signatures count.

mod error;
mod files;
mod standing;

use std::path::PathBuf;

use herma_evidence::{ApproverKey, KeyError, PublicKey, Signer, TrustedApprover, Unlocked, signed};
use herma_model::approver::{ApproverName, ApproverRecord, Custody, Revocation};
use herma_model::secret::Secret;
use herma_model::signed::{Signable, Signed};
use herma_model::{Digest, Timestamp};

pub use self::error::ApproverError;
use self::files::Files;

/// The approvers of an installation, as they lie in its directory.
#[derive(Clone, Debug)]
pub struct Approvers {
    files: Files,
}

/// An approver whose record is in the installation.
#[derive(Clone, Debug)]
pub struct KnownApprover {
    /// What was signed about it when it was let in.
    pub record: ApproverRecord,
    /// That its key must not be believed any more.
    pub revoked: Option<Revocation>,
    /// Whether the introductions hold back to the first approver, or where they break.
    pub standing: Result<(), String>,
}

/// An approver whose key is open, so that it can sign.
#[derive(Debug)]
pub struct Approver {
    name: ApproverName,
    key: ApproverKey,
}

impl KnownApprover {
    /// Whether its signatures count, or why not.
    pub fn trusted(&self) -> Result<(), String> {
        let name = &self.record.name;
        if let Some(revocation) = &self.revoked {
            return Err(format!("{name} was revoked on {}: {}", revocation.revoked_at, revocation.reason));
        }
        self.standing.clone().map_err(|why| format!("{name} is not trusted: {why}"))
    }

    /// The key that its signatures are checked with.
    pub fn key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_pem(&self.record.public_key)
    }
}

impl Approver {
    /// Who.
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
    /// The approvers whose records lie in `dir`. It is made when the first one is.
    #[must_use]
    pub fn open(dir: PathBuf) -> Self {
        Self { files: Files::new(dir) }
    }

    /// Everybody who was ever let in, by name.
    pub fn all(&self) -> Result<Vec<KnownApprover>, ApproverError> {
        Ok(standing::judge(self.files.read()?, self.files.first()?))
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
        let record = ApproverRecord {
            name: name.clone(),
            public_key: key.public().to_pem()?,
            key_id: key.key_id(),
            custody,
            introduced_by: introducer.map_or(name, Approver::name).clone(),
            created_at: now,
        };
        let voucher = introducer.map_or(&key as &dyn Signer, |introducer| introducer);
        let signed = signed::sign(record, voucher)?;
        if let Some(locked) = locked {
            self.files.write_key(name, &locked)?;
        }
        if is_first {
            self.files.write_first(key.key_id())?;
        }
        // The record comes last: until it is there, nobody was let in.
        self.files.write_record(&signed)?;
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
        self.revoke_among(&self.all()?, name, reason, now)
    }

    /// The same, unless nobody would be trusted after it.
    pub fn revoke_unless_last(
        &self,
        name: &ApproverName,
        reason: &str,
        now: Timestamp,
    ) -> Result<KnownApprover, ApproverError> {
        let _lock = self.files.lock()?;
        let all = self.all()?;
        let mut trusted = all.iter().filter(|known| known.trusted().is_ok());
        if let (Some(one), None) = (trusted.next(), trusted.next())
            && one.record.name == *name
        {
            return Err(ApproverError::Last(name.clone()));
        }
        self.revoke_among(&all, name, reason, now)
    }

    /// Revokes one of these, who are all that there are. The directory is locked.
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
        self.files.write_revocation(&revocation)?;
        Ok(KnownApprover { revoked: Some(revocation), ..known.clone() })
    }

    /// Whether the record was signed by this approver, who is trusted today, or why that does not count.
    ///
    /// A revocation takes back everything that the key ever signed, also what says that it is older: the date is the
    /// signer's own word, and whoever has a lost key can write any. What a person who left had let in is let in again by
    /// somebody else, and what they had accepted is run again.
    pub fn check<T: Signable>(&self, signed: &Signed<T>, by: &ApproverName) -> Result<(), String> {
        let known = self.find(by).map_err(|e| e.to_string())?;
        known.trusted()?;
        let key = known.key().map_err(|e| e.to_string())?;
        signed::check(signed, &key).map_err(|bad| format!("the signature of {by} does not hold: {bad}"))
    }
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
