//! Concurrent changes that block a landing, and that none of them is lost.

use std::fs;

use herma_git::{LandError, LandState, Landing, Unlanded};

use crate::kit::{Scene, git_in};
use crate::landing_kit::{CHANGES, RUN, Target, files};

/// A change by another user between the preparation and the landing, in a repository with the branch `main` and a
/// tag `v1`.
type Meddling = (&'static str, Option<&'static str>, fn(&Target), &'static str);

const MEDDLING: &[Meddling] = &[
    ("a commit", None, |t| commit(t), "moved refs/heads/main"),
    ("a reset", None, |t| drop(t.git(&["reset", "-q", "--hard", "HEAD~1"])), "moved refs/heads/main"),
    (
        "the base branch is gone",
        Some("side"),
        |t| drop(t.git(&["branch", "-D", "side"])),
        "moved refs/heads/side",
    ),
    (
        "the tag moved",
        Some("v1"),
        |t| drop(t.git(&["tag", "-f", "-a", "-m", "x", "v1", "older"])),
        "moved refs/tags/v1",
    ),
    (
        "the same tag, made again",
        Some("v1"),
        |t| drop(t.git(&["tag", "-f", "-a", "-m", "y", "v1"])),
        "moved refs/tags/v1",
    ),
    (
        "a ref of that name",
        None,
        |t| drop(t.git(&["update-ref", &t.landing.reference, "HEAD"])),
        "taken refs/heads/herma/<run>",
    ),
    ("the same commit", None, |t| bring_commit(t), "taken refs/heads/herma/<run>"),
    (
        "a symbolic ref of that name",
        None,
        |t| drop(t.git(&["symbolic-ref", &t.landing.reference, "refs/heads/main"])),
        "taken refs/heads/herma/<run>",
    ),
    ("a packed ref of that name", None, |t| packed(t), "taken refs/heads/herma/<run>"),
    ("a branch `herma`", None, |t| drop(t.git(&["branch", "herma"])), "taken refs/heads/herma"),
    (
        "a branch below",
        None,
        |t| drop(t.git(&["update-ref", &format!("{}/x", t.landing.reference), "HEAD"])),
        "taken refs/heads/herma/<run>/x",
    ),
];

fn commit(target: &Target) {
    fs::write(target.repo().join("README.md"), "somebody's work\n").unwrap();
    target.git(&["commit", "-qam", "somebody's work"]);
}

fn bring_commit(target: &Target) {
    let from = target.home.path().join("git");
    git_in(&from, &["update-ref", "refs/heads/out", &target.landing.commit]);
    let to = format!("refs/heads/out:{}", target.landing.reference);
    target.git(&["fetch", "-q", from.to_str().unwrap(), &to]);
}

fn packed(target: &Target) {
    target.git(&["update-ref", &target.landing.reference, "HEAD"]);
    target.git(&["pack-refs", "--all"]);
}

fn target(base: Option<&str>) -> Target {
    let scene = Scene::with_repo();
    let repo = scene.repo();
    git_in(&repo, &["branch", "-M", "main"]);
    git_in(&repo, &["branch", "older"]);
    fs::write(repo.join("src/main.c"), "int other;\n").unwrap();
    git_in(&repo, &["commit", "-qam", "second"]);
    git_in(&repo, &["tag", "-a", "-m", "x", "v1"]);
    git_in(&repo, &["branch", "side"]);
    Target::of(scene, "repo", base, CHANGES)
}

#[test]
fn concurrent_changes_block_the_landing_and_are_not_lost() {
    for (what, base, meddle, expected) in MEDDLING {
        let mut target = target(*base);
        meddle(&target);
        target.git(&["status"]);
        target.before = files(target.scene.dir.path());
        let state = target.source.capture().unwrap();
        let error = target.source.land(&target.git_dir, &target.landing).unwrap_err();
        let found = match &error {
            LandError::BaseMoved { reference } => format!("moved {reference}"),
            LandError::RefTaken { reference } => format!("taken {reference}"),
            LandError::NotPlain(_) | LandError::Rejected { .. } | LandError::Git(_) => {
                panic!("{what}: {error:?}")
            }
        };
        assert_eq!(found, expected.replace("<run>", RUN), "{what}");
        let blocked = error.to_string();
        assert!(!blocked.contains(target.scene.dir.path().to_str().unwrap()), "{what}: {blocked}");
        target.assert_as_before();
        assert_eq!(target.source.capture().unwrap(), state, "{what}");
        target.fsck();
    }
}

#[test]
fn a_detached_head_must_not_move_and_a_branch_need_not_be_checked_out() {
    let scene = Scene::with_repo();
    git_in(&scene.repo(), &["checkout", "-q", "--detach"]);
    let detached = Target::of(scene, "repo", None, CHANGES);
    commit(&detached);
    let error = detached.source.land(&detached.git_dir, &detached.landing).unwrap_err();
    assert!(matches!(&error, LandError::BaseMoved { reference } if reference == "HEAD"), "{error:?}");

    let elsewhere = target(None);
    elsewhere.git(&["checkout", "-q", "older"]);
    elsewhere.land();
}

#[test]
fn a_base_that_moves_at_the_last_moment_refuses_everything() {
    // A refusal in git's own transaction that the earlier check could not see: simulated by a lock.
    let mut target = target(None);
    fs::write(target.repo().join(".git/refs/heads/main.lock"), "").unwrap();
    target.before = files(target.scene.dir.path());
    let error = target.source.land(&target.git_dir, &target.landing).unwrap_err();
    assert!(matches!(error, LandError::Rejected { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("main.lock"), "{said}");
    assert!(!said.contains(target.scene.dir.path().to_str().unwrap()), "{said}");
    target.assert_as_before();
    fs::remove_file(target.repo().join(".git/refs/heads/main.lock")).unwrap();
    target.land();
    assert_eq!(target.source.landed(&target.landing).unwrap(), LandState::Ours);
}

/// A lock that somebody's git gives back in time is waited for.
#[test]
fn a_lock_that_is_released_in_time_delays_the_landing() {
    let target = target(None);
    let lock = target.repo().join(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            fs::remove_file(&lock).unwrap();
        });
        target.land();
    });
    assert_eq!(target.source.landed(&target.landing).unwrap(), LandState::Ours);
}

