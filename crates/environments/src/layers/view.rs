//! Views of a layer that are mounts instead of copies: what is mounted where, and how the changes in them become plain files.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, open, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::LayerInUse;
use super::copy::{
    MIN_MOUNT_BYTES, MIN_MOUNT_ENTRIES, copy_around_mounts, copy_tree_within, is_large, set_mode_of,
};
use super::limits::{TreeError, TreeLimits};

/// A directory of a layer that a view shows by an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewMount {
    /// The directory of the layer.
    pub lower: PathBuf,
    /// The home or the checkout of the view.
    pub root: PathBuf,
    /// The path of an empty directory below it; `.` is the root itself.
    pub place: PathBuf,
}

impl ViewMount {
    /// Makes a directory for the changes, with the mode of the lower one, which the view shows.
    pub fn make_upper(&self, upper: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(upper)?;
        Ok(set_mode_of(&self.lower, upper)?)
    }
}

impl LayerInUse {
    /// Whether it can have a directory that is worth a mount.
    #[must_use]
    pub fn is_worth_mounts(&self) -> bool {
        let tree = &self.record().tree;
        tree.files >= MIN_MOUNT_ENTRIES || tree.bytes >= MIN_MOUNT_BYTES
    }

    /// Writes a view like [`LayerInUse::write_view`], but leaves large directories to mounts.
    pub fn write_view_around_mounts(
        &self,
        home: &Path,
        checkout: &Path,
        limits: &TreeLimits<'_>,
    ) -> Result<Vec<ViewMount>, TreeError> {
        let places = copy_around_mounts(&self.checkout(), checkout, limits)?;
        let mount = |place: PathBuf| ViewMount {
            lower: self.checkout().join(&place),
            root: checkout.to_owned(),
            place,
        };
        Ok(self
            .write_home_around_mounts(home, limits)?
            .into_iter()
            .chain(places.into_iter().map(mount))
            .collect())
    }

    /// The same for a home alone, which is empty: it is mounted as a whole, or copied.
    pub fn write_home_around_mounts(
        &self,
        home: &Path,
        limits: &TreeLimits<'_>,
    ) -> Result<Option<ViewMount>, TreeError> {
        if is_large(&self.home())? {
            let mount = ViewMount { lower: self.home(), root: home.to_owned(), place: ".".into() };
            return Ok(Some(mount));
        }
        copy_tree_within(&self.home(), home, limits)?;
        Ok(None)
    }
}

/// No component of a path may be a link or leave the root: a job wrote what is below.
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Moves the changes of a mounted directory to its place, which is empty outside of the job. Every process of the job is dead.
/// Returns false if something else is in that place: the job moved a directory above it.
pub fn take_over(upper: &Path, root: &Path, place: &Path) -> io::Result<bool> {
    remove_whiteouts(upper)?;
    let root = open(root, OFlags::PATH | DIRECTORY, Mode::empty())?;
    let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else {
        return Err(io::Error::other("the changes of a whole directory have no place"));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = match openat2(&root, parent, OFlags::PATH | DIRECTORY, Mode::empty(), BENEATH) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        opened => opened?,
    };
    match renameat(CWD, upper, &parent, name) {
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
        moved => Ok(moved.map(|()| true)?),
    }
}

/// Removes the marks by which the kernel remembers what was deleted: devices that no job can make in an overlay.
fn remove_whiteouts(upper: &Path) -> io::Result<()> {
    let root = open(upper, OFlags::PATH | DIRECTORY, Mode::empty())?;
    let mut pending = vec![PathBuf::from(".")];
    while let Some(path) = pending.pop() {
        let dir = match openat2(&root, &path, OFlags::RDONLY | DIRECTORY, Mode::empty(), BENEATH) {
            // The walk over the result names it.
            Err(Errno::ACCESS | Errno::NAMETOOLONG) => continue,
            opened => opened?,
        };
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => pending.push(path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))),
                FileType::CharacterDevice if stat.st_rdev == 0 => unlinkat(&dir, name, AtFlags::empty())?,
                _ => {}
            }
        }
    }
    Ok(())
}
