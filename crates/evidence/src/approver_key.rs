//! An approver's key. On disk it is locked by a passphrase; for automation it is a token in an environment that agents
//! never see.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::KeypairBytes;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::{Signer as _, SigningKey};
use herma_model::Digest;
use herma_model::secret::Secret;
use pkcs8::der::{Decode as _, SecretDocument, pem::PemLabel as _};
use pkcs8::pkcs5::{EncryptionScheme, pbes2::Kdf};
use pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncryptedPrivateKeyInfoRef};

use crate::keys::{KeyError, PublicKey};
use crate::signed::Signer;

/// What every token starts with, so that the secret rules know it wherever it turns up.
pub const TOKEN_PREFIX: &str = "herma-approver-";
/// How long a passphrase must be at least, in characters.
pub const SHORTEST_PASSPHRASE: usize = 12;

/// The largest scrypt cost that is taken: a file must not make herma use all memory.
const LARGEST_COST: u64 = 1 << 20;

/// The private key of an approver.
pub struct ApproverKey(SigningKey);

impl ApproverKey {
    /// Makes a key.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| KeyError::Randomness(e.to_string()))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The key as encrypted PKCS#8 in PEM (PBES2, scrypt, AES-256), which other tools can read too.
    pub fn lock(&self, passphrase: &Secret<String>) -> Result<String, KeyError> {
        let length = passphrase.expose().chars().count();
        if length < SHORTEST_PASSPHRASE {
            return Err(KeyError::ShortPassphrase { length });
        }
        // Version 1 of the format, without the public key: other tools read only that one.
        let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let pem = bytes
            .to_pkcs8_encrypted_pem(passphrase.expose(), LineEnding::LF)
            .map_err(|e| malformed("the new key", e))?;
        Ok(pem.to_string())
    }

    /// Opens what [`Self::lock`] closed.
    pub fn unlock(pem: &str, passphrase: &Secret<String>) -> Result<Self, KeyError> {
        let what = "the approver's key";
        let (label, document) = SecretDocument::from_pem(pem).map_err(|e| malformed(what, e))?;
        EncryptedPrivateKeyInfoRef::validate_pem_label(label).map_err(|e| malformed(what, e))?;
        let locked =
            EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).map_err(|e| malformed(what, e))?;
        if !is_bounded(&locked.encryption_algorithm) {
            return Err(malformed(what, "it is not locked with scrypt at a sensible cost"));
        }
        // Decryption is not authenticated: with another passphrase it fails, or gives what is no key.
        let document = locked.decrypt(passphrase.expose()).map_err(|_| KeyError::WrongPassphrase)?;
        let key = SigningKey::from_pkcs8_der(document.as_bytes()).map_err(|_| KeyError::WrongPassphrase)?;
        Ok(Self(key))
    }

    /// The key as a token for automation. Whoever has it can sign.
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

/// Whether opening the lock takes the time and memory that locking takes, within reason.
fn is_bounded(scheme: &EncryptionScheme) -> bool {
    let EncryptionScheme::Pbes2(parameters) = scheme else { return false };
    let Kdf::Scrypt(scrypt) = &parameters.kdf else { return false };
    scrypt.cost_parameter <= LARGEST_COST && scrypt.block_size <= 8 && scrypt.parallelization <= 4
}

fn malformed(what: &str, cause: impl std::fmt::Display) -> KeyError {
    KeyError::Malformed { what: what.to_owned(), cause: cause.to_string() }
}
