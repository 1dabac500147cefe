//! Directories that a flag or a setting names: herma makes at most the last component, and changes no permissions.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::failure::Failure;

/// Makes the directory where it is missing; the one above it must exist. `what` names it in messages.
pub(crate) fn make_last_component(what: &str, dir: &Path, mode: u32) -> Result<(), Failure> {
    let shown = dir.display();
    match DirBuilder::new().mode(mode).create(dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::bad_input(format!("{what} {shown} is not a directory")).hint("name another one"))
        }
        Err(_) if !parent(dir).exists() => Err(missing_parent(what, dir)),
        Err(e) => Err(Failure::bad_input(format!("{what} {shown} cannot be made: {e}"))
            .hint("name another one, or make it yourself")),
    }
}

/// Makes a directory that only herma fills, or checks that the one that is there is empty or has one of the entries that
/// herma makes in it.
pub(crate) fn make_own(what: &str, dir: &Path, entries: &[&str]) -> Result<(), Failure> {
    make_last_component(what, dir, 0o700)?;
    let shown = dir.display();
    let is_own = || entries.iter().any(|name| fs::symlink_metadata(dir.join(name)).is_ok());
    let is_empty = fs::read_dir(dir).and_then(|mut all| all.next().transpose());
    let is_empty = is_empty.map_err(|e| Failure::bad_input(format!("{what} {shown} cannot be read: {e}")))?;
    if is_empty.is_none() || is_own() {
        return Ok(());
    }
    let message = format!(
        "{what} {shown} is not empty, and herma did not make it: it has none of {}; nothing was changed",
        entries.join(", ")
    );
    Err(Failure::bad_input(message).hint("name an empty directory, or one that does not exist yet"))
}

/// A directory cannot be made because the one above it is missing.
fn missing_parent(what: &str, dir: &Path) -> Failure {
    let parent = parent(dir).display();
    Failure::bad_input(format!("{what} {} cannot be made: {parent} does not exist", dir.display()))
        .hint(format!("create {parent}, or name another directory"))
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
