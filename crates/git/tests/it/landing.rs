//! The objects and refs that a landing adds to a target, and that undoing it leaves nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::report::Mode;
use herma_git::{GitDir, LandState, NewFile, ObjectFormat, SourceRepo, Unlanded, make_disposable};

use crate::kit::{Scene, git_in, path};
use crate::landing_kit::{CHANGES, RUN, Target, files, result_tree, run};

/// A kind of repository: how it is made of one with a single commit, where it is then, and the contract's base.
type Shape = (&'static str, fn(&Scene) -> &'static str, Option<&'static str>);

const SHAPES: &[Shape] = &[
    ("one commit", |_| "repo", None),
    ("history, tags, packed refs, a stash", |s| with_history(s), None),
    ("history, and the base by name", |s| with_history(s), Some("main")),
    ("history, and the base by an annotated tag", |s| with_history(s), Some("v1")),
    ("history, and the base by a revision", |s| with_history(s), Some("main~1")),
    ("a packed branch in a directory of its own", packed_branch, None),
    ("a tag and a branch of the same name", |s| ambiguous(s), Some("both")),
    ("a remote's default branch", |s| cloned(s), Some("origin")),
    ("a second work tree, landing in the first", |s| with_work_tree(s, "repo"), None),
    ("a second work tree, landing in the second", |s| with_work_tree(s, "second"), None),
    ("a second work tree with a detached HEAD", |s| detached_second(s), None),
    ("a branch without commits is checked out", |s| unborn(s), Some("main")),
    ("a detached HEAD", |s| detached(s), None),
    ("a shallow clone", |s| shallow(s), None),
    ("objects borrowed from another repository", |s| borrowing(s), None),
    ("names by SHA-256", |s| made_with(s, &["init", "-q", "-b", "main", "--object-format=sha256"]), None),
    ("reflogs for every ref, and a keen gc", |s| eager(s), None),
    ("a git directory somewhere else", |s| apart(s), None),
];

fn with_history(scene: &Scene) -> &'static str {
    let repo = scene.repo();
    git_in(&repo, &["branch", "-M", "main"]);
    for n in 0..3 {
        fs::write(repo.join("src/main.c"), format!("int main{n};\n")).unwrap();
        git_in(&repo, &["commit", "-qam", &format!("change {n}")]);
    }
    git_in(&repo, &["tag", "-a", "-m", "one", "v1", "HEAD~1"]);
    git_in(&repo, &["tag", "light"]);
    git_in(&repo, &["branch", "feature/one", "HEAD~2"]);
    git_in(&repo, &["pack-refs", "--all"]);
    git_in(&repo, &["branch", "loose"]);
    fs::write(repo.join("README.md"), "put aside\n").unwrap();
    git_in(&repo, &["stash", "-q"]);
    "repo"
}

fn packed_branch(scene: &Scene) -> &'static str {
    git_in(&scene.repo(), &["checkout", "-q", "-b", "team/topic/one"]);
    git_in(&scene.repo(), &["pack-refs", "--all"]);
    assert!(!scene.repo().join(".git/refs/heads/team").exists());
    "repo"
}

fn ambiguous(scene: &Scene) -> &'static str {
    git_in(&scene.repo(), &["tag", "both"]);
    git_in(&scene.repo(), &["branch", "both"]);
    "repo"
}

fn cloned(scene: &Scene) -> &'static str {
    git_in(scene.dir.path(), &["clone", "-q", "repo", "clone"]);
    "clone"
}

fn with_work_tree(scene: &Scene, which: &'static str) -> &'static str {
    git_in(&scene.repo(), &["worktree", "add", "-q", "-b", "second", "../second"]);
    which
}

fn detached_second(scene: &Scene) -> &'static str {
    git_in(&scene.repo(), &["worktree", "add", "-q", "--detach", "../second"]);
    "second"
}

fn unborn(scene: &Scene) -> &'static str {
    git_in(&scene.repo(), &["branch", "-M", "main"]);
    git_in(&scene.repo(), &["checkout", "-q", "--orphan", "unborn"]);
    "repo"
}

fn detached(scene: &Scene) -> &'static str {
    git_in(&scene.repo(), &["checkout", "-q", "--detach"]);
    "repo"
}