#[test]
fn a_base_that_keeps_moving_is_never_landed_on() {
    let target = target(None);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (base, older) = (target.landing.base.clone(), target.git(&["rev-parse", "older"]));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for id in [older.trim(), &base] {
                    // The landing may hold the lock; a person would try again.
                    let tool = herma_destination::Tool::find("git", "/usr/local/bin:/usr/bin:/bin".as_ref())
                        .unwrap();
                    let args = ["update-ref", "refs/heads/main", id];
                    drop(tool.call().cwd(target.repo()).args(args).output().unwrap());
                }
            }
        });
        let mut landed = 0;
        for _ in 0..60 {
            match target.source.land(&target.git_dir, &target.landing) {
                Ok(()) => {
                    landed += 1;
                    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
                }
                Err(LandError::RefTaken { reference }) => panic!("{reference}"),
                Err(_) => assert_eq!(target.source.landed(&target.landing).unwrap(), LandState::Absent),
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(landed < 60, "it was refused at least once");
    });
    assert!(!target.pack_file("idx").exists() && !target.pack_file("pack").exists());
    target.fsck();
}

#[test]
fn a_landing_that_was_tampered_with_is_refused() {
    let target = target(None);
    let tamper: &[fn(&mut Landing)] = &[
        |l| l.pack = "../../config".to_owned(),
        |l| l.pack = "pack-x".to_owned(),
        |l| l.reference = "refs/heads/main".to_owned(),
        |l| l.reference = "refs/heads/herma/".to_owned(),
        |l| l.reference = "refs/heads/herma/../main".to_owned(),
        |l| l.commit = format!("{}\ndelete refs/heads/main", l.commit),
        |l| l.base_ref.as_mut().unwrap().name = "refs/heads/main\ndelete refs/heads/main".to_owned(),
    ];
    for tamper in tamper {
        let mut landing = target.landing.clone();
        tamper(&mut landing);
        assert!(target.source.land(&target.git_dir, &landing).is_err(), "{landing:?}");
        assert!(target.source.unland(&landing).is_err(), "{landing:?}");
        target.assert_as_before();
    }
}
