//! The interface of the programs that fetch packages from a registry.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use herma_destination::{Mount, View};

/// The directories that every sandbox mounts already.
const SYSTEM: [&str; 3] = ["/usr", "/bin", "/etc/ssl/certs"];
/// The port of TLS.
const TLS: u16 = 443;

/// A program that fetches packages, as the operator has it.
pub(crate) trait Fetcher {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The directories of programs that it needs, for PATH.
    fn path(&self) -> &[PathBuf];

    /// The mounts that it needs.
    fn mounts(&self) -> &[Mount];

    /// The hosts of its registry, as egress rules.
    fn hosts(&self) -> Vec<String>;

    /// Puts the files that are not fetched into the workspace.
    fn lay_out(&self, workspace: &Path) -> io::Result<()> {
        let _ = workspace;
        Ok(())
    }

    /// The command that fetches into the workspace. It runs none of the fetched code.
    fn argv(&self, view: &View, wanted: Vec<String>) -> Vec<OsString>;

    /// Its environment.
    fn env(&self, view: &View) -> Vec<(String, String)>;
}

/// Read-only mounts of these paths, without those that every sandbox has.
pub(crate) fn to_show(places: impl Iterator<Item = PathBuf>) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for place in places.filter(|place| !SYSTEM.iter().any(|seen| place.starts_with(seen))) {
        // The root would be everything.
        if place.parent().is_some() && !mounts.iter().any(|mount| place.starts_with(&mount.inside)) {
            mounts.push(Mount { host: place.clone(), inside: place });
        }
    }
    mounts
}

/// The host and port of an https address without a user; nothing else is one.
pub(crate) fn host_of(registry: &str) -> Option<String> {
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

/// A URL for messages: without user and password.
pub(crate) fn shown(registry: &str) -> String {
    match registry.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => registry.chars().take(200).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_seen_already_is_shown_and_never_everything() {
        let places =
            ["/usr", "/home/me/python", "/home/me/python/lib", "/", "/bin", "/etc/ssl/certs/own.pem"];
        let mounts = to_show(places.into_iter().map(PathBuf::from));
        let own = PathBuf::from("/home/me/python");
        assert_eq!(mounts, [Mount { host: own.clone(), inside: own }]);
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