fn shallow(scene: &Scene) -> &'static str {
    with_history(scene);
    let from = format!("file://{}", scene.repo().display());
    git_in(scene.dir.path(), &["clone", "-q", "--depth=1", &from, "shallow"]);
    "shallow"
}

fn borrowing(scene: &Scene) -> &'static str {
    git_in(scene.dir.path(), &["clone", "-q", "--shared", "repo", "borrowing"]);
    "borrowing"
}

fn made_with(scene: &Scene, init: &[&str]) -> &'static str {
    let dir = scene.make("other");
    git_in(&dir, init);
    fs::write(dir.join("README.md"), "hello\n").unwrap();
    git_in(&dir, &["add", "-A"]);
    git_in(&dir, &["commit", "-qm", "first"]);
    "other"
}

/// git has reftable from 2.45 on. An older one cannot open such a target, so there is nothing to land in.
fn knows_reftable(scene: &Scene) -> bool {
    let version = git_in(&scene.make("version"), &["version"]);
    let mut numbers = version.split([' ', '.']).filter_map(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (2, 45)
}

fn eager(scene: &Scene) -> &'static str {
    let settings = [
        ("core.logAllRefUpdates", "always"),
        ("gc.auto", "1"),
        ("gc.autoDetach", "false"),
        ("maintenance.auto", "true"),
    ];
    for (name, value) in settings {
        git_in(&scene.repo(), &["config", name, value]);
    }
    "repo"
}

fn apart(scene: &Scene) -> &'static str {
    git_in(scene.dir.path(), &["init", "-q", "-b", "main", "--separate-git-dir=apart.git", "repo"]);
    "repo"
}

#[test]
fn one_ref_with_one_commit_lands_and_leaves_without_a_trace() {
    for (shape, make, base) in SHAPES {
        let scene = Scene::with_repo();
        let name = make(&scene);
        let root = scene.dir.path().join(name);
        git_in(&root, &["status"]);
        let target = Target::of(scene, name, *base, CHANGES);
        let (source, landing) = (&target.source, &target.landing);
        let refs = source.ref_list().unwrap();
        assert_eq!(source.landed(landing).unwrap(), LandState::Absent, "{shape}");
        for round in 0..2 {
            target.land();
            assert_eq!(source.landed(landing).unwrap(), LandState::Ours, "{shape}");
            assert!(SourceRepo::only_landed(&refs, &source.ref_list().unwrap(), landing), "{shape}");
            assert_eq!(target.state.differences(&source.capture().unwrap()), ["refs"], "{shape}");
            assert_only_these_are_new(&target, shape);
            let told =
                git_in(&root, &["log", "-1", "--format=%P %T%n%an %at %cn %ct%n%B", &landing.reference]);
            let expected = format!(
                "{} {}\nherma 0 herma 0\na title\n\nHerma-Run: {RUN}\n\n",
                source.base_commit(),
                landing.tree
            );
            assert_eq!(told, expected, "{shape}");
            assert_eq!(git_in(&root, &["show", &format!("{}:new/file", landing.commit)]), "brought\n");
            git_in(&root, &["fsck", "--full", "--strict"]);
            assert_eq!(source.unland(landing).unwrap(), Unlanded::NoTrace, "{shape}, round {round}");
            assert_eq!(source.unland(landing).unwrap(), Unlanded::NoTrace, "{shape}, twice");
            target.assert_as_before();
            git_in(&root, &["fsck", "--full", "--strict"]);
        }
    }
}

