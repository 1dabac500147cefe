//! The registries in the configuration of cargo.

use std::path::PathBuf;

use super::{ConfigText, Configured, Reader, RegistryError, host_in};

/// cargo refuses cycles, and more replacements in a row than these are one.
const MAX_REPLACEMENTS: usize = 8;

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let mut found = Configured::default();
    let own_home = reader.variable("CARGO_HOME").map(|(dir, _)| PathBuf::from(dir));
    let dir = own_home.unwrap_or_else(|| reader.clients.host.home.join(".cargo"));
    // cargo prefers the name without an extension.
    let file = match reader.file(&dir.join("config"), "cargo's config".to_owned())? {
        Some(file) => Some(file),
        None => reader.file(&dir.join("config.toml"), "cargo's config.toml".to_owned())?,
    };
    let Some(file) = file else { return Ok(found) };
    let config = Config::parse(reader, file)?;
    found.url = config.replacement()?.map(|url| (url, config.name.clone()));
    for name in config.table(&["registries"])?.into_iter().flat_map(toml::Table::keys) {
        let index = config.text(&["registries", name, "index"])?;
        found.others.extend(index.map(|index| (name.clone(), index)));
    }
    let has_credentials = ["credentials.toml", "credentials"].into_iter().any(|file| dir.join(file).exists());
    if has_credentials {
        let hosts = found.url.iter().map(|(url, _)| url).chain(found.others.iter().map(|(_, url)| url));
        found.credential_hosts = hosts.filter_map(|url| host_in(url)).collect();
    }
    Ok(found)
}

struct Config<'a> {
    reader: &'a Reader<'a>,
    table: toml::Table,
    name: String,
}

impl<'a> Config<'a> {
    fn parse(reader: &'a Reader<'a>, file: ConfigText) -> Result<Self, RegistryError> {
        let ConfigText { text, name } = file;
        match text.parse() {
            Ok(table) => Ok(Self { reader, table, name }),
            Err(error) => {
                // The message of the parser repeats the line.
                let error: toml::de::Error = error;
                let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                Err(reader.unreadable(&name, &format!("it is not valid TOML at line {line}")))
            }
        }
    }

    /// The address that takes the place of crates.io, if one does.
    fn replacement(&self) -> Result<Option<String>, RegistryError> {
        let no_registry = |kind| RegistryError::NoRegistry { kind, source_name: self.name.clone() };
        let mut name = "crates-io".to_owned();
        let mut replacements = 0;
        while let Some(next) = self.text(&["source", &name, "replace-with"])? {
            name = next;
            replacements += 1;
            if replacements > MAX_REPLACEMENTS {
                return Err(no_registry("sources that replace each other"));
            }
        }
        if let Some(url) = self.text(&["source", &name, "registry"])? {
            return Ok(Some(url));
        }
        if name == "crates-io" {
            return Ok(None);
        }
        // A replacement can be the name of a registry too.
        if let Some(url) = self.text(&["registries", &name, "index"])? {
            return Ok(Some(url));
        }
        let source = self.table(&["source", &name])?;
        let has = |key: &str| source.is_some_and(|source| source.contains_key(key));
        Err(no_registry(match () {
            () if has("directory") || has("local-registry") => "a directory",
            () if has("git") => "a git repository",
            () => "a source that is not defined",
        }))
    }

    /// The table at this path; none if it is not there. Anything else in its place is an error.
    fn table(&self, path: &[&str]) -> Result<Option<&toml::Table>, RegistryError> {
        let mut table = &self.table;
        for key in path {
            table = match table.get(*key) {
                None => return Ok(None),
                Some(toml::Value::Table(below)) => below,
                Some(_) => {
                    return Err(self.reader.unreadable(&self.name, "a value takes the place of a table"));
                }
            };
        }
        Ok(Some(table))
    }

    /// The text at this path; none if it is not there. Anything else in its place is an error.
    fn text(&self, path: &[&str]) -> Result<Option<String>, RegistryError> {
        let Some((key, tables)) = path.split_last() else { return Ok(None) };
        match self.table(tables)?.and_then(|table| table.get(*key)) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => {
                Err(self.reader.unreadable(&self.name, &format!("the value of a `{key}` is not a string")))
            }
        }
    }
}
