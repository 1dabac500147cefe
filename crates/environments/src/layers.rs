//! The store of layers below herma's home: each is built once, never changed, and named by its key.

mod copy;
mod limits;
mod lock;
mod metadata;
mod prune;
mod record;
mod tree;
mod view;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_core::{Digest, RepoPath, Timestamp};
use herma_home::{remove_tree, sync_dir, write_durably};
use rustix::fs::syncfs;

pub use copy::{CopyKind, copy_tree, copy_tree_within};
pub(crate) use limits::TreeCounter;
pub use limits::{MAX_TREE_BYTES, MAX_TREE_ENTRIES, MAX_TREE_PATH_BYTES, TreeError, TreeLimits};
pub use prune::Pruned;
pub use record::{LayerKind, LayerRecord, RanCommand};
pub use tree::{TreeSummary, summarize, summarize_within};
pub(crate) use tree::{make_directories_writable, make_writable};
pub use view::{ViewMount, take_over};

use self::lock::KeyLock;
use self::metadata::read_metadata;
use crate::key::LayerKey;

/// The record of a layer, in its directory. A directory without one is no layer.
const RECORD: &str = "layer.json";
/// When the layer was used last.
const LAST_USED: &str = "last-used";
/// The directories of a layer: the environment's home, and untracked files of the checkout.
const HOME: &str = "home";
const CHECKOUT: &str = "checkout";
/// The directory of layers that are being built.
const BUILDING: &str = "building";
/// The directory of locks.
const LOCKS: &str = "locks";
/// The log of the commands, without secrets.
pub(crate) const LOG: &str = "build.log";

/// All layers of an installation.
#[derive(Clone, Debug)]
pub struct LayerStore {
    root: PathBuf,
}

/// A layer that cannot be removed as long as this value lives.
#[derive(Debug)]
pub struct LayerInUse {
    dir: PathBuf,
    record: LayerRecord,
    files: BTreeSet<RepoPath>,
    _lock: KeyLock,
}

/// A layer that this process builds. Dropping it removes what was built.
#[derive(Debug)]
pub struct LayerBuild {
    store: LayerStore,
    key: LayerKey,
    dir: PathBuf,
    lock: Option<KeyLock>,
}

/// A layer that is there, or that the caller has to build.
#[derive(Debug)]
pub enum Acquired {
    /// It is there.
    Ready(Box<LayerInUse>),
    /// The caller builds it; others wait.
    Build(LayerBuild),
}

/// A layer in a list.
#[derive(Clone, Debug)]
pub struct ListedLayer {
    /// Its record.
    pub record: LayerRecord,
    /// When it was used last.
    pub last_used: Option<Timestamp>,
    /// Whether a process uses it now.
    pub in_use: bool,
}

impl LayerStore {
    /// Opens the store in this directory, making it where it is missing, and removes what killed builds left.
    pub fn open(root: &Path) -> io::Result<Self> {
        for dir in [root.to_owned(), root.join(BUILDING), root.join(LOCKS)] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let store = Self { root: root.canonicalize()? };
        store.sweep()?;
        Ok(store)
    }

