//! The module proxies and the checksum database in the configuration of Go.

use herma_core::environment::Registry;

use super::super::RegistryUrl;
use super::{ConfigText, Configured, Reader, RegistryError, settings};

/// Settings that a build gets beside the proxies.
const SETTINGS: [&str; 5] = ["GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE", "GONOPROXY"];

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let file = env_file(reader)?;
    let value = |name: &str| {
        let in_file = || {
            let file = file.as_ref()?;
            let (_, value) = settings(&file.text).find(|(key, value)| *key == name && !value.is_empty())?;
            Some((value.to_owned(), file.name.clone()))
        };
        reader.variable(name).or_else(in_file)
    };
    let mut found = Configured::default();
    if let Some((list, source)) = value("GOPROXY") {
        read_proxies(&mut found, &list, source)?;
    }
    for name in SETTINGS {
        if let Some((value, source)) = value(name) {
            check_setting(name, &value, &source)?;
            found.settings.push((name.to_owned(), value));
        }
    }
    Ok(found)
}

/// The file that `go env -w` writes; `GOENV` can name another one, or none.
fn env_file(reader: &Reader<'_>) -> Result<Option<ConfigText>, RegistryError> {
    match reader.variable("GOENV") {
        Some((off, _)) if off == "off" => Ok(None),
        Some((path, _)) => reader.file(path.as_ref(), "the file of GOENV".to_owned()),
        None => reader.config_file("go/env"),
    }
}

fn read_proxies(found: &mut Configured, list: &str, source_name: String) -> Result<(), RegistryError> {
    let mut entries = list.split([',', '|']).map(str::trim).filter(|entry| !entry.is_empty());
    match entries.next() {
        Some("off") => return Err(RegistryError::DownloadsForbidden { source_name }),
        Some("direct") => return Err(RegistryError::UnknownHosts { source_name }),
        first => found.url = Some((first.unwrap_or_default().to_owned(), source_name)),
    }
    // Go consults nothing after these two.
    let proxies = entries.take_while(|entry| !matches!(*entry, "direct" | "off"));
    found.others = proxies.map(|each| ("GOPROXY".to_owned(), each.to_owned())).collect();
    Ok(())
}

/// Refuses a value with a credential in it. `GOSUMDB` is a name with a key, and the address of the database after a space; the
/// others are patterns of module paths.
fn check_setting(name: &str, value: &str, source_name: &str) -> Result<(), RegistryError> {
    let unsupported =
        || RegistryError::Unsupported { registry: Registry::Go, source_name: source_name.to_owned() };
    let mut words = value.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first.contains('@') {
        return Err(RegistryError::Credential {
            registry: Registry::Go,
            source_name: source_name.to_owned(),
        });
    }
    if first.contains("://") {
        return Err(unsupported());
    }
    let Some(address) = words.next() else { return Ok(()) };
    if name != "GOSUMDB" || words.next().is_some() {
        return Err(unsupported());
    }
    RegistryUrl::parse(address).map(drop).map_err(|bad| bad.of(Registry::Go, source_name))
}