/// The ref, its directory, and a pack with its index.
fn assert_only_these_are_new(target: &Target, shape: &str) {
    let after = files(target.scene.dir.path());
    assert!(
        target.before.iter().all(|(name, file)| after.get(name) == Some(file)),
        "{shape}: all is as it was"
    );
    let new: Vec<String> = after
        .keys()
        .filter(|name| !target.before.contains_key(*name))
        .map(|name| name.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut expected = vec![format!("{}.idx", target.landing.pack), format!("{}.pack", target.landing.pack)];
    expected.extend(["herma".to_owned(), RUN.to_owned()]);
    let (mut new, mut expected) = (new, expected);
    new.sort();
    expected.sort();
    assert_eq!(new, expected, "{shape}");
}

#[test]
fn a_reftable_target_has_the_same_refs_after_it_was_taken_back() {
    let scene = Scene::new();
    if !knows_reftable(&scene) {
        return;
    }
    let name = made_with(&scene, &["init", "-q", "-b", "main", "--ref-format=reftable"]);
    let target = Target::of(scene, name, None, CHANGES);
    let (source, landing) = (&target.source, &target.landing);
    let root = target.scene.dir.path().join(name);
    let (refs, log) = (source.ref_list().unwrap(), git_in(&root, &["reflog", "show", "HEAD"]));
    target.land();
    assert!(SourceRepo::only_landed(&refs, &source.ref_list().unwrap(), landing));
    assert_eq!(git_in(&root, &["reflog", "show", "HEAD"]), log);
    assert_eq!(source.unland(landing).unwrap(), Unlanded::NoTrace);
    assert_eq!(source.ref_list().unwrap(), refs);
    assert_eq!(git_in(&root, &["reflog", "list"]).lines().collect::<Vec<_>>(), ["HEAD", "refs/heads/main"]);
    git_in(&root, &["fsck", "--full"]);
}

#[test]
fn the_same_result_gives_the_same_commit_and_a_title_cannot_pass_for_a_trailer() {
    let target = Target::new();
    let (source, git_dir, tree) = (&target.source, &target.git_dir, &target.landing.tree);
    assert_eq!(source.prepare_landing(git_dir, tree, run(), "a title").unwrap(), target.landing);
    let title = "fine\n\nHerma-Run: other\u{0}\u{1b}";
    let landing = source.prepare_landing(git_dir, tree, run(), title).unwrap();
    source.land(git_dir, &landing).unwrap();
    let trailers =
        target.git(&["log", "-1", "--format=%(trailers:key=Herma-Run,valueonly)", &landing.commit]);
    assert_eq!(trailers.trim(), RUN);
    assert_eq!(target.git(&["log", "-1", "--format=%s", &landing.commit]), "fine  Herma-Run: other\n");
    assert!(source.prepare_landing(git_dir, "--help", run(), "x").is_err());
}

#[test]
fn a_result_without_a_change_lands_as_a_commit_of_its_own() {
    let target = Target::of(Scene::with_repo(), "repo", None, &[]);
    target.land();
    assert_eq!(target.git(&["rev-list", "--count", &target.landing.commit]), "2\n");
    target.fsck();
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
    target.assert_as_before();
}

#[test]
fn a_result_that_brings_an_old_content_back_leaves_without_a_trace() {
    let scene = Scene::with_repo();
    with_history(&scene);
    git_in(&scene.repo(), &["status"]);
    let target = Target::of(scene, "repo", None, &[("src/main.c", "int main0;\n"), ("copy", "hello\n")]);
    target.land();
    target.fsck();
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
    target.assert_as_before();
    target.fsck();
}

#[test]
fn nothing_that_the_target_has_set_up_runs() {
    let scene = Scene::with_repo();
    let (repo, marker) = (scene.repo(), scene.dir.path().join("marker"));
    let script = |file: &Path| {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let hooks =
        ["reference-transaction", "post-index-change", "pre-commit", "post-commit", "update", "pre-auto-gc"];
    for dir in [repo.join(".git/hooks"), scene.dir.path().join("hooks")] {
        for hook in hooks {
            script(&dir.join(hook));
        }
    }
    script(&scene.dir.path().join("program"));
    let program = scene.dir.path().join("program").display().to_string();
    let hooks = scene.dir.path().join("hooks").display().to_string();
    fs::write(scene.dir.path().join("included"), format!("[core]\n\tfsmonitor = {program}\n")).unwrap();
    let config = format!(
        "[core]\n\thooksPath = {hooks}\n\tfsmonitor = {program}\n\tpager = {program}\n\talternateRefsCommand = {program}\n\
         \tsshCommand = {program}\n\teditor = {program}\n[include]\n\tpath = ../../included\n[gc]\n\tauto = 1\n\
         [alias]\n\tupdate-ref = !{program}\n\trev-list = !{program}\n[receive]\n\tautogc = true\n\
         [gpg]\n\tprogram = {program}\n[commit]\n\tgpgSign = true\n[diff]\n\texternal = {program}\n"
    );
    let own = fs::read_to_string(repo.join(".git/config")).unwrap();
    fs::write(repo.join(".git/config"), own + &config).unwrap();

    let target = Target::of(scene, "repo", None, CHANGES);
    target.land();
    assert_eq!(target.state.differences(&target.source.capture().unwrap()), ["refs"]);
    assert_eq!(target.source.unland(&target.landing).unwrap(), Unlanded::NoTrace);
    target.assert_as_before();
    assert!(!marker.exists());
    target.git(&["branch", "x"]);
    assert!(marker.exists(), "for a person's git it would have run");
}

#[test]
fn a_new_pack_is_as_readable_as_the_others() {
    for mode in [0o755, 0o2770, 0o700] {
        let target = Target::new();
        fs::set_permissions(target.repo().join(".git/objects/pack"), fs::Permissions::from_mode(mode))
            .unwrap();
        target.land();
        for extension in ["pack", "idx"] {
            let found = fs::metadata(target.pack_file(extension)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode & 0o444);
        }
    }
}

#[test]
fn many_runs_land_in_one_target_at_once() {
    let target = Target::new();
    let refs = target.source.ref_list().unwrap();
    let landings: Vec<_> = (0..8)
        .map(|n| {
            let run = format!("01890a5d-ac96-774b-bcce-b302099a80{n:02}").parse().unwrap();
            target.source.prepare_landing(&target.git_dir, &target.landing.tree, run, "same tree").unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        for landing in &landings {
            scope.spawn(|| {
                // Two processes may need git's lock of the base at the same moment; then one gets an error.
                let landed = (0..50).any(|_| target.source.land(&target.git_dir, landing).is_ok());
                assert!(landed, "{}", landing.reference);
            });
        }
    });
    target.fsck();
    let (last, others) = landings.split_last().unwrap();
    for landing in others {
        assert_eq!(target.source.unland(landing).unwrap(), Unlanded::NoTrace);
        target.fsck();
    }
    assert!(SourceRepo::only_landed(&refs, &target.source.ref_list().unwrap(), last));
    assert_eq!(target.source.unland(last).unwrap(), Unlanded::NoTrace);
    target.assert_as_before();
}

#[test]
fn a_disposable_repository_is_an_ordinary_target() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let scene = Scene::new();
        let own = tempfile::tempdir().unwrap();
        let git_dir = GitDir::create(&scene.git, &own.path().join("git"), format, None).unwrap();
        let names: Vec<_> =
            [("README.md", Mode::File), ("bin/run", Mode::Executable), ("link", Mode::Symlink)]
                .into_iter()
                .map(|(name, mode)| (path(name.as_bytes()), mode))
                .collect();
        let new: Vec<_> =
            names.iter().map(|(path, mode)| NewFile { path, mode: *mode, content: b"hello" }).collect();
        let baseline = git_dir.import(&new).unwrap();
        let dir: PathBuf = scene.dir.path().join("disposable");
        let source = make_disposable(&scene.git, &dir, &git_dir, &baseline).unwrap();
        assert!(make_disposable(&scene.git, &dir, &git_dir, &baseline).is_err(), "never over something");
        assert_eq!(source.base_commit(), baseline.commit);
        assert_eq!(
            git_in(&dir, &["for-each-ref", "--format=%(refname) %(objectname)"]),
            format!("refs/heads/main {}\n", baseline.commit)
        );
        assert_eq!(git_in(&dir, &["symbolic-ref", "HEAD"]), "refs/heads/main\n");
        assert_eq!(git_in(&dir, &["remote"]), "");
        assert!(!dir.join(".git/hooks").exists() && !dir.join(".git/objects/info/alternates").exists());

        let (before, state) = (files(&dir), source.capture().unwrap());
        assert!(state.clean);
        let tree = result_tree(&git_dir, &baseline, &own.path().join("workspace"), CHANGES);
        let landing = source.prepare_landing(&git_dir, &tree, run(), "a title").unwrap();
        source.land(&git_dir, &landing).unwrap();
        assert_eq!(state.differences(&source.capture().unwrap()), ["refs"]);
        git_in(&dir, &["fsck", "--full", "--strict"]);
        assert_eq!(source.unland(&landing).unwrap(), Unlanded::NoTrace);
        assert_eq!(files(&dir), before);
    }
}
