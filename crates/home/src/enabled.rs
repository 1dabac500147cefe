//! Which engines are enabled. A real engine is disabled until a person enables it; `fake` is always enabled.

use std::fs;
use std::io;
use std::path::PathBuf;

use herma_core::Timestamp;
use herma_core::engine::EngineName;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use serde::{Deserialize, Serialize};

use crate::durable::{sync_dir, write_durably};
use crate::home::Home;

/// Record that an engine is enabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnabledRecord {
    /// The engine. The record counts for this engine only, also when its file is copied to another name.
    engine: EngineName,
    /// The time it was enabled.
    enabled_at: Timestamp,
}

/// The enabled engines of one home, one file each.
#[derive(Clone, Debug)]
pub struct EnabledEngines {
    dir: PathBuf,
}

impl EnabledEngines {
    /// The enabled engines of this home.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self { dir: home.root().join("engines") }
    }

    /// Whether the engine is enabled. One whose record cannot be read is not.
    #[must_use]
    pub fn is_on(&self, engine: &EngineName) -> bool {
        let read = read_regular(&self.file(engine), MAX_RECORD_BYTES).ok();
        read.and_then(|bytes| serde_json::from_slice::<EnabledRecord>(&bytes).ok())
            .is_some_and(|record| record.engine == *engine)
    }

    /// Enables an engine.
    pub fn enable(&self, engine: &EngineName, now: Timestamp) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let record = EnabledRecord { engine: engine.clone(), enabled_at: now };
        write_durably(&self.file(engine), &serde_json::to_vec_pretty(&record)?)
    }

    /// Disables an engine; one that is disabled stays so.
    pub fn disable(&self, engine: &EngineName) -> io::Result<()> {
        match fs::remove_file(self.file(engine)) {
            Ok(()) => sync_dir(&self.dir),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn file(&self, engine: &EngineName) -> PathBuf {
        self.dir.join(format!("{engine}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_off_until_it_is_switched_on_and_a_copied_switch_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let switches = EnabledEngines { dir: dir.path().join("engines") };
        let (stub, codex): (EngineName, EngineName) = ("stub".parse().unwrap(), "codex".parse().unwrap());
        assert!(!switches.is_on(&stub));
        switches.enable(&stub, "2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
        assert!(switches.is_on(&stub));
        fs::copy(switches.file(&stub), switches.file(&codex)).unwrap();
        assert!(!switches.is_on(&codex));
        switches.disable(&stub).unwrap();
        switches.disable(&stub).unwrap();
        assert!(!switches.is_on(&stub));
    }
}