    /// Waits until the layer is there or can be built. `waiting` is called once if another process builds it; `is_cancelled`
    /// ends the wait with `Interrupted`. A layer whose files are damaged is built again.
    pub fn acquire(
        &self,
        key: LayerKey,
        now: Timestamp,
        waiting: &mut dyn FnMut(),
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Acquired> {
        let lock = KeyLock::shared(&self.lock_file(key), &mut *waiting, is_cancelled)?;
        if let Some(layer) = self.undamaged(key, is_cancelled)? {
            return self.ready(key, layer, lock, now).map(Box::new).map(Acquired::Ready);
        }
        drop(lock);
        let lock = KeyLock::exclusive(&self.lock_file(key), waiting, is_cancelled)?;
        if let Some(layer) = self.undamaged(key, is_cancelled)? {
            return self.ready(key, layer, lock.downgrade()?, now).map(Box::new).map(Acquired::Ready);
        }
        let dir = self.building(key);
        remove_tree(&dir)?;
        // A crash leaves a directory without a record, or one whose files are damaged.
        remove_tree(&self.dir(key))?;
        for part in [dir.clone(), dir.join(HOME), dir.join(CHECKOUT)] {
            DirBuilder::new().mode(0o700).create(part)?;
        }
        Ok(Acquired::Build(LayerBuild { store: self.clone(), key, dir, lock: Some(lock) }))
    }

    /// The layer of this key, if it is there and its files are undamaged.
    pub fn find(&self, key: LayerKey, now: Timestamp) -> io::Result<Option<LayerInUse>> {
        let Some(lock) = self.lock_while_there(key)? else { return Ok(None) };
        let layer = self.undamaged(key, &|| false)?;
        layer.map(|layer| self.ready(key, layer, lock, now)).transpose()
    }

    /// The layer of this key with no look at its files, for one that another layer was made of. No view may be made of it.
    pub(crate) fn hold(&self, key: LayerKey, now: Timestamp) -> io::Result<Option<LayerInUse>> {
        let Some(lock) = self.lock_while_there(key)? else { return Ok(None) };
        let record = self.record(key);
        record.map(|record| self.ready(key, (record, BTreeSet::new()), lock, now)).transpose()
    }

    /// Another process that builds or removes the layer leaves no record; one that only lists it releases the lock at once.
    fn lock_while_there(&self, key: LayerKey) -> io::Result<Option<KeyLock>> {
        KeyLock::shared_while(&self.lock_file(key), || self.record(key).is_some())
    }

    /// Every layer, the least recently used first.
    pub fn list(&self) -> io::Result<Vec<ListedLayer>> {
        let mut layers = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            let Some(key) = name.to_str().and_then(LayerKey::from_name) else { continue };
            let Some(record) = self.record(key) else { continue };
            let last_used = fs::read_to_string(self.dir(key).join(LAST_USED)).ok();
            let last_used = last_used.and_then(|text| text.trim().parse().ok());
            let in_use = KeyLock::try_exclusive(&self.lock_file(key))?.is_none();
            layers.push(ListedLayer { record, last_used, in_use });
        }
        layers.sort_by_key(|layer| (layer.last_used, layer.record.key));
        Ok(layers)
    }

    fn ready(
        &self,
        key: LayerKey,
        (record, files): (LayerRecord, BTreeSet<RepoPath>),
        lock: KeyLock,
        now: Timestamp,
    ) -> io::Result<LayerInUse> {
        let dir = self.dir(key);
        write_durably(&dir.join(LAST_USED), now.to_string().as_bytes())?;
        Ok(LayerInUse { dir, record, files, _lock: lock })
    }

    fn record(&self, key: LayerKey) -> Option<LayerRecord> {
        let bytes = fs::read(self.dir(key).join(RECORD)).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &LayerRecord| record.key == key)
    }

    /// A layer whose files have the paths, kinds, modes and sizes that they were built with. A power cut can truncate files that
    /// were never flushed.
    fn undamaged(
        &self,
        key: LayerKey,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Option<(LayerRecord, BTreeSet<RepoPath>)>> {
        let Some(record) = self.record(key) else { return Ok(None) };
        let limits = TreeLimits { is_cancelled, ..TreeLimits::default() };
        match look(&self.dir(key), &limits) {
            Ok((digest, files)) if digest == record.tree.metadata_digest => Ok(Some((record, files))),
            Err(TreeError::Cancelled) => Err(io::ErrorKind::Interrupted.into()),
            // A layer that cannot be read cannot be used either.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Removes builds whose process is gone: their lock is free.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(BUILDING))? {
            let name = entry?.file_name();
            let Some(key) = name.to_str().and_then(LayerKey::from_name) else { continue };
            if let Some(_lock) = KeyLock::try_exclusive(&self.lock_file(key))? {
                remove_tree(&self.building(key))?;
            }
        }
        Ok(())
    }

    fn dir(&self, key: LayerKey) -> PathBuf {
        self.root.join(key.name())
    }

    fn building(&self, key: LayerKey) -> PathBuf {
        self.root.join(BUILDING).join(key.name())
    }

    fn lock_file(&self, key: LayerKey) -> PathBuf {
        self.root.join(LOCKS).join(key.name())
    }
}

