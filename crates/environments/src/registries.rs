//! The hosts that packages come from, as the operator's own package managers are configured. No credential of theirs is ever part
//! of a result.

mod clients;
mod defaults;
mod inside;
mod url;
mod xml;

use std::collections::BTreeSet;
use std::path::PathBuf;

use herma_core::Digest;
use herma_core::environment::Registry;
use herma_evidence::secrets::scan;
use serde::Serialize;

use crate::tools::HostEnvironment;

pub use inside::{ConfigFile, Phase};
pub use url::RegistryUrl;

/// Where the configuration of package managers is read.
#[derive(Clone, Debug)]
pub struct ClientConfiguration<'a> {
    /// The operator's home and variables.
    pub host: &'a HostEnvironment,
    /// The directory of system-wide configuration, `/etc`.
    pub etc: PathBuf,
    /// The registries that may be at addresses of the operator's own network.
    pub own_network: BTreeSet<Registry>,
}

/// A registry: its addresses, and what to know about it before a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryAccess {
    /// Which one.
    pub registry: Registry,
    /// The address that clients use.
    pub url: RegistryUrl,
    /// Other addresses: extra indexes and scoped registries, each with the name that the client knows it by.
    pub others: Vec<(String, RegistryUrl)>,
    /// Hosts that serve files for it, as egress rules.
    pub file_hosts: Vec<String>,
    /// Where the address was read.
    pub source: String,
    /// Sentences for the operator: a registry that needs a credential, or is not encrypted.
    pub notices: Vec<String>,
    /// Whether it may be at an address of the operator's own network.
    pub own_network: bool,
    /// Client settings without an address, such as `GOSUMDB`.
    pub(crate) settings: Vec<(String, String)>,
}

/// The configuration of a registry cannot be used. No variant repeats a text of it, which may hold a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The address has a user or a token in it.
    #[error(
        "the address of the registry `{registry}` in {source_name} has a credential in it: herma passes none to a build; \
         configure the registry without one"
    )]
    Credential {
        /// The registry.
        registry: Registry,
        /// Where it is configured.
        source_name: String,
    },
    /// It is not an http or https address.
    #[error(
        "the address of the registry `{registry}` in {source_name} is not an https address: herma can reach no other; \
         configure one"
    )]
    Unsupported {
        /// The registry.
        registry: Registry,
        /// Where it is configured.
        source_name: String,
    },
    /// A file of the client's configuration is there and cannot be read.
    #[error(
        "the registry `{registry}` is unknown, because {source_name} cannot be read: {reason}; repair the file or remove it"
    )]
    Unreadable {
        /// The registry.
        registry: Registry,
        /// The file.
        source_name: String,
        /// Why it cannot be read.
        reason: String,
    },
    /// The client downloads nothing.
    #[error(
        "GOPROXY=off in {source_name} forbids downloads: set GOPROXY to the address of a module proxy, or remove `go` from \
         `registries`"
    )]
    DownloadsForbidden {
        /// Where it is configured.
        source_name: String,
    },
    /// The client asks the repository of each module.
    #[error(
        "GOPROXY=direct in {source_name} downloads each module from its own repository, so that herma cannot know the hosts: \
         set GOPROXY to the address of a module proxy"
    )]
    UnknownHosts {
        /// Where it is configured.
        source_name: String,
    },
    /// Crates do not come from a registry.
    #[error(
        "crates come from {kind} in {source_name}, not from a registry: remove the replacement of crates-io, or remove \
         `crates` from `registries`"
    )]
    NoRegistry {
        /// A directory, a git repository or a source that is not defined.
        kind: &'static str,
        /// Where it is configured.
        source_name: String,
    },
}

/// The part of a client's configuration that concerns a registry.
#[derive(Clone, Debug, Default)]
struct Configured {
    /// The address of the registry itself, and where it was read.
    url: Option<(String, String)>,
    others: Vec<(String, String)>,
    /// Hosts for which the client has a credential.
    credential_hosts: Vec<String>,
    settings: Vec<(String, String)>,
    notices: Vec<String>,
}

