//! Every reason against an application leaves the repository as it is.

use std::fs;
use std::os::unix::fs::symlink;

use super::{IDENTITY, Scene, code};
use crate::kit::{Finished, HOLD, Herma, ON_REPOSITORY, fix_and};

#[test]
fn without_a_terminal_or_the_code_nothing_is_applied() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    let repo = scene.repository.dir.to_str().unwrap();
    for args in [vec!["apply", "last", "--repo", repo], vec!["apply", "--undo", "last"]] {
        let ended = scene.herma.run(&args);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains("only a person at a terminal applies a patch"), "{ended:#?}");
    }
    let mistyped = scene.typing("yes", &[]);
    assert_eq!(mistyped.code, Some(2), "{mistyped:#?}");
    assert!(mistyped.stderr.contains("that is not the code of what is shown"), "{mistyped:#?}");
    // There is no flag that stands for the person.
    let flag = scene.herma.run(&["apply", "last", "--code", &code(&scene.run.bundle)]);
    assert!(flag.stderr.contains("unexpected argument '--code'"), "{flag:#?}");
    assert_eq!(scene.repository.picture(), before);
    assert!(!scene.record().exists());
    scene.applied(&[]);
    let after = scene.repository.picture();
    assert_eq!(scene.typing("no", &["--undo"]).code, Some(2));
    assert_eq!(scene.repository.picture(), after);
}

#[test]
fn inside_a_run_the_command_does_not_exist() {
    let mut scene = Scene::new();
    let id = scene.id();
    scene.herma.set("HERMA_RUN", &id);
    for args in [&[][..], &["--branch", "x"], &["--undo"]] {
        scene.refused(args, 3, "inside a run, where `herma apply` does not exist");
    }
    // In the sandbox of a run the command is refused as well, whatever the variables say.
    let herma = Herma::new();
    let steps = [
        "- shell: '/herma/herma apply last; echo code $?'",
        "- shell: 'env -u HERMA_RUN -u HERMA_SOCKET -u HERMA_WORKSPACE /herma/herma apply --undo last; echo code $?'",
    ];
    let finished = herma.play(&fix_and(&steps), &[]);
    finished.assert_pass();
    assert_eq!(finished.engine_said().matches("code 3").count(), 2, "{}", finished.engine_said());
}

#[test]
fn a_moved_base_is_refused_and_the_same_files_in_another_commit_are_not() {
    let scene = Scene::new();
    fs::write(scene.repository.dir.join("other"), "of somebody else\n").unwrap();
    scene.repository.commit("another file");
    scene.refused(&[], 3, "the base has moved");
    scene.refused(&["--branch", "late"], 3, "the base has moved");
    fs::remove_file(scene.repository.dir.join("other")).unwrap();
    scene.repository.commit("without it again");
    scene.applied(&["--branch", "same-files"]);
}

