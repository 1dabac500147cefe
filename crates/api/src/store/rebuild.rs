//! Makes the index of runs anew from the bundles that verify.

use std::path::PathBuf;

use herma_core::store::StoreErrorKind;
use herma_core::{RunId, Timestamp};
use herma_evidence::ExpectedRun;
use herma_evidence::layout;
use herma_harness::{Installation, OpenError, Settings, record_bundle};
use herma_home::{Home, HomeError};
use herma_trust::verify_run;

use super::{StoreCommandError, nothing_else_uses};
use crate::output::{RefusedBundle, StoreRebuildOutput};

/// Forgets the index, and records every run of this home whose bundle verifies. Approvals that were not used are void.
pub fn rebuild_store(
    installation: &Installation,
    set_aside: Option<String>,
) -> Result<StoreRebuildOutput, StoreCommandError> {
    nothing_else_uses(installation)?;
    let (mut sound, mut refused) = (Vec::new(), Vec::new());
    let runs = installation.home.run_ids().map_err(StoreCommandError::Home)?;
    for run_id in runs {
        if !installation.home.run(run_id).bundle().join(layout::ATTESTATION).exists() {
            continue;
        }
        match problem(installation, run_id) {
            None => sound.push(run_id),
            Some(problem) => refused.push(RefusedBundle { run_id, problem }),
        }
    }
    let voided_approvals = installation.store.call(|store| store.clear_index())?;
    for run_id in &sound {
        record_bundle(installation, *run_id).map_err(|error| StoreCommandError::Record(*run_id, error))?;
    }
    Ok(StoreRebuildOutput {
        schema: "herma.store-rebuild/v1",
        store: installation.store.call(|store| store.describe())?,
        runs: sound.len() as u64,
        refused,
        voided_approvals,
        set_aside,
    })
}

/// Why the bundle does not verify; none if it does. The store says nothing about it, because it may be what is wrong.
fn problem(installation: &Installation, run_id: RunId) -> Option<String> {
    let expected = ExpectedRun { run_id, contract_digest: None };
    let bundle = installation.home.run(run_id).bundle();
    let list = verify_run(&bundle, &expected, &installation.trust(), None, None);
    if list.ok() {
        return None;
    }
    let failed = list.failed().next().map(|check| format!("{}: {}", check.name.as_str(), check.detail));
    Some(failed.unwrap_or_else(|| "nothing could be checked".to_owned()))
}

/// Moves a file that is no store, or a damaged one, aside, so that a new one can be made. None if the store was not opened for
/// another reason, or is not a file.
pub fn set_corrupt_store_aside(
    settings: &Settings,
    error: &OpenError,
    now: Timestamp,
) -> Result<Option<PathBuf>, StoreCommandError> {
    let OpenError::Store(error) = error else { return Ok(None) };
    if error.kind() != StoreErrorKind::Corrupt {
        return Ok(None);
    }
    let Some(place) = &settings.home else { return Ok(None) };
    let home = Home::open(place)
        .map_err(|error: HomeError| StoreCommandError::Home(std::io::Error::other(error)))?;
    if let Some(run) = home.active_runs().map_err(StoreCommandError::Home)?.first() {
        return Err(StoreCommandError::ActiveRun(*run));
    }
    let Ok(operator) = herma_harness::OperatorSettings::read(&home.settings()) else { return Ok(None) };
    let location = settings.store_location(&home, &operator)?;
    let herma_store::StoreLocation::Sqlite(file) = location else { return Ok(None) };
    let named = |suffix: &str| {
        let mut name = file.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = format!(".corrupt-{}", now.as_second());
    for suffix in ["", "-wal", "-shm"] {
        let from = named(suffix);
        match std::fs::rename(&from, named(&format!("{aside}{suffix}"))) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !suffix.is_empty() => {}
            Err(cause) => return Err(StoreCommandError::File { file: from, cause }),
            Ok(()) => {}
        }
    }
    Ok(Some(named(&aside)))
}
