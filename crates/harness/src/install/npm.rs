//! npm as the operator has it: where it lies, which registry it asks, and whom it trusts there.

use std::path::{Path, PathBuf};

use herma_destination::{Mount, Tool};
use herma_engines::Package;

use super::error::InstallError;
use crate::installation::Installation;

/// What every sandbox shows already.
const SYSTEM: &str = "/usr";
/// The port of TLS.
const TLS: u16 = 443;

/// npm, and what it is configured with.
#[derive(Debug)]
pub(super) struct Npm {
    /// npm's own program.
    pub(super) program: PathBuf,
    /// The directories that hold npm and node, for PATH.
    pub(super) path: Vec<PathBuf>,
    /// What has to be shown for them to run.
    pub(super) mounts: Vec<Mount>,
    /// The registry's address.
    pub(super) registry: String,
    /// Its host and port, as the egress proxy is told them.
    pub(super) host: String,
    /// Whom it trusts, where that is said.
    pub(super) cafile: Option<PathBuf>,
}

impl Npm {
    /// Finds npm and asks it for its configuration. What stands there of users and tokens is not asked for.
    pub(super) fn find(installation: &Installation, package: &Package) -> Result<Self, InstallError> {
        let search_path = installation.search_path();
        let (npm, node) = (Tool::find("npm", search_path)?, Tool::find("node", search_path)?);
        let scope = package.name.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
        let keys = ["registry", "cafile"].into_iter().chain(scope.as_deref());
        let output = npm
            .call()
            .args(["config", "get"])
            .args(keys)
            .env("PATH", search_path)
            .env("HOME", &installation.settings.user_home)
            .env("npm_config_update_notifier", "false")
            .env("npm_config_logs_max", "0")
            .checked()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let registry =
            scope.and_then(|scope| value_of(&said, &scope)).or_else(|| value_of(&said, "registry"));
        let registry = registry.unwrap_or_default();
        let host = host_of(&registry).ok_or_else(|| InstallError::Registry(shown(&registry)))?;
        let cafile = value_of(&said, "cafile").map(PathBuf::from);
        let mut dirs: Vec<PathBuf> = Vec::new();
        for tool in [npm.path(), node.path()] {
            let real = std::fs::canonicalize(tool).unwrap_or_else(|_| tool.to_owned());
            for path in [tool, real.as_path()] {
                dirs.extend(path.parent().map(Path::to_owned));
            }
        }
        let mut mounts: Vec<Mount> = Vec::new();
        // One that lies in a place of its own has its libraries beside its directory of programs.
        let own = dirs.iter().filter(|dir| !dir.starts_with(SYSTEM) && !dir.starts_with("/bin"));
        let homes = own.filter_map(|dir| dir.parent()).map(Path::to_owned).chain(cafile.clone());
        for place in homes.filter(|place| !place.starts_with(SYSTEM) && !place.starts_with("/etc/ssl/certs"))
        {
            if !mounts.iter().any(|mount| place.starts_with(&mount.inside)) {
                mounts.push(Mount { host: place.clone(), inside: place });
            }
        }
        Ok(Self { program: npm.path().to_owned(), path: dirs, mounts, registry, host, cafile })
    }
}

/// The value of a key among lines of `key=value`; none where npm has none.
fn value_of(said: &str, key: &str) -> Option<String> {
    let mut lines = said.lines().filter_map(|line| line.split_once('='));
    let (_, value) = lines.find(|(known, _)| known.trim() == key)?;
    let value = value.trim();
    (!matches!(value, "" | "undefined" | "null")).then(|| value.to_owned())
}

/// The host and port of an https address without a user; nothing else is one.
fn host_of(registry: &str) -> Option<String> {
    let rest = registry.strip_prefix("https://")?;
    let authority = rest.split('/').next()?;
    if authority.contains('@') || rest.contains(['?', '#']) {
        return None;
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, TLS),
    };
    let sound = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
    sound.then(|| if port == TLS { host.to_owned() } else { format!("{host}:{port}") })
}

/// An address as a message may show it: without what stands before an `@`.
fn shown(registry: &str) -> String {
    match registry.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => registry.chars().take(200).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_value_or_none() {
        let said = "registry=https://packages.example/?\n@some:registry=undefined\ncafile = null\n";
        assert_eq!(value_of(said, "registry").as_deref(), Some("https://packages.example/?"));
        for none in ["@some:registry", "cafile", "no-such-key"] {
            assert_eq!(value_of(said, none), None, "{none}");
        }
    }

    #[test]
    fn a_registry_is_an_https_address_without_a_user() {
        assert_eq!(host_of("https://packages.example/").as_deref(), Some("packages.example"));
        assert_eq!(host_of("https://packages.example:8443/npm/").as_deref(), Some("packages.example:8443"));
        for bad in [
            "",
            "http://packages.example/",
            "https://",
            "https:///npm",
            "https://user:word@packages.example/",
            "https://packages.example/?a",
            "https://*.example/",
            "https://packages.example:port/",
        ] {
            assert_eq!(host_of(bad), None, "{bad}");
        }
        assert_eq!(shown("https://user:word@packages.example/"), "…@packages.example/");
    }
}
