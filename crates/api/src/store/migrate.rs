//! Copies the store to another engine.

use std::io;
use std::path::{Path, PathBuf};

use herma_core::store::StoreError;
use herma_files::read_regular;
use herma_harness::{Installation, OperatorSettings, StoreSettings};
use herma_home::write_durably;
use herma_store::{BlockingStore, StoreLocation, copy};

use super::{StoreCommandError, nothing_else_uses};
use crate::output::StoreMigrateOutput;

/// The largest file of settings that is changed.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// Where to copy the store to.
#[derive(Clone, Debug)]
pub struct StoreTarget {
    /// Its URL, without a password.
    pub url: String,
    /// The file with its password.
    pub password_file: Option<PathBuf>,
    /// Whether `settings.yaml` names it afterwards.
    pub is_to_be_used: bool,
}

/// Copies the store of this installation into an empty one, and compares them. The first stays as it is.
pub fn migrate_store(
    installation: &Installation,
    target: &StoreTarget,
) -> Result<StoreMigrateOutput, StoreCommandError> {
    let file = installation.home.settings();
    let settings = target.is_to_be_used.then(|| changed_settings(installation, &file, target)).transpose()?;
    nothing_else_uses(installation)?;
    let from = installation.store.call(|store| store.describe())?;
    let location =
        installation.settings().other_store_location(&target.url, target.password_file.as_deref())?;
    let same = from.location.parse::<StoreLocation>().is_ok_and(|from| from == location);
    if same {
        return Err(StoreCommandError::SameStore(from.location));
    }
    let to = BlockingStore::open(&location)?;
    let about = to.call(|store| store.describe())?;
    if about.other_processes > 0 {
        return Err(StoreCommandError::InUse { count: about.other_processes, location: about.location });
    }
    let source = installation.store.store().clone();
    let destination = to.store().clone();
    let counts = to.call(move |_| {
        Box::pin(async move { copy(&source, &destination).await }) as herma_store::StoreFuture<'_, _>
    })?;
    if let Some(text) = &settings {
        write_durably(&file, text.as_bytes()).map_err(|cause| StoreCommandError::File { file, cause })?;
    }
    Ok(StoreMigrateOutput {
        schema: "herma.store-migrate/v1",
        from,
        to: about,
        counts,
        is_in_use: settings.is_some(),
    })
}

/// The settings with the new store at their end. Settings that have one are not changed, so that no comment is lost.
fn changed_settings(
    installation: &Installation,
    file: &Path,
    target: &StoreTarget,
) -> Result<String, StoreCommandError> {
    if installation.settings().store.url.is_some() {
        return Err(StoreCommandError::CannotUse("HERMA_STORE precedes it"));
    }
    if installation.operator.store != StoreSettings::default() {
        return Err(StoreCommandError::CannotUse("it has the key `store` already"));
    }
    let text = match read_regular(file, MAX_SETTINGS_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).map_err(io::Error::other),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(e),
    };
    let text = text.map_err(|cause| StoreCommandError::File { file: file.to_owned(), cause })?;
    let location: StoreLocation =
        target.url.parse().map_err(|error: StoreError| StoreCommandError::Store(error))?;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut changed = text;
    if !changed.is_empty() && !changed.ends_with('\n') {
        changed.push('\n');
    }
    let mut lines = vec!["store:".to_owned(), format!("  url: {}", quoted(&location.to_string()))];
    if let Some(password) = &target.password_file {
        let absolute = std::path::absolute(password);
        let absolute = absolute.map_err(|cause| StoreCommandError::File { file: password.clone(), cause })?;
        lines.push("  password:".to_owned());
        lines.push(format!("    file: {}", quoted(&absolute.to_string_lossy())));
    }
    for line in lines {
        changed.push_str(&line);
        changed.push('\n');
    }
    match OperatorSettings::parse(&changed) {
        Ok(parsed) if parsed.store.url == Some(location.to_string()) => Ok(changed),
        _ => Err(StoreCommandError::CannotUse("a key cannot be added at its end")),
    }
}
