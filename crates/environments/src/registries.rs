//! The hosts that packages come from, as the operator's own package managers are configured. No credential of theirs is ever part
//! of a result.

mod clients;
mod defaults;
mod inside;
mod url;
mod xml;

use std::collections::BTreeSet;
use std::path::PathBuf;

use herma_core::environment::Registry;

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

/// The configuration of a registry cannot be used.
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
    #[error("the address of the registry `{registry}` in {source_name} is not an https address")]
    Unsupported {
        /// The registry.
        registry: Registry,
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
}

impl RegistryAccess {
    /// Reads how the operator's clients reach a registry.
    pub fn find(registry: Registry, clients: &ClientConfiguration<'_>) -> Result<Self, RegistryError> {
        let row = defaults::row(registry);
        let configured = clients::read(registry, clients);
        let (text, source) =
            configured.url.unwrap_or_else(|| (row.url.to_owned(), "the public default".to_owned()));
        let parse = |text: &str| RegistryUrl::parse(text).map_err(|bad| bad.of(registry, &source));
        let url = parse(&text)?;
        let mut others = Vec::new();
        for (name, text) in &configured.others {
            others.push((name.clone(), parse(text)?));
        }
        // The public registry has its files on hosts of their own; a mirror serves them itself.
        let is_default = RegistryUrl::parse(row.url).is_ok_and(|usual| usual.rule() == url.rule());
        let file_hosts =
            row.file_hosts.iter().filter(|_| is_default).map(|host| (*host).to_owned()).collect();
        let mut notices = Vec::new();
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
