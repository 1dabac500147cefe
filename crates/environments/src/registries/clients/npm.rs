//! The registries in the configuration of npm, which pnpm, yarn and bun read too.

use super::{Configured, Reader, RegistryError, settings};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let url = reader.first_variable(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]);
    let mut found = Configured { url, ..Configured::default() };
    let named = ["npm_config_userconfig", "NPM_CONFIG_USERCONFIG"];
    let user = match named.iter().find_map(|name| Some((*name, reader.variable_path(name)?))) {
        Some((name, path)) => reader.file(&path, format!("the file of {name}"))?,
        None => reader.home_file(".npmrc")?,
    };
    for file in [user, reader.etc_file("npmrc")?].into_iter().flatten() {
        for (key, value) in settings(&file.text) {
            let key = key.trim_matches(['"', '\'']);
            if key == "registry" && found.url.is_none() {
                found.url = Some((value.to_owned(), file.name.clone()));
            } else if key.starts_with('@') && key.ends_with(":registry") {
                found.others.push((key.to_owned(), value.to_owned()));
            } else if let Some(place) = key.strip_prefix("//") {
                // `//host/path/:_authToken=...`: the value is not looked at.
                found.credential_hosts.extend(place.split(['/', ':']).next().map(str::to_ascii_lowercase));
            }
        }
    }
    Ok(found)
}