#[test]
fn changes_of_the_person_are_never_overwritten() {
    let new_file = fix_and(&["- shell: mkdir tests/new && echo 1 > tests/new/file"]);
    let scene = Scene::with(&new_file, &ON_REPOSITORY, |_| {});
    let at = |path: &str| scene.repository.dir.join(path);
    let original = fs::read(at("slugify.sh")).unwrap();
    let git = |args: &[&str]| scene.repository.git(args);

    fs::write(at("slugify.sh"), "slugify() { echo mine; }\n").unwrap();
    scene.refused(&[], 3, "`slugify.sh` (it has local changes");
    git(&["add", "slugify.sh"]);
    scene.refused(&[], 3, "`slugify.sh` (it has staged changes)");
    // Staged only: the work tree has the content of the base.
    fs::write(at("slugify.sh"), &original).unwrap();
    scene.refused(&[], 3, "`slugify.sh` (it has staged changes)");
    git(&["reset", "-q"]);
    fs::remove_file(at("slugify.sh")).unwrap();
    scene.refused(&[], 3, "`slugify.sh` (it is gone)");
    symlink("elsewhere.sh", at("slugify.sh")).unwrap();
    scene.refused(&[], 3, "`slugify.sh` (it has local changes");
    fs::remove_file(at("slugify.sh")).unwrap();
    fs::write(at("slugify.sh"), &original).unwrap();

    fs::create_dir(at("tests/new")).unwrap();
    fs::write(at("tests/new/file"), "untracked\n").unwrap();
    scene.refused(&[], 3, "`tests/new/file` (an untracked file has this name)");
    fs::remove_dir_all(at("tests/new")).unwrap();
    fs::write(at("tests/new"), "a file where a directory must be\n").unwrap();
    scene.refused(&[], 3, "`tests/new/file` (a part of its path is a link or a file)");
    fs::remove_file(at("tests/new")).unwrap();
    // A link on the way would lead the file out of the repository.
    fs::create_dir(scene.herma.at("outside")).unwrap();
    symlink(scene.herma.at("outside"), at("tests/new")).unwrap();
    scene.refused(&[], 3, "`tests/new/file` (a part of its path is a link or a file)");
    assert!(fs::read_dir(scene.herma.at("outside")).unwrap().next().is_none());
    fs::remove_file(at("tests/new")).unwrap();

    // A change that the patch does not touch is no obstacle, and stays.
    fs::write(at("notes"), "mine\n").unwrap();
    fs::write(at(".gitignore"), "ignored\n").unwrap();
    scene.applied(&[]);
    assert_eq!(fs::read_to_string(at("notes")).unwrap(), "mine\n");
    scene.refused(&[], 3, "is already applied");
    scene.refused(&["--branch", "too"], 3, "is already applied");

    fs::write(at("tests/new/file"), "edited since\n").unwrap();
    scene.refused(&["--undo"], 3, "`tests/new/file` (its content or kind is another one)");
    fs::write(at("tests/new/file"), "1\n").unwrap();
    fs::write(at("tests/new/beside"), "mine\n").unwrap();
    scene.applied(&["--undo"]);
    assert!(!at("tests/new/file").exists(), "the file of the patch is gone");
    assert_eq!(fs::read_to_string(at("tests/new/beside")).unwrap(), "mine\n");
    assert_eq!(fs::read(at("slugify.sh")).unwrap(), original);
}

#[test]
fn a_directory_with_untracked_files_is_not_replaced_by_a_file() {
    let terms = [&ON_REPOSITORY[..], &[("allowed_paths", "[\"**\"]")]].concat();
    let script = fix_and(&["- shell: rm -r turns && echo now > turns"]);
    let scene = Scene::with(&script, &terms, |dir| {
        fs::create_dir(dir.join("turns")).unwrap();
        fs::write(dir.join("turns/a"), "a").unwrap();
    });
    fs::write(scene.repository.dir.join("turns/mine"), "mine").unwrap();
    scene.refused(&[], 3, "the untracked `turns/mine` is in its place");
}

fn run_of(scene: &Scene, finished: &Finished) -> crate::kit::Ended {
    let (id, repo) = (finished.report.run_id.to_string(), scene.repository.dir.to_str().unwrap());
    scene.herma.run_typing(&code(&finished.bundle), &["apply", &id, "--repo", repo])
}

#[test]
fn only_a_verified_pass_on_a_repository_is_applied() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    let failed = scene.herma.play("breaks-test", &ON_REPOSITORY);
    let ended = run_of(&scene, &failed);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("is not a verified pass: its verdict is fail"), "{ended:#?}");

    let fixture = scene.herma.demo(&[]);
    let ended = run_of(&scene, &fixture);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("its target is a fixture"), "{ended:#?}");

    // A byte of the patch that is not the signed one.
    let patch = scene.run.bundle.dir.join("patch.diff");
    let sound = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, sound.replace("tr -cs", "rm -rf")).unwrap();
    scene.refused(&[], 3, "is not a verified pass: ");
    fs::write(&patch, sound).unwrap();
    assert_eq!(scene.repository.picture(), before);
    scene.applied(&[]);
}

