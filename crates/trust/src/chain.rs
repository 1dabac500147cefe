//! The trust chain of a home, `trust/chain.jsonl`: one signed record a line, appended under a lock. It decides what was
//! revoked, withdrawn or used, whatever files are removed or restored beside it.

mod checked_runs;
mod error;
mod head_claims;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use herma_core::approval::ApprovalId;
use herma_core::trust::{ChainedApprover, TrustEntry, TrustHead};
use herma_core::{Digest, RunId, Timestamp};
use herma_evidence::{InstallationKey, PublicKey, Signer, TrustChain};
use herma_files::read_regular;
use herma_home::sync_dir;
use rustix::fs::{FlockOperation, OFlags, flock};

pub use self::error::TrustError;
use self::head_claims::{HeadClaim, HeadClaims, attested};

/// The largest chain that is read.
const MAX_BYTES: u64 = 1 << 30;

/// The trust chain of a home.
#[derive(Clone, Debug)]
pub struct TrustLog {
    dir: PathBuf,
    file: PathBuf,
    approvers: PathBuf,
    claims: HeadClaims,
    key: Option<Arc<InstallationKey>>,
    verified: Arc<Mutex<Verified>>,
}

/// The part of the chain that this process has verified. The file must continue it for as long as the process lives.
#[derive(Debug)]
struct Verified {
    bytes: Vec<u8>,
    chain: Arc<TrustChain>,
    /// Whether every bundle was found to agree.
    agreed: bool,
}

/// The chain, locked for appending.
pub(crate) struct Appending<'a> {
    log: &'a TrustLog,
    chain: Arc<TrustChain>,
    _lock: File,
}

impl TrustLog {
    /// The chain of the home at `root`, of the installation with this public key. Without the private key nothing can be
    /// taken away through it.
    #[must_use]
    pub fn open(root: &Path, installation: PublicKey, key: Option<Arc<InstallationKey>>) -> Self {
        let dir = root.join("trust");
        let chain = Arc::new(TrustChain::new(installation.clone()));
        Self {
            file: dir.join("chain.jsonl"),
            dir,
            approvers: root.join("keys").join("approvers"),
            claims: HeadClaims::new(root, installation, key.clone()),
            key,
            verified: Arc::new(Mutex::new(Verified { bytes: Vec::new(), chain, agreed: false })),
        }
    }

    /// The public key of the installation.
    pub(crate) fn installation_key(&self) -> PublicKey {
        self.claims.installation.clone()
    }

    /// The directory of the approvers' records.
    pub(crate) fn approvers(&self) -> PathBuf {
        self.approvers.clone()
    }

    /// The chain, verified, and in agreement with every bundle of this home.
    pub fn read(&self) -> Result<Arc<TrustChain>, TrustError> {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        self.bring_up_to_date(&mut verified)?;
        if !verified.agreed {
            let chain = &verified.chain;
            let unknown = self.claims.highest_unknown(chain.head(), |head| chain.contains(head));
            agree(chain, unknown.into_iter().collect())?;
            verified.agreed = true;
        }
        if verified.bytes.is_empty() && has_entries(&self.approvers) {
            return Err(TrustError::Missing);
        }
        Ok(Arc::clone(&verified.chain))
    }

    /// The same, in agreement with every signed admission of this home too; gives how many records agree.
    pub fn audit(&self) -> Result<(Arc<TrustChain>, usize), TrustError> {
        let chain = self.read()?;
        let claims = self.claims.all();
        let count = claims.len();
        agree(&chain, claims)?;
        Ok((chain, count))
    }

