//! Defaults for `herma do`: engine and model for the person, environment and tests for the repository.

use std::fs;
use std::io;

use herma_core::admission::ModelRef;

use herma_home::write_durably;

use crate::error::QuickstartError;
use crate::session::Session;
use crate::settings_file::with_do;

/// Sets engine and model of `herma do` in the settings. Returns the file if it was changed.
pub(crate) fn set_do(
    session: &mut Session<'_>,
    model: Option<&ModelRef>,
) -> Result<Option<String>, QuickstartError> {
    let file = session.installation.home.settings();
    let before = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(QuickstartError::Io { path: file, doing: "read", source }),
    };
    let changed = with_do(&before, &session.engine, model)
        .map_err(|why| QuickstartError::bad(format!("{} cannot be changed", file.display()), why))?;
    let Some(text) = changed else { return Ok(None) };
    write_durably(&file, text.as_bytes()).map_err(|source| QuickstartError::Io {
        path: file.clone(),
        doing: "written",
        source,
    })?;
    session.reopen()?;
    Ok(Some(file.display().to_string()))
}
