//! The program of an external engine, as a copy that only herma can write: the hashed bytes are the bytes that run.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_destination::Mount;
use herma_engines::Engine;

use crate::context::RunContext;
use crate::error::Stop;
use crate::file_reading::open_named;

/// Whether the program that will run is the one that the gates judged.
pub(crate) enum ProgramCheck {
    Same,
    Changed(BlockerRecord),
}

/// Copies the program of the run's engine, where it has one, and compares the copy with the digest that the gates judged.
///
/// The destination mounts this copy and never the admitted path: a process that can rename a directory above that path could put
/// another program there for a moment.
pub(crate) fn copy(
    ctx: &RunContext<'_>,
    engine: &dyn Engine,
    judged: Option<Digest>,
) -> Result<ProgramCheck, Stop> {
    let Some(program) = engine.program() else { return Ok(ProgramCheck::Same) };
    let changed = |why: &str| Ok(ProgramCheck::Changed(Blocker::EngineDigestMismatch.because(why)));
    if program.is_dir() {
        // herma mounts a whole tree from its own home, where no other user can write.
        if !program.starts_with(ctx.installation.home.installed()) {
            return changed("a directory runs only where `herma engines install` put it");
        }
        if engine.digest().ok() == judged {
            return Ok(ProgramCheck::Same);
        }
        return changed("what is installed was changed after the gates had looked at it");
    }
    let copy = place(ctx);
    if let Err(error) = copy_program(program, &copy) {
        let Stop::Internal(_) = Stop::from(error) else {
            return Err(Stop::write("the engine's program could not be copied"));
        };
        return changed("the program was there when the gates looked at it, and cannot be read any more");
    }
    fs::set_permissions(&copy, Permissions::from_mode(0o500))?;
    if engine.digest_with(&copy).ok() == judged {
        return Ok(ProgramCheck::Same);
    }
    changed("the program was changed after the gates had looked at it")
}

/// The engine's files that the destination has to show.
pub(crate) fn mounts(ctx: &RunContext<'_>, engine: &dyn Engine) -> Vec<Mount> {
    match engine.program() {
        Some(tree) if tree.is_dir() => engine.mounts(tree),
        Some(_) => engine.mounts(&place(ctx)),
        None => Vec::new(),
    }
}

/// Opens without blocking: the program may have become a FIFO after its digest was taken.
fn copy_program(program: &Path, copy: &Path) -> io::Result<()> {
    let mut from = open_named(program)?;
    io::copy(&mut from, &mut File::create_new(copy)?).map(drop)
}

fn place(ctx: &RunContext<'_>) -> PathBuf {
    ctx.dirs.root().join("program")
}
