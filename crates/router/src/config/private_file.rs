//! Files with configuration or secrets: refused if others could read or change them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::problem::Problem;

/// The longest key, token or URL.
const MOST_SECRET_BYTES: u64 = 16 << 10;

/// The text of a configuration. It determines where keys are sent, so not everybody may be able to change it.
pub(super) fn read_config(path: &Path, most: u64) -> Result<String, Problem> {
    let cannot = |error: &io::Error| Problem::new(format!("the file {}", in_words(error)), "");
    let file = open(path).map_err(|error| cannot(&error))?;
    let metadata = file.metadata().map_err(|error| cannot(&error))?;
    if metadata.mode() & 0o002 != 0 {
        return Err(Problem::new("everybody on this machine can change the file", "run `chmod o-w` on it"));
    }
    let bytes = read_up_to(file, most).map_err(|error| cannot(&error))?.ok_or_else(|| too_large(most))?;
    String::from_utf8(bytes).map_err(|error| {
        let sound = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..sound]);
        let place = Some(super::locate::place(&text, text.len()));
        Problem { place, ..Problem::new("the file is not UTF-8", "expected UTF-8 text") }
    })
}

/// The problem of a file that is larger than any configuration.
pub(super) fn too_large(most: u64) -> Problem {
    Problem::new("the file is too large", format!("expected a configuration of at most {most} bytes"))
}

/// The content of a secret's file. Links are followed, because secrets are often mounted by one; the target is checked.
pub fn read_secret(path: &Path) -> Result<String, &'static str> {
    let file = open(path).map_err(|error| in_words(&error))?;
    let metadata = file.metadata().map_err(|error| in_words(&error))?;
    if metadata.mode() & 0o077 != 0 {
        return Err("can be read or changed by others than its owner: run `chmod 600` on it");
    }
    let me = rustix::process::geteuid().as_raw();
    if metadata.uid() != me && metadata.uid() != 0 {
        return Err("belongs to another user: it must belong to the user that runs herma");
    }
    let bytes = read_up_to(file, MOST_SECRET_BYTES).map_err(|error| in_words(&error))?;
    String::from_utf8(bytes.ok_or("is larger than any key")?).map_err(|_| "does not hold a text")
}

/// Opens a regular file. Nothing is waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The bytes of a file, if they are not too many.
fn read_up_to(file: File, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= most))
}

fn in_words(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "is not there",
        io::ErrorKind::PermissionDenied => "may not be read by this user",
        io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => "is not a regular file",
        _ => "could not be read",
    }
}