    /// Compares the chain with the head that a bundle kept elsewhere names.
    pub fn compare(&self, bundle: &Path) -> Result<TrustHead, TrustError> {
        let chain = self.read()?;
        let unusable = |what: &str| TrustError::Io {
            what: bundle.display().to_string(),
            doing: "compared",
            source: io::Error::other(what.to_owned()),
        };
        let predicate = attested(bundle, Some(&self.claims.installation))
            .ok_or_else(|| unusable("it has no attestation that this installation signed"))?;
        let head = predicate.trust_head.ok_or_else(|| unusable("it names no head of a trust chain"))?;
        agree(&chain, vec![HeadClaim { by: format!("{}", bundle.display()), head }])?;
        Ok(head)
    }

    /// The head that a run names which starts now. It is the highest that is known: a chain that was rolled back stays
    /// known as such, also when no run since then needed trust.
    pub fn head_to_name(&self) -> io::Result<TrustHead> {
        let bytes = self.bytes()?;
        let lines: Vec<&[u8]> =
            bytes.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n")).collect();
        let digest = |at: usize| lines.get(at).map(|line| Digest::of(&line[..line.len() - 1]));
        let at = |sequence: u64| match usize::try_from(sequence).ok().and_then(|s| s.checked_sub(1)) {
            None => Some(TrustHead::empty()),
            Some(at) => digest(at).map(|digest| TrustHead { sequence, digest }),
        };
        let own = at(lines.len() as u64).unwrap_or_else(TrustHead::empty);
        let unknown = self.claims.highest_unknown(own, |head| at(head.sequence) == Some(*head));
        Ok(unknown.map_or(own, |claim| claim.head))
    }

    /// Locks the chain, which must hold, for appending.
    pub(crate) fn lock(&self) -> Result<Appending<'_>, TrustError> {
        let lock = self.lock_file()?;
        let chain = self.read()?;
        Ok(Appending { log: self, chain, _lock: lock })
    }

    /// Appends a record that only takes trust away. A home that has no chain yet has nothing to append to.
    pub(crate) fn take_away(&self, entry: TrustEntry, at: Timestamp) -> Result<(), TrustError> {
        let mut appending = match self.lock() {
            Err(TrustError::Missing) => return Ok(()),
            locked => locked?,
        };
        if appending.chain.head().sequence == 0 {
            return Ok(());
        }
        appending.append_revocation(entry, at)
    }

    /// Records that a run used an approval; gives the run that was first where another one was.
    pub fn consume(
        &self,
        approval: ApprovalId,
        run: RunId,
        at: Timestamp,
    ) -> Result<Option<RunId>, TrustError> {
        let mut appending = self.lock()?;
        if let Some(first) = appending.chain.consumed_by(approval) {
            return Ok(Some(first).filter(|first| *first != run));
        }
        appending.append_revocation(TrustEntry::ApprovalConsumed { approval, run }, at)?;
        Ok(None)
    }

    /// Starts the chain with an approver, who signs.
    pub(crate) fn start(
        &self,
        approver: ChainedApprover,
        adopted: bool,
        signer: &dyn Signer,
        at: Timestamp,
    ) -> Result<Appending<'_>, TrustError> {
        let lock = self.lock_file()?;
        self.never_started()?;
        let installation = self.claims.installation.key_id();
        let chain = Arc::new(TrustChain::new(self.claims.installation.clone()));
        let mut appending = Appending { log: self, chain, _lock: lock };
        appending.append(TrustEntry::Started { installation, adopted, approver }, signer, at)?;
        Ok(appending)
    }

    /// Checks that nothing shows that there was a chain, before one is started.
    pub(crate) fn never_started(&self) -> Result<(), TrustError> {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        self.bring_up_to_date(&mut verified)?;
        let head = verified.chain.head();
        if head.sequence > 0 {
            return Err(TrustError::Started { head });
        }
        match self.claims.claim() {
            None => Ok(()),
            Some(HeadClaim { by, head: known }) => Err(TrustError::RolledBack { by, known, head }),
        }
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        match read_regular(&self.file, MAX_BYTES) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    fn bring_up_to_date(&self, verified: &mut Verified) -> Result<(), TrustError> {
        let mut bytes = self.bytes().map_err(|e| failed("read", e))?;
        // A line without its end was never acknowledged: a power cut tore it, or it is being written.
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1));
        let Some(new) = bytes.strip_prefix(verified.bytes.as_slice()) else {
            return Err(TrustError::Changed);
        };
        if new.is_empty() {
            return Ok(());
        }
        let mut chain = TrustChain::clone(&verified.chain);
        for line in new.split_inclusive(|b| *b == b'\n') {
            chain.follow(&line[..line.len() - 1]).map_err(|broken| TrustError::Broken { broken })?;
        }
        verified.chain = Arc::new(chain);
        verified.bytes = bytes;
        Ok(())
    }

    fn lock_file(&self) -> Result<File, TrustError> {
        let locked = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            let dir = File::open(&self.dir)?;
            flock(&dir, FlockOperation::LockExclusive)?;
            Ok(dir)
        };
        locked().map_err(|source| TrustError::Io {
            what: "trust in herma's home".to_owned(),
            doing: "locked",
            source,
        })
    }
}

