//! Taking a landing back when others have used what it brought, and when it was cut off.

use std::fs::{self, File};

use herma_git::{LandState, SourceRepo, Unlanded};

use crate::kit::{Scene, git_in};
use crate::landing_kit::{CHANGES, Target, files};

/// A way to depend on the objects, and its reversal.
type Use = (&'static str, fn(&Target), fn(&Target));

const USES: &[Use] = &[
    (
        "a branch off the commit",
        |t| drop(t.git(&["branch", "mine", &t.landing.commit])),
        |t| {
            t.git(&["branch", "-D", "mine"]);
        },
    ),
    (
        "a tag of a blob",
        |t| drop(t.git(&["tag", "mine", &format!("{}:new/file", t.landing.commit)])),
        |t| {
            t.git(&["tag", "-d", "mine"]);
        },
    ),
    (
        "a note in a reflog",
        |t| {
            t.git(&["branch", "mine", &t.landing.commit]);
            t.git(&["branch", "-f", "mine", "HEAD"]);
        },
        |t| drop(t.git(&["branch", "-D", "mine"])),
    ),
    (
        "a staged file of the same content",
        |t| stage(&t.repo(), t),
        |t| drop(t.git(&["reset", "-q", "--hard"])),
    ),
    (
        "a staged file in another work tree",
        |t| {
            t.git(&["worktree", "add", "-q", "--detach", "../second"]);
            stage(&t.scene.dir.path().join("second"), t);
        },
        |t| drop(t.git(&["worktree", "remove", "--force", "../second"])),
    ),
    (
        "a detached HEAD in another work tree",
        |t| {
            t.git(&["worktree", "add", "-q", "--detach", "../second", &t.landing.commit]);
        },
        |t| drop(t.git(&["worktree", "remove", "--force", "../second"])),
    ),
    (
        "a ref of another work tree only",
        |t| {
            t.git(&["worktree", "add", "-q", "--detach", "../second"]);
            git_in(
                &t.scene.dir.path().join("second"),
                &["update-ref", "refs/worktree/mine", &t.landing.commit],
            );
        },
        |t| drop(t.git(&["worktree", "remove", "--force", "../second"])),
    ),
    (
        "a merge under way",
        |t| {
            fs::write(t.repo().join(".git/MERGE_HEAD"), format!("{}\n", t.landing.commit)).unwrap();
        },
        |t| fs::remove_file(t.repo().join(".git/MERGE_HEAD")).unwrap(),
    ),
    (
        "a rebase under way in another work tree",
        |t| {
            t.git(&["worktree", "add", "-q", "--detach", "../second"]);
            let notes = t.repo().join(".git/worktrees/second/rebase-merge");
            fs::create_dir(&notes).unwrap();
            fs::write(notes.join("orig-head"), format!("{}\n", t.landing.commit)).unwrap();
        },
        |t| drop(t.git(&["worktree", "remove", "--force", "../second"])),
    ),
    (
        "a pack that somebody keeps",
        |t| fs::write(t.pack_file("keep"), "").unwrap(),
        |t| {
            fs::remove_file(t.pack_file("keep")).unwrap();
        },
    ),
    (
        "an index over all packs",
        |t| drop(t.git(&["multi-pack-index", "write"])),
        |t| {
            fs::remove_file(t.repo().join(".git/objects/pack/multi-pack-index")).unwrap();
        },
    ),
    (
        "a commit graph",
        |t| drop(t.git(&["commit-graph", "write", "--reachable"])),
        |t| {
            fs::remove_file(t.repo().join(".git/objects/info/commit-graph")).unwrap();
        },
    ),
    (
        "split commit graphs",
        |t| drop(t.git(&["commit-graph", "write", "--reachable", "--split"])),
        |t| {
            fs::remove_dir_all(t.repo().join(".git/objects/info/commit-graphs")).unwrap();
        },
    ),
];

fn stage(work_tree: &std::path::Path, target: &Target) {
    fs::write(work_tree.join("mine"), CHANGES[1].1).unwrap();
    git_in(work_tree, &["add", "mine"]);
    forget_use(target);
}

/// Sets the pack's time back, so that only reachability shows that it is in use.
fn forget_use(target: &Target) {
    let time = fs::metadata(target.pack_file("idx")).unwrap().modified().unwrap();
    File::open(target.pack_file("pack")).unwrap().set_modified(time).unwrap();
}

#[test]
fn objects_that_other_refs_need_stay_until_unreachable() {
    for (what, lean, let_go) in USES {
        let target = Target::new();
        target.land();
        lean(&target);
        assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::ObjectsKept, "{what}");
        assert_eq!(target.source.landed(&target.landing).unwrap(), LandState::Absent, "{what}");
        assert!(target.pack_file("pack").exists(), "{what}");
        target.fsck();
        let_go(&target);
        assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace, "{what}");
        assert!(!target.pack_file("pack").exists() && !target.pack_file("idx").exists(), "{what}");
        target.fsck();
    }
}

