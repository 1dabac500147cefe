//! The repositories in the configuration of composer.

use serde_json::Value;

use super::{Configured, Reader, RegistryError};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let mut found = Configured::default();
    let own = reader.variable_path("COMPOSER_HOME").map(|dir| dir.join("config.json"));
    let files = match own {
        Some(path) => vec![reader.file(&path, "the config.json of COMPOSER_HOME".to_owned())?],
        None => vec![reader.config_file("composer/config.json")?, reader.home_file(".composer/config.json")?],
    };
    for file in files.into_iter().flatten() {
        let config: Value = serde_json::from_str(&file.text).map_err(|error| {
            // The message of the parser can repeat a text.
            reader.unreadable(&file.name, &format!("it is not valid JSON at line {}", error.line()))
        })?;
        let repositories: Vec<&Value> = match config.get("repositories") {
            None => Vec::new(),
            Some(Value::Array(list)) => list.iter().collect(),
            Some(Value::Object(map)) => map.values().collect(),
            Some(_) => return Err(reader.unreadable(&file.name, "`repositories` is not a list")),
        };
        let composer =
            repositories.into_iter().find(|each| each.get("type").is_some_and(|kind| kind == "composer"));
        let Some(repository) = composer else { continue };
        let Some(url) = repository.get("url").and_then(Value::as_str) else {
            return Err(reader.unreadable(&file.name, "a repository has no `url`"));
        };
        found.url.get_or_insert_with(|| (url.to_owned(), file.name.clone()));
    }
    Ok(found)
}
