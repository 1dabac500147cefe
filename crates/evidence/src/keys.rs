//! The installation's key, which signs every bundle, and what can be wrong with a key.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _, KeypairBytes,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use herma_core::Digest;

use crate::file_reading::{open_directory, open_named, read_regular};

/// The minimum length of a passphrase, in characters.
pub const MIN_PASSPHRASE_CHARS: usize = 12;

/// The private key's file.
pub const KEY_FILE: &str = "installation.key";
/// The public key's file, beside it.
pub const PUBLIC_FILE: &str = "installation.pub";
/// The largest file of a key that is read.
pub const MAX_KEY_BYTES: u64 = 64 << 10;

/// The key of this installation.
pub struct InstallationKey(SigningKey);

/// A key that signatures are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// A key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file could not be read or written.
    #[error("the key file {path} could not be {doing}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Others than the owner can reach the private key.
    #[error(
        "the key file {path} can be read by others (mode {mode:03o}); run `chmod 600 {path}`, or if others had access, remove it so that herma makes a new one"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The private key file belongs to another user.
    #[error(
        "the key file {path} belongs to user {owner}, and herma runs as user {user}; run `chown {user} {path}` if the key is yours, or remove it so that herma makes a new one"
    )]
    NotOwn {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// herma's user.
        user: u32,
    },
    /// The file holds no such key.
    #[error("{what} is not an Ed25519 key in PEM: {cause}")]
    Malformed {
        /// The file or text.
        what: String,
        /// The parser's error.
        cause: String,
    },
    /// The system gave no randomness.
    #[error("no key could be made: the system gave no randomness: {0}")]
    Randomness(String),
    /// The passphrase does not open the key.
    #[error("the passphrase does not open the key; nothing was done, try again")]
    WrongPassphrase,
    /// The lock of the key is too weak, or costs more to open than any that herma makes.
    #[error(
        "the approver's key is locked with scrypt at N = {cost}, r = {block_size}, p = {parallelization}; herma takes N from 2^14 to 2^19, r = 8, p from 1 to 4. Make a new key with `herma approver init`, have another approver let it in, and revoke this one"
    )]
    BadLock {
        /// N.
        cost: u64,
        /// r.
        block_size: u16,
        /// p.
        parallelization: u16,
    },
    /// The passphrase could be guessed.
    #[error(
        "a passphrase has at least {MIN_PASSPHRASE_CHARS} characters, this one has {length}; a few unrelated words are a good one"
    )]
    ShortPassphrase {
        /// Its length in characters.
        length: usize,
    },
    /// The text is no approver's token.
    #[error(
        "this is not an approver's token: it starts with `herma-approver-` and was printed once by `herma approver init --token`"
    )]
    BadToken,
}

impl InstallationKey {
    /// Loads the key from `dir`, or makes one there. Two first uses at the same time end up with the same key.
    pub fn load_or_create(dir: &Path) -> Result<Self, KeyError> {
        let path = dir.join(KEY_FILE);
        if !fs::exists(&path).map_err(|source| io_error(&path, "read", source))? {
            create(dir, &path)?;
        }
        let key = Self::load(&path)?;
        key.publish(dir)?;
        Ok(key)
    }

    /// Loads the key that is in `dir`, and makes none.
    pub fn existing(dir: &Path) -> Result<Self, KeyError> {
        Self::load(&dir.join(KEY_FILE))
    }

    fn load(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| io_error(path, "read", source);
        let file = open_named(path).map_err(failed)?;
        let there = file.metadata().map_err(failed)?;
        let (mode, user) = (there.permissions().mode() & 0o777, rustix::process::geteuid().as_raw());
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        if there.uid() != user {
            return Err(KeyError::NotOwn { path: path.to_owned(), owner: there.uid(), user });
        }
        let pem = io::read_to_string(file.take(MAX_KEY_BYTES)).map_err(failed)?;
        SigningKey::from_pkcs8_pem(&pem).map(Self).map_err(|e| malformed(path.display(), e))
    }

    /// Writes the public key beside the private one, where it is not there yet.
    fn publish(&self, dir: &Path) -> Result<(), KeyError> {
        let path = dir.join(PUBLIC_FILE);
        let pem = self.public().to_pem()?;
        if read_regular(&path, MAX_KEY_BYTES).is_ok_and(|there| there == pem.as_bytes()) {
            return Ok(());
        }
        let write = || {
            let temp = write_temp(dir, pem.as_bytes(), 0o644)?;
            fs::rename(temp, &path)
        };
        write().map_err(|source| io_error(&path, "written", source))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey::of(&self.0)
    }

    /// The digest of the public key's 32 bytes.
    #[must_use]
    pub fn key_id(&self) -> Digest {
        self.public().key_id()
    }

    /// Signs bytes.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

impl std::fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InstallationKey({})", self.key_id())
    }
}

impl PublicKey {
    pub(crate) fn of(key: &SigningKey) -> Self {
        Self(key.verifying_key())
    }

    /// Reads a public key from PEM.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        VerifyingKey::from_public_key_pem(pem).map(Self).map_err(|e| malformed("the public key", e))
    }

    /// The key as PEM.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|e| malformed("the public key", e))
    }

    /// The digest of the key's 32 bytes.
    #[must_use]
    pub fn key_id(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// Whether the signature over the bytes is this key's. Weak keys and malleable signatures are refused.
    #[must_use]
    pub fn verifies(&self, bytes: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok()
    }
}

/// Makes a key; where another process was faster, its key stays.
fn create(dir: &Path, path: &Path) -> Result<(), KeyError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| KeyError::Randomness(e.to_string()))?;
    // Version 1 of the format, without the public key: other tools read only that one.
    let bytes = KeypairBytes { secret_key: seed, public_key: None };
    let pem = bytes.to_pkcs8_pem(LineEnding::LF).map_err(|e| malformed("the new key", e))?;
    let write = || {
        fs::create_dir_all(dir)?;
        let temp = write_temp(dir, pem.as_bytes(), 0o600)?;
        let linked = match fs::hard_link(&temp, path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        };
        fs::remove_file(&temp)?;
        linked?;
        open_directory(dir)?.sync_all()
    };
    write().map_err(|source| io_error(path, "written", source))
}

/// Writes a durable file under a unique name.
fn write_temp(dir: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let temp = dir.join(format!(".unfinished-{}", hex::encode(name)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temp)?;
    if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
        fs::remove_file(&temp)?;
        return Err(error);
    }
    Ok(temp)
}

fn io_error(path: &Path, doing: &'static str, source: io::Error) -> KeyError {
    KeyError::Io { path: path.to_owned(), doing, source }
}

fn malformed(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> KeyError {
    KeyError::Malformed { what: what.to_string(), cause: cause.to_string() }
}