/// The metadata digest of a layer's files, and the untracked files of its checkout.
fn look(dir: &Path, limits: &TreeLimits<'_>) -> Result<(Digest, BTreeSet<RepoPath>), TreeError> {
    let parts: [(&str, &Path); 2] = [(HOME, &dir.join(HOME)), (CHECKOUT, &dir.join(CHECKOUT))];
    let metadata = read_metadata(&parts, limits, Some(CHECKOUT))?;
    Ok((metadata.digest, metadata.listed.into_iter().collect()))
}

impl LayerInUse {
    /// Its record.
    #[must_use]
    pub fn record(&self) -> &LayerRecord {
        &self.record
    }

    /// The untracked files of the checkout.
    #[must_use]
    pub fn files(&self) -> &BTreeSet<RepoPath> {
        &self.files
    }

    /// The directory of the layer. Nothing may write there.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The environment's home. Nothing may write there.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.join(HOME)
    }

    /// The untracked files of the checkout. Nothing may write there.
    #[must_use]
    pub fn checkout(&self) -> PathBuf {
        self.dir.join(CHECKOUT)
    }

    /// The log of the build.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join(LOG)
    }

    /// Writes a view of its own into an empty home and a checkout of the base. An entry that is there already wins, and nothing is
    /// written through a link.
    pub fn write_view(&self, home: &Path, checkout: &Path) -> io::Result<CopyKind> {
        Ok(self.write_view_within(home, checkout, &TreeLimits::default())?)
    }

    /// The same, until the deadline or a cancellation of `limits`.
    pub fn write_view_within(
        &self,
        home: &Path,
        checkout: &Path,
        limits: &TreeLimits<'_>,
    ) -> Result<CopyKind, TreeError> {
        let kinds = [
            copy_tree_within(&self.home(), home, limits)?,
            copy_tree_within(&self.checkout(), checkout, limits)?,
        ];
        Ok(if kinds.contains(&CopyKind::Copied) { CopyKind::Copied } else { CopyKind::Reflinked })
    }

    /// Whether its files are still as they were built, by their content.
    pub fn is_intact(&self) -> io::Result<bool> {
        let now = summarize(&[(HOME, &self.home()), (CHECKOUT, &self.checkout())])?;
        Ok(now == self.record.tree)
    }
}

impl LayerBuild {
    /// The key of the layer.
    #[must_use]
    pub fn key(&self) -> LayerKey {
        self.key
    }

    /// The home to be.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.join(HOME)
    }

    /// The untracked files to be.
    #[must_use]
    pub fn checkout(&self) -> PathBuf {
        self.dir.join(CHECKOUT)
    }

    /// A directory for the build itself, which is not part of the layer.
    pub fn scratch(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.join("scratch").join(name);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(dir)
    }

    /// The log of the build.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join(LOG)
    }

    /// Makes it a layer: the record is written, and one rename puts it in place.
    pub fn commit(
        self,
        now: Timestamp,
        record: impl FnOnce(TreeSummary) -> LayerRecord,
    ) -> io::Result<LayerInUse> {
        Ok(self.commit_within(now, &TreeLimits::default(), record)?)
    }

    /// The same, if its files are within `limits`.
    pub fn commit_within(
        mut self,
        now: Timestamp,
        limits: &TreeLimits<'_>,
        record: impl FnOnce(TreeSummary) -> LayerRecord,
    ) -> Result<LayerInUse, TreeError> {
        remove_tree(&self.dir.join("scratch"))?;
        let tree = summarize_within(&[(HOME, &self.home()), (CHECKOUT, &self.checkout())], limits)?;
        let record = record(tree);
        let (_, files) = look(&self.dir, limits)?;
        // The record says that the files are there, so that they must reach the disk first.
        syncfs(File::open(&self.dir)?).map_err(io::Error::from)?;
        write_durably(&self.dir.join(RECORD), &serde_json::to_vec_pretty(&record).map_err(io::Error::from)?)?;
        let place = self.store.dir(self.key);
        fs::rename(&self.dir, &place)?;
        sync_dir(&self.store.root)?;
        let lock = self.lock.take().ok_or_else(|| io::Error::other("the layer was committed twice"))?;
        Ok(self.store.ready(self.key, (record, files), lock.downgrade()?, now)?)
    }
}

impl Drop for LayerBuild {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // The next opening of the store removes the rest.
            let _ = remove_tree(&self.dir);
        }
    }
}