/// Everything of a registry that decides what a fetch leaves.
#[derive(Serialize)]
struct Identity {
    registry: Registry,
    rules: Vec<String>,
    phases: [PhaseIdentity; 2],
}

#[derive(Serialize)]
struct PhaseIdentity {
    variables: Vec<(String, String)>,
    files: Vec<(PathBuf, String)>,
}

impl RegistryAccess {
    /// Reads how the operator's clients reach a registry.
    pub fn find(registry: Registry, clients: &ClientConfiguration<'_>) -> Result<Self, RegistryError> {
        let row = defaults::row(registry);
        let configured = clients::read(registry, clients)?;
        let (text, source) =
            configured.url.unwrap_or_else(|| (row.url.to_owned(), "the public default".to_owned()));
        let parse = |text: &str| RegistryUrl::parse(text).map_err(|bad| bad.of(registry, &source));
        let url = parse(&text)?;
        let mut others = Vec::new();
        for (name, text) in &configured.others {
            others.push((name.clone(), parse(text)?));
        }
        // A token can be a part of the path, or the whole value of a setting.
        let texts =
            std::iter::once(&text).chain(pairs(&configured.others)).chain(pairs(&configured.settings));
        if texts.into_iter().any(|text| !scan(text.as_bytes()).is_empty()) {
            return Err(RegistryError::Credential { registry, source_name: source });
        }
        // The public registry has its files on hosts of their own; a mirror serves them itself.
        let is_default = RegistryUrl::parse(row.url).is_ok_and(|usual| usual.rule() == url.rule());
        let file_hosts =
            row.file_hosts.iter().filter(|_| is_default).map(|host| (*host).to_owned()).collect();
        let mut notices = configured.notices;
        for known in std::iter::once(&url).chain(others.iter().map(|(_, url)| url)) {
            if configured.credential_hosts.iter().any(|host| known.host() == host) {
                notices.push(format!(
                    "the registry `{registry}` at {} may need a credential, which a build does not get",
                    known.host()
                ));
            }
            if !known.is_encrypted() && registry != Registry::Debian {
                notices.push(format!("the registry `{registry}` at {} is not encrypted", known.host()));
            }
        }
        let own_network = clients.own_network.contains(&registry);
        let settings = configured.settings;
        Ok(Self { registry, url, others, file_hosts, source, notices, own_network, settings })
    }

    /// The digest of everything that decides what a fetch leaves: its rules, variables and files in both phases.
    pub(crate) fn digest(&self) -> Result<Digest, serde_json::Error> {
        // The port of the proxy decides nothing, and differs between destinations.
        let phases = [Phase::Fetch { proxy_port: Some(0) }, Phase::Offline].map(|phase| {
            let files = self.files(phase).into_iter().map(|file| (file.path, file.content)).collect();
            PhaseIdentity { variables: self.variables(phase, None), files }
        });
        let identity = Identity { registry: self.registry, rules: self.rules(), phases };
        Ok(Digest::of(&serde_json_canonicalizer::to_vec(&identity)?))
    }

    /// The names of its hosts.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let own = std::iter::once(&self.url).chain(self.others.iter().map(|(_, url)| url));
        let name = |host: &String| {
            let host = host.strip_prefix("http://").unwrap_or(host);
            host.split(':').next().unwrap_or(host).to_owned()
        };
        own.map(|url| url.host().to_owned()).chain(self.file_hosts.iter().map(name)).collect()
    }

    /// The egress rules for it.
    #[must_use]
    pub fn rules(&self) -> Vec<String> {
        let own = std::iter::once(&self.url).chain(self.others.iter().map(|(_, url)| url));
        let mut rules: Vec<String> =
            own.map(RegistryUrl::rule).chain(self.file_hosts.iter().cloned()).collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

fn pairs(list: &[(String, String)]) -> impl Iterator<Item = &String> {
    list.iter().flat_map(|(name, value)| [name, value])
}
