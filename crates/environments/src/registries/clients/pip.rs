//! The indexes in the configuration of pip and uv.

use std::path::Path;

use super::{Configured, Reader, RegistryError};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let url = reader.first_variable(&["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"]);
    let mut found = Configured { url, ..Configured::default() };
    let mut extra = reader.variable("PIP_EXTRA_INDEX_URL").map(|(value, _)| value);
    let named = reader.variable_path("PIP_CONFIG_FILE");
    let files = match named.as_deref() {
        // pip reads no file at all then.
        Some(path) if path == Path::new("/dev/null") => Vec::new(),
        named => {
            let named = named.map(|path| reader.file(path, "the file of PIP_CONFIG_FILE".to_owned()));
            vec![
                named.transpose()?.flatten(),
                reader.config_file("pip/pip.conf")?,
                reader.home_file(".pip/pip.conf")?,
                reader.etc_file("pip.conf")?,
            ]
        }
    };
    for file in files.into_iter().flatten() {
        let settings = settings(&file.text);
        let value = |key: &str| settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        if found.url.is_none() {
            found.url = value("index-url").map(|url| (url, file.name.clone()));
        }
        extra = extra.or_else(|| value("extra-index-url"));
    }
    let urls = extra.iter().flat_map(|urls| urls.split_whitespace());
    found.others = urls.map(|url| ("extra-index-url".to_owned(), url.to_owned())).collect();
    Ok(found)
}

/// The settings of all sections. An indented line continues the value of the line before it, and pip takes `_` for `-`.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
        let is_continuation = line.starts_with([' ', '\t']);
        match (found.last_mut().filter(|_| is_continuation), line.split_once(['=', ':'])) {
            (Some((_, value)), _) => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (None, Some((key, value))) => {
                let key = key.trim().to_ascii_lowercase().replace('_', "-");
                found.push((key, value.trim().to_owned()));
            }
            (None, None) => {}
        }
    }
    found
}
