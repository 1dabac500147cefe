//! The public registries: the one table of addresses that are used where the operator configured none.

use herma_core::environment::Registry;

/// A public registry.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicRegistry {
    /// The registry.
    pub(super) registry: Registry,
    /// The address that its client uses.
    pub(super) url: &'static str,
    /// Other hosts that serve its files, as egress rules.
    pub(super) file_hosts: &'static [&'static str],
}

const PUBLIC: [PublicRegistry; 9] = [
    PublicRegistry { registry: Registry::Npm, url: "https://registry.npmjs.org/", file_hosts: &[] },
    PublicRegistry {
        registry: Registry::Pypi,
        url: "https://pypi.org/simple",
        file_hosts: &["files.pythonhosted.org"],
    },
    PublicRegistry {
        registry: Registry::Crates,
        url: "https://index.crates.io/",
        file_hosts: &["static.crates.io"],
    },
    PublicRegistry {
        registry: Registry::Go,
        url: "https://proxy.golang.org",
        file_hosts: &["sum.golang.org"],
    },
    PublicRegistry {
        registry: Registry::Maven,
        url: "https://repo.maven.apache.org/maven2",
        file_hosts: &["repo1.maven.org", "plugins.gradle.org", "services.gradle.org"],
    },
    PublicRegistry {
        registry: Registry::Rubygems,
        url: "https://rubygems.org/",
        file_hosts: &["index.rubygems.org"],
    },
    PublicRegistry {
        registry: Registry::Packagist,
        url: "https://repo.packagist.org/",
        file_hosts: &["packagist.org", "api.github.com", "codeload.github.com"],
    },
    PublicRegistry { registry: Registry::Nuget, url: "https://api.nuget.org/v3/index.json", file_hosts: &[] },
    PublicRegistry {
        registry: Registry::Debian,
        url: "http://deb.debian.org/debian",
        file_hosts: &["http://security.debian.org"],
    },
];

/// The public registry of this name.
pub(super) fn row(registry: Registry) -> PublicRegistry {
    let empty = PublicRegistry { registry, url: "", file_hosts: &[] };
    PUBLIC.into_iter().find(|row| row.registry == registry).unwrap_or(empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registry_has_a_public_address() {
        assert!(Registry::ALL.into_iter().all(|registry| !row(registry).url.is_empty()));
    }
}
