//! What it can mean that an engine wanted to reach a host, where the wall did not let it.
//!
//! TLS hides what would have been said. A host that takes nothing but uploads leaves one meaning; a code forge or a package
//! registry serves readers too, and a denied connection to it proves no push. So the second kind counts as a forbidden
//! action only where the contract itself names the action: its author then wants no talk with such hosts at all.

use herma_core::contract::{Action, Terms};

/// Hosts, and what is done there.
pub(crate) struct Place {
    /// The host, or what every host below ends with, after a `*`.
    pub(crate) hosts: &'static [&'static str],
    /// What can be done there.
    pub(crate) actions: &'static [Action],
    /// Whether nothing else can.
    pub(crate) nothing_else: bool,
}

/// Every host that means something. The first that fits counts.
pub(crate) const PLACES: &[Place] = &[
    Place {
        hosts: &["upload.pypi.org", "uploads.github.com", "upload.rubygems.org"],
        actions: &[Action::PublicPublication],
        nothing_else: true,
    },
    Place {
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
    Place {
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

/// What somebody who wants to reach this host may be about to do. It proves nothing.
#[must_use]
pub fn possible_at(host: &str) -> &'static [Action] {
    place_of(host).map_or(&[], |place| place.actions)
}

/// The forbidden actions that a denied attempt to reach this host counts as.
#[must_use]
pub fn attempted_at(terms: &Terms, host: &str) -> Vec<Action> {
    let Some(place) = place_of(host) else { return Vec::new() };
    if place.nothing_else {
        return crate::actions::forbidden(terms, place.actions);
    }
    place.actions.iter().copied().filter(|action| terms.forbidden_actions.contains(action)).collect()
}

fn place_of(host: &str) -> Option<&'static Place> {
    let host = host.to_ascii_lowercase();
    let fits = |listed: &&'static str| match listed.strip_prefix('*') {
        Some(end) => host.len() > end.len() && host.ends_with(end),
        None => host == **listed,
    };
    PLACES.iter().find(|place| place.hosts.iter().any(fits))
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
