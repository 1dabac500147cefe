//! An approver's key. On disk it is locked by a passphrase; for automation it is a token in an environment that agents
//! never see.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::KeypairBytes;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::{Signer as _, SigningKey};
use herma_core::Digest;
use herma_core::secret::Secret;
use pkcs8::der::{Decode as _, SecretDocument, pem::PemLabel as _};
use pkcs8::pkcs5::pbes2::{Kdf, Parameters, ScryptParams};
use pkcs8::pkcs5::{EncryptionScheme, scrypt};
use pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};

use crate::keys::{KeyError, MIN_PASSPHRASE_CHARS, PublicKey};
use crate::signed::Signer;

/// The prefix of every token, by which the secret rules recognise it.
pub const TOKEN_PREFIX: &str = "herma-approver-";

/// The scrypt cost of a lock, by the guidance of OWASP: 128 MiB for each guess.
const LOG_COST: u8 = 17;
/// The scrypt cost of a lock that earlier versions made. A lock between the two opens once, to be made anew.
const MIN_SCRYPT_COST: u64 = 1 << 14;
/// The largest scrypt cost that is taken, 512 MiB: a file must not make herma use all memory.
const MAX_SCRYPT_COST: u64 = 1 << 19;
const BLOCK_SIZE: u16 = 8;
const MAX_PARALLELIZATION: u16 = 4;

/// The private key of an approver.
pub struct ApproverKey(SigningKey);

/// The result of unlocking a key.
#[derive(Debug)]
pub enum Unlocked {
    /// A key whose encryption meets the current cost.
    Current(ApproverKey),
    /// A key with weaker encryption. It signs nothing until it is re-encrypted.
    Outdated(OutdatedKey),
}

/// A key whose encryption is weaker than the current cost.
#[derive(Debug)]
pub struct OutdatedKey(ApproverKey);

impl OutdatedKey {
    /// Locks the key anew. Gives the key, and the file to write in place of the old one.
    pub fn relock(self, passphrase: &Secret<String>) -> Result<(ApproverKey, String), KeyError> {
        let locked = self.0.lock(passphrase)?;
        Ok((self.0, locked))
    }
}

impl ApproverKey {
    /// Makes a key.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| KeyError::Randomness(e.to_string()))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The key as encrypted PKCS#8 in PEM: PBES2 with scrypt (N = 2^17, r = 8, p = 1) and AES-256.
    pub fn lock(&self, passphrase: &Secret<String>) -> Result<String, KeyError> {
        let length = passphrase.expose().chars().count();
        if length < MIN_PASSPHRASE_CHARS {
            return Err(KeyError::ShortPassphrase { length });
        }
        // Version 1 of the format, without the public key: other tools read only that one.
        let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let (mut salt, mut iv) = ([0; 16], [0; 16]);
        for random in [&mut salt, &mut iv] {
            getrandom::fill(random).map_err(|e| KeyError::Randomness(e.to_string()))?;
        }
        let failed = |e: &dyn std::fmt::Display| malformed("the new key", e);
        let cost = scrypt::Params::new(LOG_COST, BLOCK_SIZE.into(), 1).map_err(|e| failed(&e))?;
        let parameters = Parameters::generate_scrypt_aes256cbc(cost, &salt, iv).map_err(|e| failed(&e))?;
        let plain = bytes.to_pkcs8_der().map_err(|e| failed(&e))?;
        let plain = PrivateKeyInfoRef::from_der(plain.as_bytes()).map_err(|e| failed(&e))?;
        let locked = plain.encrypt_with_params(parameters, passphrase.expose()).map_err(|e| failed(&e))?;
        let pem =
            locked.to_pem(EncryptedPrivateKeyInfoRef::PEM_LABEL, LineEnding::LF).map_err(|e| failed(&e))?;
        Ok(pem.to_string())
    }

    /// Opens what [`Self::lock`] closed.
    pub fn unlock(pem: &str, passphrase: &Secret<String>) -> Result<Unlocked, KeyError> {
        let what = "the approver's key";
        let (label, document) = SecretDocument::from_pem(pem).map_err(|e| malformed(what, e))?;
        EncryptedPrivateKeyInfoRef::validate_pem_label(label).map_err(|e| malformed(what, e))?;
        let locked =
            EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).map_err(|e| malformed(what, e))?;
        let is_current = check_lock(&locked.encryption_algorithm)?;
        // Decryption is not authenticated: with another passphrase it fails, or gives what is no key.
        let document = locked.decrypt(passphrase.expose()).map_err(|_| KeyError::WrongPassphrase)?;
        let key = SigningKey::from_pkcs8_der(document.as_bytes()).map_err(|_| KeyError::WrongPassphrase)?;
        Ok(if is_current { Unlocked::Current(Self(key)) } else { Unlocked::Outdated(OutdatedKey(Self(key))) })
    }

    /// The key as a token for automation. Every holder of it can sign.
    #[must_use]
    pub fn to_token(&self) -> Secret<String> {
        Secret::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0.to_bytes())))
    }

    /// Reads a token. The message of an error never holds any of it.
    pub fn from_token(token: &str) -> Result<Self, KeyError> {
        let seed = token
            .strip_prefix(TOKEN_PREFIX)
            .and_then(|seed| URL_SAFE_NO_PAD.decode(seed).ok())
            .and_then(|seed| <[u8; 32]>::try_from(seed).ok());
        seed.map(|seed| Self(SigningKey::from_bytes(&seed))).ok_or(KeyError::BadToken)
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey::of(&self.0)
    }
}

impl Signer for ApproverKey {
    fn key_id(&self) -> Digest {
        self.public().key_id()
    }

    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

impl std::fmt::Debug for ApproverKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApproverKey({})", self.key_id())
    }
}

/// Whether a lock is as strong as one that is made now. One that no version made, or that costs too much to open, is an
/// error before anything is computed.
fn check_lock(scheme: &EncryptionScheme) -> Result<bool, KeyError> {
    let other = || malformed("the approver's key", "it is not locked with scrypt");
    let EncryptionScheme::Pbes2(parameters) = scheme else { return Err(other()) };
    let Kdf::Scrypt(scrypt) = &parameters.kdf else { return Err(other()) };
    let ScryptParams { cost_parameter: cost, block_size, parallelization, .. } = *scrypt;
    let is_known = (MIN_SCRYPT_COST..=MAX_SCRYPT_COST).contains(&cost)
        && block_size == BLOCK_SIZE
        && (1..=MAX_PARALLELIZATION).contains(&parallelization);
    if !is_known {
        return Err(KeyError::BadLock { cost, block_size, parallelization });
    }
    Ok(cost >= 1 << LOG_COST)
}

fn malformed(what: &str, cause: impl std::fmt::Display) -> KeyError {
    KeyError::Malformed { what: what.to_owned(), cause: cause.to_string() }
}
