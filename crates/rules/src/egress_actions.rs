//! Classifies a denied connection of an engine by its host.
//!
//! TLS hides the request. A host that only takes uploads has one meaning; a code forge or a package registry serves
//! readers too, and a denied connection to it proves no push. So the second kind counts as a forbidden action only
//! if the contract names the action: its author then wants no connection to such hosts at all.

use herma_core::contract::{Action, Terms};

/// Hosts, and what is done there.
pub(crate) struct EgressHost {
    /// The host, or what every host below ends with, after a `*`.
    pub(crate) hosts: &'static [&'static str],
    /// The possible actions.
    pub(crate) actions: &'static [Action],
    /// Whether nothing else can.
    pub(crate) nothing_else: bool,
}

/// Every host that means something. The first that fits counts.
pub(crate) const EGRESS_HOSTS: &[EgressHost] = &[
    EgressHost {
        hosts: &["upload.pypi.org", "uploads.github.com", "upload.rubygems.org"],
        actions: &[Action::PublicPublication],
        nothing_else: true,
    },
    EgressHost {
        hosts: &[
            "github.com",
            "*.github.com",
            "gitlab.com",
            "*.gitlab.com",
            "bitbucket.org",
            "*.bitbucket.org",
            "codeberg.org",
            "*.codeberg.org",
            "git.sr.ht",
            "dev.azure.com",
            "*.visualstudio.com",
        ],
        actions: &[Action::Push, Action::PrOpen, Action::IssueClose],
        nothing_else: false,
    },
    EgressHost {
        hosts: &[
            "registry.npmjs.org",
            "crates.io",
            "pypi.org",
            "test.pypi.org",
            "rubygems.org",
            "registry-1.docker.io",
            "ghcr.io",
            "central.sonatype.com",
            "api.nuget.org",
            "www.nuget.org",
        ],
        actions: &[Action::PublicPublication],
        nothing_else: false,
    },
];

/// The actions that a connection to this host may mean. It proves nothing.
#[must_use]
pub fn possible_at(host: &str) -> &'static [Action] {
    host_entry(host).map_or(&[], |place| place.actions)
}

/// The forbidden actions that a denied attempt to reach this host counts as.
#[must_use]
pub fn attempted_at(terms: &Terms, host: &str) -> Vec<Action> {
    let Some(place) = host_entry(host) else { return Vec::new() };
    if place.nothing_else {
        return crate::actions::forbidden(terms, place.actions);
    }
    place.actions.iter().copied().filter(|action| terms.forbidden_actions.contains(action)).collect()
}

fn host_entry(host: &str) -> Option<&'static EgressHost> {
    let host = host.to_ascii_lowercase();
    let fits = |listed: &&'static str| match listed.strip_prefix('*') {
        Some(end) => host.len() > end.len() && host.ends_with(end),
        None => host == **listed,
    };
    EGRESS_HOSTS.iter().find(|place| place.hosts.iter().any(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(actions: &str) -> Terms {
        let text = format!(
            "---\nid: a\ntitle: b\ntarget: {{ fixture: c }}\nstage: 2\nallowed_paths: [d]\nforbidden_actions: {actions}\n---\ne\n"
        );
        herma_core::Contract::parse(text.as_bytes()).unwrap().terms
    }

    #[test]
    fn a_host_that_takes_uploads_only_is_an_attempt_whatever_the_contract_says() {
        assert_eq!(attempted_at(&terms("[]"), "upload.pypi.org"), [Action::PublicPublication]);
        assert_eq!(attempted_at(&terms("[]"), "UPLOADS.github.com"), [Action::PublicPublication]);
    }

    #[test]
    fn a_forge_serves_readers_too_and_counts_only_where_the_contract_names_the_action() {
        for host in ["github.com", "api.github.com", "gitlab.com", "ssh.github.com", "bitbucket.org"] {
            assert_eq!(attempted_at(&terms("[]"), host), [], "{host}");
            assert_eq!(attempted_at(&terms("[push]"), host), [Action::Push], "{host}");
            assert!(possible_at(host).contains(&Action::Push), "{host}");
        }
        assert_eq!(attempted_at(&terms("[push]"), "registry.npmjs.org"), []);
        assert_eq!(
            attempted_at(&terms("[public_publication]"), "registry.npmjs.org"),
            [Action::PublicPublication]
        );
    }

    #[test]
    fn a_name_that_only_looks_like_one_of_them_means_nothing() {
        for host in [
            "notgithub.com",
            "github.com.example",
            "githubXcom",
            "example.org",
            "",
            ".github.com.",
            "1.2.3.4",
        ] {
            assert_eq!(possible_at(host), [], "{host}");
            assert_eq!(attempted_at(&terms("[push, public_publication]"), host), [], "{host}");
        }
    }
}