#[test]
fn a_commit_of_somebody_else_keeps_the_contents_that_it_shares() {
    let target = Target::new();
    target.land();
    fs::write(target.repo().join("mine"), CHANGES[1].1).unwrap();
    target.git(&["add", "mine"]);
    target.git(&["commit", "-qm", "mine"]);
    forget_use(&target);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::ObjectsKept);
    target.fsck();
    assert_eq!(target.git(&["show", "HEAD:mine"]), CHANGES[1].1);
}

#[test]
fn objects_hidden_by_a_graft_or_shallow_file_are_kept() {
    for file in ["info/grafts", "shallow"] {
        let target = Target::new();
        target.land();
        // Only links to parents lead to what was brought, and the first of them is hidden.
        let on = |parent: &str| {
            target.git(&["commit-tree", "-m", "mine", "-p", parent, "HEAD^{tree}"]).trim().to_owned()
        };
        let theirs = on(&on(&target.landing.commit));
        target.git(&["update-ref", "refs/heads/mine", &theirs]);
        let hiding = target.repo().join(".git").join(file);
        let parents = if file == "shallow" { String::new() } else { format!(" {}", target.landing.base) };
        fs::create_dir_all(hiding.parent().unwrap()).unwrap();
        fs::write(&hiding, format!("{theirs}{parents}\n")).unwrap();
        assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::ObjectsKept, "{file}");
        fs::remove_file(hiding).unwrap();
        target.fsck();
        assert_eq!(target.git(&["rev-parse", "mine~2"]).trim(), target.landing.commit, "{file}");
    }
}

#[test]
fn a_landing_that_is_refused_leaves_nothing_in_a_shallow_repository_either() {
    let mut target = Target::new();
    fs::write(target.repo().join(".git/shallow"), format!("{}\n", target.landing.base)).unwrap();
    fs::write(target.repo().join(".git/HEAD.lock"), "").unwrap();
    let branch = target.git(&["symbolic-ref", "HEAD"]);
    fs::write(target.repo().join(format!(".git/{}.lock", branch.trim())), "").unwrap();
    target.before = files(target.scene.dir.path());
    assert!(target.source.land(&target.git_dir, &target.landing).is_err());
    target.assert_as_before();
}

#[test]
fn grafts_and_replaced_objects_are_not_believed() {
    let scene = Scene::with_repo();
    fs::write(scene.repo().join("README.md"), "second\n").unwrap();
    git_in(&scene.repo(), &["commit", "-qam", "second"]);
    let [commit, first] =
        ["HEAD", "HEAD~1"].map(|name| git_in(&scene.repo(), &["rev-parse", name]).trim().to_owned());
    git_in(&scene.repo(), &["replace", &commit, &first]);
    fs::write(scene.repo().join(".git/info/grafts"), format!("{commit}\n")).unwrap();
    let open = |base: &str| SourceRepo::open(&scene.git, &scene.repo(), "../repo", Some(base)).unwrap();
    assert_eq!(open("HEAD~1").base_commit(), first);
    let (git_dir, baseline) = open("HEAD").make_git_dir(&scene.dir.path().join("own")).unwrap();
    let entries = git_dir.entries(&baseline.tree).unwrap();
    let root = scene.make("out");
    herma_git::lay_out(&git_dir, &entries, &[&root]).unwrap();
    assert_eq!(fs::read_to_string(root.join("README.md")).unwrap(), "second\n");
}

#[test]
fn an_object_that_somebody_wrote_but_has_not_named_yet_is_kept() {
    let target = Target::new();
    target.land();
    let own = target.home.path().join("own");
    fs::write(&own, CHANGES[1].1).unwrap();
    let id = target.git(&["hash-object", "-w", own.to_str().unwrap()]);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::ObjectsKept);
    assert_eq!(target.git(&["cat-file", "blob", id.trim()]), CHANGES[1].1);
}

