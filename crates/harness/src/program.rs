//! The program of an engine that herma did not write, as a copy that only herma can write: what was hashed is what runs.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_destination::Mount;
use herma_engines::Engine;

use crate::error::Stop;
use crate::file_reading::open_named;
use crate::run::Run;

/// Copies the program of the run's engine, where it has one, and says whether the copy is what the gates judged.
///
/// It is mounted from here and never from where it was admitted: whoever can rename a directory above that place could
/// put another program there and take it away again.
pub(crate) fn copy(run: &Run<'_>, engine: &dyn Engine) -> Result<Result<(), BlockerRecord>, Stop> {
    let Some(program) = engine.program() else { return Ok(Ok(())) };
    let swapped = |why: &str| Ok(Err(Blocker::EngineDigestMismatch.because(why)));
    if program.is_dir() {
        // A whole tree is not copied: it lies in herma's own home, where nobody else can write, and is mounted from there.
        if !program.starts_with(run.installation.home.installed()) {
            return swapped("a directory runs only where `herma engines install` put it");
        }
        if engine.digest().ok() == run.facts.engine_digest {
            return Ok(Ok(()));
        }
        return swapped("what is installed was changed after the gates had looked at it");
    }
    let copy = place(run);
    if let Err(error) = copy_program(program, &copy) {
        let Stop::Internal(_) = Stop::from(error) else {
            return Err(Stop::Write("the engine's program could not be copied".to_owned()));
        };
        return swapped("the program was there when the gates looked at it, and cannot be read any more");
    }
    fs::set_permissions(&copy, Permissions::from_mode(0o500))?;
    if engine.digest_with(&copy).ok() == run.facts.engine_digest {
        return Ok(Ok(()));
    }
    swapped("the program was changed after the gates had looked at it")
}

/// What of the engine has to be visible inside the destination.
pub(crate) fn mounts(run: &Run<'_>, engine: &dyn Engine) -> Vec<Mount> {
    match engine.program() {
        Some(tree) if tree.is_dir() => engine.mounts(tree),
        Some(_) => engine.mounts(&place(run)),
        None => Vec::new(),
    }
}

/// A program that became a FIFO after its digest was taken is not waited for.
fn copy_program(program: &Path, copy: &Path) -> io::Result<()> {
    let mut from = open_named(program)?;
    io::copy(&mut from, &mut File::create_new(copy)?).map(drop)
}

fn place(run: &Run<'_>) -> PathBuf {
    run.dirs.root().join("program")
}
