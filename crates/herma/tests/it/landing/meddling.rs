//! Actions of somebody else in a target while a run is under way.

use herma_core::RunId;

use crate::kit::Owned;

/// An action of somebody else in the target while the engine works.
pub(super) struct Meddling {
    pub(super) what: &'static str,
    pub(super) base: Option<&'static str>,
    pub(super) does: fn(&Owned, RunId),
}

fn git(owned: &Owned, args: &[&str]) {
    owned.repository.git(args);
}

pub(super) fn write(owned: &Owned, path: &str, text: &str) {
    std::fs::write(owned.repository.dir.join(path), text).unwrap();
}

/// In the way of the run's own ref.
pub(super) const REFS: &[Meddling] = &[
    Meddling {
        what: "the ref itself",
        base: None,
        does: |owned, run| {
            git(owned, &["update-ref", &format!("refs/heads/herma/{run}"), "refs/heads/feature"]);
        },
    },
    Meddling {
        what: "the ref itself, in the packed refs",
        base: None,
        does: |owned, run| {
            git(owned, &["update-ref", &format!("refs/heads/herma/{run}"), "refs/heads/feature"]);
            git(owned, &["pack-refs", "--all"]);
        },
    },
    Meddling {
        what: "a branch that is called as the directory of the ref",
        base: None,
        does: |owned, _| git(owned, &["update-ref", "refs/heads/herma", "refs/heads/main"]),
    },
    Meddling {
        what: "a ref below the ref",
        base: None,
        does: |owned, run| {
            git(owned, &["update-ref", &format!("refs/heads/herma/{run}/x"), "refs/heads/main"]);
        },
    },
];

/// The base moves.
pub(super) const BASES: &[Meddling] = &[
    Meddling {
        what: "a commit on the branch",
        base: None,
        does: |owned, _| {
            write(owned, "docs/guide.md", "another guide\n");
            owned.repository.commit("meanwhile");
        },
    },
    Meddling {
        what: "a commit on the named base, which is not checked out",
        base: Some("feature"),
        does: |owned, _| git(owned, &["update-ref", "refs/heads/feature", "refs/heads/main"]),
    },
    Meddling {
        what: "the named base is deleted",
        base: Some("loose"),
        does: |owned, _| git(owned, &["branch", "-q", "-D", "loose"]),
    },
    Meddling {
        what: "the named tag is moved",
        base: Some("v2"),
        does: |owned, _| git(owned, &["update-ref", "refs/tags/v2", "refs/heads/main"]),
    },
    Meddling {
        what: "another branch is checked out",
        base: None,
        does: |owned, _| git(owned, &["checkout", "-q", "feature"]),
    },
    Meddling {
        what: "HEAD is detached",
        base: None,
        does: |owned, _| git(owned, &["checkout", "-q", "--detach"]),
    },
];

/// The work tree, the index, or all of it changes.
pub(super) const TREES: &[Meddling] = &[
    Meddling { what: "a file is changed", base: None, does: |owned, _| write(owned, "slugify.sh", "mine\n") },
    Meddling { what: "a new file", base: None, does: |owned, _| write(owned, "new", "mine\n") },
    Meddling {
        what: "a change is staged",
        base: None,
        does: |owned, _| {
            write(owned, "slugify.sh", "mine\n");
            git(owned, &["add", "slugify.sh"]);
        },
    },
    Meddling {
        what: "another stash",
        base: None,
        does: |owned, _| {
            write(owned, "slugify.sh", "mine\n");
            git(owned, &["-c", "user.name=owner", "-c", "user.email=o@herma.invalid", "stash", "-q"]);
        },
    },
    Meddling {
        what: "the target is deleted",
        base: None,
        does: |owned, _| std::fs::remove_dir_all(&owned.repository.dir).unwrap(),
    },
    Meddling {
        what: "its git directory is deleted",
        base: None,
        does: |owned, _| std::fs::remove_dir_all(owned.repository.dir.join(".git")).unwrap(),
    },
];
