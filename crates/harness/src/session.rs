//! The kept session of an agent, and how a later run continues it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_core::egress::EgressMode;
use herma_core::engine::DestinationKind;
use herma_engines::{Engine, SessionId};
use herma_home::{RunDirs, remove_tree};
use serde::{Deserialize, Serialize};

use crate::file_reading::{MAX_RECORD_BYTES, read_regular};
use crate::order::Plan;

/// The data for a later run, beside the agent's files.
const RECORD: &str = "session.json";

/// The maximum size of a kept session: an agent can leave anything.
const MAX_BYTES: u64 = 256 << 20;
const MAX_ENTRIES: u64 = 20_000;

/// The record of a kept session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    #[serde(default)]
    pub(crate) session: Option<SessionId>,
    pub(crate) contract_dir: PathBuf,
    pub(crate) destination: DestinationKind,
    pub(crate) egress: EgressMode,
    /// Whether the workspace was kept, because the run was interrupted after its agent had changed files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) workspace: bool,
}

impl Kept {
    /// The kept session of a run.
    pub(crate) fn of(dirs: &RunDirs) -> io::Result<Self> {
        let bytes = read_regular(&dirs.session().join(RECORD), MAX_RECORD_BYTES)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// Keeps the session of an agent that has ended, beside the bundle. A session that cannot be kept is removed: the run is
/// closed, whatever the agent did to its directory.
pub(crate) fn keep(
    dirs: &RunDirs,
    engine: &dyn Engine,
    plan: &Plan,
    session: Option<&SessionId>,
    workspace: bool,
) {
    if try_to_keep(dirs, engine, plan, session, workspace).is_err() {
        let _ = remove_tree(&dirs.session());
        if workspace {
            let _ = keep_workspace(dirs, plan);
        }
    }
}

/// Whether the workspace of a run is kept.
pub(crate) fn keeps_workspace(dirs: &RunDirs) -> bool {
    Kept::of(dirs).is_ok_and(|kept| kept.workspace)
}

/// Records that the workspace was kept, without a session.
pub(crate) fn keep_workspace(dirs: &RunDirs, plan: &Plan) -> io::Result<()> {
    if !dirs.session().is_dir() {
        make(&dirs.session())?;
    }
    write(dirs, plan, None, true)
}

fn write(dirs: &RunDirs, plan: &Plan, session: Option<&SessionId>, workspace: bool) -> io::Result<()> {
    let contract_dir = plan.contract_dir.clone();
    let contract_dir = contract_dir.ok_or_else(|| io::Error::other("the plan is of an earlier version"))?;
    let record = Kept {
        session: session.cloned(),
        contract_dir,
        destination: plan.destination,
        egress: plan.egress,
        workspace,
    };
    fs::write(dirs.session().join(RECORD), serde_json::to_vec(&record)?)
}

fn try_to_keep(
    dirs: &RunDirs,
    engine: &dyn Engine,
    plan: &Plan,
    session: Option<&SessionId>,
    workspace: bool,
) -> io::Result<()> {
    let is_there = |place: &&str| session.is_some() && is_directory(&dirs.engine(), place);
    let places: Vec<_> = engine.sessions().into_iter().filter(is_there).collect();
    if places.is_empty() {
        return if workspace { keep_workspace(dirs, plan) } else { Ok(()) };
    }
    let kept = dirs.session();
    if !kept.is_dir() {
        make(&kept)?;
    }
    for place in places {
        let to = kept.join(place);
        DirBuilder::new().mode(0o700).recursive(true).create(to.parent().unwrap_or(&kept))?;
        fs::rename(dirs.engine().join(place), to)?;
    }
    // Last, so that what has a record is whole.
    write(dirs, plan, session, workspace)
}

/// Puts a session that was kept where the agent of another run will look for it.
pub(crate) fn take_up(kept: &RunDirs, engine: &dyn Engine, engine_dir: &Path) -> io::Result<()> {
    let mut left = Left { bytes: MAX_BYTES, entries: MAX_ENTRIES };
    for place in engine.sessions().into_iter().filter(|place| is_directory(&kept.session(), place)) {
        let to = engine_dir.join(place);
        DirBuilder::new().mode(0o700).recursive(true).create(to.parent().unwrap_or(engine_dir))?;
        copy(&kept.session().join(place), &to, &mut left)?;
    }
    Ok(())
}

/// Whether the place is a directory below `root`, and every step to it is one: the agent could have put a link there that
/// leads out.
fn is_directory(root: &Path, place: &str) -> bool {
    let mut at = root.to_owned();
    Path::new(place).components().all(|step| {
        at.push(step);
        fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir())
    })
}

/// The remaining number of bytes to copy.
struct Left {
    bytes: u64,
    entries: u64,
}

impl Left {
    fn take(&mut self, bytes: u64) -> io::Result<()> {
        let left = (self.bytes.checked_sub(bytes), self.entries.checked_sub(1));
        let (Some(bytes), Some(entries)) = left else {
            return Err(io::Error::other(format!(
                "the session holds more than {MAX_ENTRIES} files or {} MiB",
                MAX_BYTES >> 20
            )));
        };
        *self = Self { bytes, entries };
        Ok(())
    }
}

/// Copies files and directories. Links, sockets and the like are left out: they could lead anywhere.
fn copy(from: &Path, to: &Path, left: &mut Left) -> io::Result<()> {
    make(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            left.take(0)?;
            copy(&entry.path(), &to, left)?;
        } else if kind.is_file() {
            left.take(entry.metadata()?.len())?;
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_way_to_a_session_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, elsewhere) = (dir.path().join("engine"), dir.path().join("elsewhere"));
        fs::create_dir_all(elsewhere.join("sessions")).unwrap();
        fs::create_dir_all(engine.join("sound/sessions")).unwrap();
        symlink(&elsewhere, engine.join("agent")).unwrap();
        symlink(elsewhere.join("sessions"), engine.join("sound/linked")).unwrap();
        assert!(is_directory(&engine, "sound/sessions"));
        for place in ["agent/sessions", "sound/linked", "agent", "nothing"] {
            assert!(!is_directory(&engine, place), "{place}");
        }
    }

    #[test]
    fn only_files_and_directories_are_taken_up_and_not_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("2026/11")).unwrap();
        fs::write(from.join("2026/11/a.jsonl"), "12345").unwrap();
        fs::write(dir.path().join("secret"), "of somebody").unwrap();
        symlink(dir.path().join("secret"), from.join("link")).unwrap();
        symlink(dir.path(), from.join("2026/up")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        copy(&from, &to, &mut Left { bytes: 5, entries: 3 }).unwrap();
        assert_eq!(fs::read(to.join("2026/11/a.jsonl")).unwrap(), b"12345");
        let copied = |place: &str| fs::symlink_metadata(to.join(place)).is_ok();
        assert!(!copied("link") && !copied("2026/up") && !copied("socket"));
        for (bytes, entries) in [(4, 3), (5, 2)] {
            let to = dir.path().join(format!("{bytes}-{entries}"));
            let error = copy(&from, &to, &mut Left { bytes, entries }).unwrap_err();
            assert!(error.to_string().starts_with("the session holds more than"), "{error}");
        }
    }
}