#[test]
fn the_work_of_a_child_run_is_applied_with_its_parent_only() {
    let scene = Scene::new();
    let child = crate::kit::contract_text(&[
        ("id", "the-child"),
        ("target", "{ repo: . }"),
        ("limits", "{ total: 30s, idle: 30s }"),
    ]);
    let script = format!(
        "steps:\n  - write: {{ path: /tmp/child.md, text: {child:?} }}\n  \
         - write: {{ path: /tmp/child.yaml, text: {:?} }}\n  \
         - shell: /herma/herma run /tmp/child.md --script /tmp/child.yaml\n",
        fix_and(&[])
    );
    let (contract, script) = (scene.herma.contract(&ON_REPOSITORY), scene.herma.script(&script));
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let ended = scene.herma.run(&args);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let is_child =
        |run: &herma_core::RunId| scene.herma.bundle(*run).report().contract_id.as_str() == "the-child";
    let run = scene.herma.runs().into_iter().find(is_child).unwrap();
    let bundle = scene.herma.bundle(run);
    let repo = scene.repository.dir.to_str().unwrap();
    let refused = scene.herma.run_typing(&code(&bundle), &["apply", &run.to_string(), "--repo", repo]);
    assert_eq!(refused.code, Some(3), "{refused:#?}");
    assert!(refused.stderr.contains("it is a child run"), "{refused:#?}");
}

#[test]
fn a_repository_on_which_something_critical_depends_is_refused() {
    let scene = Scene::new();
    let path = scene.repository.dir.canonicalize().unwrap();
    let draft = ["admit", "target", "theirs", "--path", path.to_str().unwrap(), "--owner", "me"];
    let drafted = scene.herma.run(&[&draft[..], &["--risk-class", "critical"]].concat());
    assert_eq!(drafted.code, Some(0), "{drafted:#?}");
    scene.refused(&[], 3, "is protected: its admission names a risk class that is not low");
    scene.refused(&["--branch", "b"], 3, "is protected");
}

#[test]
fn names_that_cannot_be_a_new_branch_are_refused() {
    let scene = Scene::new();
    for name in ["a..b", "-b", "herma/x", "herma", "HEAD", "a b", "@{-1}", "a.lock"] {
        let flag = format!("--branch={name}");
        scene.refused(&[&flag], 2, "cannot be the name of a new branch");
    }
    scene.repository.git(&["branch", "there"]);
    scene.refused(&["--branch", "there"], 3, "the ref `refs/heads/there` is there already");
    scene.refused(&["--branch", "there/below"], 3, "the ref `refs/heads/there` is there already");
    assert!(!scene.record().exists());
    fs::remove_file(scene.herma.at("user/.gitconfig")).unwrap();
    scene.refused(&["--branch", "b"], 2, "git knows no name and email");
    scene.herma.file("user/.gitconfig", IDENTITY);
    scene.applied(&["--branch", "b"]);
}

#[test]
fn while_a_result_may_land_in_the_repository_nothing_is_applied() {
    let (herma, owned) = Herma::with_target(&[]);
    herma.file("user/.gitconfig", IDENTITY);
    let place = format!("{{ repo: ../{}/repo }}", crate::kit::SECRET_PLACE);
    let script = fix_and(&[]);
    let contract =
        herma.file("contracts/three.md", crate::kit::contract_text(&[("target", &place), ("stage", "3")]));
    let script = herma.file("three.yaml", script);
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let run = herma.finished(&args);
    run.assert_pass();
    let (id, repo) = (run.report.run_id.to_string(), owned.repository.dir.to_str().unwrap().to_owned());
    let apply = || herma.run_typing(&code(&run.bundle), &["apply", &id, "--repo", &repo]);

    herma.approve();
    herma.script(&fix_and(&[HOLD]));
    let landing = herma.under_way();
    let ended = apply();
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("of stage 5 is under way: a landing and `herma apply` exclude each other"));
    let landed = landing.go_on();
    landed.assert_pass();
    // A result that landed is on a branch of its own.
    let id = landed.report.run_id.to_string();
    let ended = herma.run_typing(&code(&landed.bundle), &["apply", &id, "--repo", &repo]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("it landed on a branch of its own"), "{ended:#?}");
    assert_eq!(apply().code, Some(0));
}

/// Another process holds the lock of landings.
#[test]
fn the_lock_of_landings_is_respected() {
    let scene = Scene::new();
    let lock = fs::File::create(scene.herma.home().join("landing.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    scene.refused(&[], 3, "a result is landing now");
    scene.refused(&["--branch", "b"], 3, "a result is landing now");
    drop(lock);
    scene.applied(&[]);
}