#[test]
fn an_old_content_that_git_keeps_only_in_the_new_pack_is_kept() {
    let scene = Scene::with_repo();
    fs::write(scene.repo().join("README.md"), "second\n").unwrap();
    git_in(&scene.repo(), &["commit", "-qam", "second"]);
    let target = Target::of(scene, "repo", None, &[("README.md", "hello\n")]);
    target.land();
    // git's own housekeeping removes a loose object that a pack has too.
    target.git(&["prune-packed"]);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::ObjectsKept);
    target.fsck();
    assert_eq!(target.git(&["show", "HEAD~1:README.md"]), "hello\n");
}

#[test]
fn objects_that_git_repacked_are_left_to_git() {
    let target = Target::new();
    target.land();
    target.git(&["gc", "-q"]);
    assert!(!target.pack_file("pack").exists());
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::ObjectsKept);
    target.fsck();
    target.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
    target.fsck();
}

#[test]
fn a_packed_ref_is_taken_back_too() {
    let target = Target::new();
    let refs = target.source.ref_list().unwrap();
    target.land();
    target.git(&["pack-refs", "--all"]);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
    assert_eq!(target.source.ref_list().unwrap(), refs);
    target.fsck();
}

#[test]
fn a_ref_that_somebody_moved_is_theirs() {
    let target = Target::new();
    target.land();
    let tree = format!("{}^{{tree}}", target.landing.commit);
    let theirs = target.git(&["commit-tree", "-m", "on top", "-p", &target.landing.commit, &tree]);
    target.git(&["update-ref", &target.landing.reference, theirs.trim()]);
    let before = files(target.scene.dir.path());
    let moved = LandState::Theirs(theirs.trim().to_owned());
    assert_eq!(target.source.landed(&target.landing).unwrap(), moved);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::RefMoved(theirs.trim().to_owned()));
    assert_eq!(files(target.scene.dir.path()), before);
    target.fsck();
}

#[test]
fn a_branch_that_is_checked_out_stays() {
    let target = Target::new();
    target.land();
    let branch = target.landing.reference.strip_prefix("refs/heads/").unwrap();
    target.git(&["worktree", "add", "-q", "../second", branch]);
    let before = files(target.scene.dir.path());
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::CheckedOut);
    assert_eq!(files(target.scene.dir.path()), before);
    target.git(&["worktree", "remove", "../second"]);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
}

#[test]
fn a_landing_that_was_cut_off_is_taken_back_from_any_point() {
    let cuts: &[fn(&Target)] = &[
        // Before anything was written.
        |_| {},
        // In the middle of the first file, of the second, and after the last.
        |t| fs::write(unfinished(t, "pack"), "PACK").unwrap(),
        |t| {
            fs::write(t.pack_file("pack"), "PACK").unwrap();
            fs::write(unfinished(t, "idx"), "half").unwrap();
        },
        |t| {
            t.land();
            t.git(&["update-ref", "-d", &t.landing.reference]);
        },
        // git had made the ref's directory.
        |t| fs::create_dir(t.repo().join(".git/refs/heads/herma")).unwrap(),
        // While it was taken back: the index was gone first.
        |t| {
            t.land();
            t.git(&["update-ref", "-d", &t.landing.reference]);
            fs::remove_file(t.pack_file("idx")).unwrap();
        },
    ];
    for cut in cuts {
        let target = Target::new();
        cut(&target);
        assert_eq!(target.source.landed(&target.landing).unwrap(), LandState::Absent);
        assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
        target.assert_as_before();
        // And what was cut off can be begun again.
        cut(&target);
        target.land();
        target.fsck();
        assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
        target.assert_as_before();
    }
}

fn unfinished(target: &Target, extension: &str) -> std::path::PathBuf {
    target.repo().join(format!(".git/objects/pack/tmp_herma_{}.{extension}", target.landing.pack))
}

#[test]
fn a_landing_comes_back_from_disk_as_it_was() {
    let target = Target::new();
    let json = serde_json::to_string(&target.landing).unwrap();
    assert_eq!(serde_json::from_str::<herma_git::Landing>(&json).unwrap(), target.landing);
    let more = json.replacen('{', "{\"other\":1,", 1);
    assert!(serde_json::from_str::<herma_git::Landing>(&more).is_err());
}
