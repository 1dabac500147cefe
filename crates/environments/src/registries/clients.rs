//! Reads the configuration files and variables of package managers: addresses, and for which hosts there are credentials. The
//! credentials themselves are skipped.
//!
//! Only a file that is not there means that nothing is configured. Any other failure is an error, because the public registry
//! would take the place of the operator's own one, and anybody can publish a package of the same name there.

mod apt;
mod cargo;
mod composer;
mod go;
mod maven;
mod npm;
mod nuget;
mod pip;
mod rubygems;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::environment::Registry;
use herma_files::read_named;

use super::{ClientConfiguration, Configured, RegistryError};

/// The largest configuration file that is read.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn read(
    registry: Registry,
    clients: &ClientConfiguration<'_>,
) -> Result<Configured, RegistryError> {
    let reader = Reader { registry, clients };
    let mut found = match registry {
        Registry::Npm => npm::read(&reader),
        Registry::Pypi => pip::read(&reader),
        Registry::Crates => cargo::read(&reader),
        Registry::Go => go::read(&reader),
        Registry::Maven => maven::read(&reader),
        Registry::Rubygems => rubygems::read(&reader),
        Registry::Packagist => composer::read(&reader),
        Registry::Nuget => nuget::read(&reader),
        Registry::Debian => apt::read(&reader),
    }?;
    reader.add_netrc(&mut found);
    Ok(found)
}

/// Reads what one registry's client reads.
struct Reader<'a> {
    registry: Registry,
    clients: &'a ClientConfiguration<'a>,
}

/// The text of a configuration file, and its name for messages.
struct ConfigText {
    text: String,
    name: String,
}

impl Reader<'_> {
    /// The value of a variable, and its name for messages.
    fn variable(&self, name: &str) -> Option<(String, String)> {
        let value = self.clients.host.variables.get(name).filter(|value| !value.trim().is_empty())?;
        Some((value.trim().to_owned(), format!("the variable {name}")))
    }

    fn first_variable(&self, names: &[&str]) -> Option<(String, String)> {
        names.iter().find_map(|name| self.variable(name))
    }

    /// The directory that a variable names, if it is absolute.
    fn variable_path(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(|(path, _)| PathBuf::from(path)).filter(|path| path.is_absolute())
    }

    /// A file below the home.
    fn home_file(&self, path: &str) -> Result<Option<ConfigText>, RegistryError> {
        self.file(&self.clients.host.home.join(path), format!("~/{path}"))
    }

    /// A file below the directory of configuration, which `XDG_CONFIG_HOME` can name.
    fn config_file(&self, path: &str) -> Result<Option<ConfigText>, RegistryError> {
        match self.variable_path("XDG_CONFIG_HOME") {
            Some(dir) => self.file(&dir.join(path), format!("$XDG_CONFIG_HOME/{path}")),
            None => self.home_file(&format!(".config/{path}")),
        }
    }

    fn etc_file(&self, path: &str) -> Result<Option<ConfigText>, RegistryError> {
        self.file(&self.clients.etc.join(path), format!("/etc/{path}"))
    }

    /// A file of the operator, who may keep it elsewhere behind a link. FIFOs, devices and large files are errors.
    fn file(&self, path: &Path, name: String) -> Result<Option<ConfigText>, RegistryError> {
        let bytes = match read_named(path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(path) {
                    Ok(_) => Err(self.unreadable(&name, "it is a link to a file that is not there")),
                    Err(_) => Ok(None),
                };
            }
            Err(e) => return Err(self.unreadable(&name, &e.to_string())),
        };
        match String::from_utf8(bytes) {
            Ok(text) => {
                let text = text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text);
                Ok(Some(ConfigText { text, name }))
            }
            Err(_) => Err(self.unreadable(&name, "it is not UTF-8 text")),
        }
    }

    /// The error for a file; `reason` must not repeat anything of its content.
    fn unreadable(&self, name: &str, reason: &str) -> RegistryError {
        let (source_name, reason) = (name.to_owned(), reason.to_owned());
        RegistryError::Unreadable { registry: self.registry, source_name, reason }
    }

    /// Adds the machines of `.netrc`. Its logins and passwords are skipped. It names no registry, so that one that cannot be read
    /// is worth a notice only.
    fn add_netrc(&self, found: &mut Configured) {
        let bytes = match read_named(&self.clients.host.home.join(".netrc"), MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) => {
                found.notices.push(format!(
                    "~/.netrc cannot be read ({e}): herma does not know whether the registry `{}` needs a credential",
                    self.registry
                ));
                return;
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let words: Vec<&str> = text.split_whitespace().collect();
        let machines =
            words.windows(2).filter(|pair| pair[0] == "machine").map(|pair| pair[1].to_ascii_lowercase());
        found.credential_hosts.extend(machines);
    }
}

/// Lines of `key = value`, without comments.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()))
}

fn host_in(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    Some(host.to_ascii_lowercase())
}