impl Appending<'_> {
    /// Where the chain ends now: what is signed next covers this.
    pub(crate) fn head(&self) -> TrustHead {
        self.chain.head()
    }

    /// The chain as it is now.
    pub(crate) fn chain(&self) -> &TrustChain {
        &self.chain
    }

    /// Appends a record that only takes trust away, signed by the installation.
    pub(crate) fn append_revocation(&mut self, entry: TrustEntry, at: Timestamp) -> Result<(), TrustError> {
        let key = self.log.key.as_ref().ok_or(TrustError::NoKey)?;
        self.append(entry, &**key, at)
    }

    /// Appends a record, durably.
    pub(crate) fn append(
        &mut self,
        entry: TrustEntry,
        signer: &dyn Signer,
        at: Timestamp,
    ) -> Result<(), TrustError> {
        let log = self.log;
        let mut verified = log.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chain = TrustChain::clone(&verified.chain);
        let mut line = chain.next(entry, signer, at)?;
        // A line that a reader would refuse is not written.
        chain.follow(&line).map_err(|broken| TrustError::Broken { broken })?;
        line.push(b'\n');
        append_durably(&log.file, verified.bytes.len() as u64, &line).map_err(|e| failed("written", e))?;
        verified.bytes.extend_from_slice(&line);
        verified.chain = Arc::new(chain);
        self.chain = Arc::clone(&verified.chain);
        Ok(())
    }
}

/// Writes the line after the first `size` bytes: whatever follows them is a line that was torn.
fn append_durably(file: &Path, size: u64, line: &[u8]) -> io::Result<()> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    let mut open = options.append(true).create(true).mode(0o600).custom_flags(flags).open(file)?;
    let there = open.metadata()?;
    if !there.is_file() || there.len() < size {
        return Err(io::Error::other("it is not the file that was read"));
    }
    if there.len() > size {
        open.set_len(size)?;
    }
    if let Err(error) = open.write_all(line).and_then(|()| open.sync_all()) {
        open.set_len(size)?;
        return Err(error);
    }
    if size > 0 {
        return Ok(());
    }
    // The first record: the names of the file and of its directory are new.
    file.ancestors().skip(1).take(2).try_for_each(sync_dir)
}

/// Whether there is anything in the directory.
fn has_entries(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Whether the chain contains every head that was seen.
fn agree(chain: &TrustChain, claims: Vec<HeadClaim>) -> Result<(), TrustError> {
    match claims.into_iter().find(|claim| !chain.contains(&claim.head)) {
        None => Ok(()),
        Some(HeadClaim { by, head: known }) => Err(TrustError::RolledBack { by, known, head: chain.head() }),
    }
}

fn failed(doing: &'static str, source: io::Error) -> TrustError {
    TrustError::Io { what: "trust/chain.jsonl in herma's home".to_owned(), doing, source }
}
