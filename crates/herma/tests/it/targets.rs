//! Every fixture, a repository as target, and another user: the runs that must pass, and what they leave untouched.

use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;
use std::path::Path;

use herma_core::contract::Toolchain;
use herma_core::{Blocker, Status};

use crate::kit::{
    CONTRACT, Herma, ON_REPOSITORY, ON_TARGET, Owned, Repository, assert_unplaced, environment,
    everything_below, fix_and, run_tool,
};

#[test]
fn every_fixture_is_fixed_in_the_sandbox() {
    let mut herma = Herma::new();
    // rustup finds its toolchains by the user's real home.
    herma.set("HOME", environment("HOME"));
    for fixture in herma_fixtures::all() {
        let run = herma.demo(&["--fixture", fixture.name, "--destination", "sandbox"]);
        run.assert_pass();
        assert!(run.report.verification.iter().all(|check| check.exit_code == Some(0)), "{}", fixture.name);
    }
}

#[test]
fn every_fixture_that_needs_only_a_shell_is_fixed_on_the_host() {
    let herma = Herma::new();
    let plain: Vec<_> = herma_fixtures::all().iter().filter(|f| f.toolchains.is_empty()).collect();
    assert!(plain.len() >= 6, "at least six need only sh and git");
    for fixture in plain {
        herma.demo(&["--fixture", fixture.name, "--destination", "host"]).assert_pass();
    }
}

#[test]
fn there_is_a_fixture_for_each_toolchain() {
    for toolchain in [Toolchain::Python, Toolchain::Rust] {
        assert!(herma_fixtures::all().iter().any(|fixture| fixture.toolchains == [toolchain]));
    }
}

#[test]
fn no_fixture_is_green_before_its_fix() {
    let mut herma = Herma::new();
    herma.set("HOME", environment("HOME"));
    let script = herma.file("idle.yaml", "steps: [{ say: nothing to do }]");
    for fixture in herma_fixtures::all() {
        // Without `require_diff`, so that the untouched tree is verified.
        let text = fixture.contract.replacen("stage: 2\n", "stage: 2\nrequire_diff: false\n", 1);
        assert!(text.contains("require_diff"), "{}", fixture.name);
        let contract = herma.file("contracts/idle.md", text);
        let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
        let run = herma.finished(&args);
        assert_eq!(run.report.status, Status::Fail, "{}: {:#?}", fixture.name, run.report.blockers);
        assert_eq!(run.report.blockers[0].blocker.as_str(), "verification_failed", "{}", fixture.name);
    }
}

/// The state that a person would compare, taken by this test and not by herma.
#[derive(Debug, PartialEq)]
struct Witness {
    head: Vec<u8>,
    refs: String,
    index: Vec<u8>,
    status: String,
    tree: String,
    stash: String,
}

impl Witness {
    fn of(repository: &Repository) -> Self {
        let read = |name: &str| std::fs::read(repository.dir.join(".git").join(name)).unwrap();
        Self {
            head: read("HEAD"),
            refs: repository.git(&["for-each-ref"]),
            index: read("index"),
            status: repository.git(&["status", "--porcelain=v2", "--branch", "--untracked-files=all"]),
            tree: repository.git(&["ls-files", "--stage"]),
            stash: repository.git(&["stash", "list"]),
        }
    }
}

#[test]
fn a_repository_stays_as_it_is_while_its_copy_is_changed() {
    for destination in ["sandbox", "host"] {
        let herma = Herma::new();
        let repository = Repository::of_fixture(&herma, "string-slugify");
        let (witness, picture) = (Witness::of(&repository), repository.picture());
        let terms = [&ON_REPOSITORY[..], &[("destination", destination)]].concat();
        let run = herma.play(&fix_and(&[]), &terms);
        run.assert_pass();
        assert_eq!(run.changed(), ["slugify.sh"]);
        assert_eq!(Witness::of(&repository), witness, "{destination}");
        assert_eq!(repository.picture(), picture, "{destination}");
        let report = &run.report;
        assert_eq!((report.target_clean_start, report.target_clean_end), (Some(true), Some(true)));
        assert_eq!(report.source_mutated, Some(false));
    }
}

#[test]
fn the_patch_of_a_repository_is_tried_on_it_again() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let run = herma.play(&fix_and(&[]), &ON_REPOSITORY);
    let verify = |repo: &Path| {
        let bundle = run.bundle.dir.as_os_str();
        herma.run(&["verify".as_ref(), bundle, "--repo".as_ref(), repo.as_os_str(), "--json".as_ref()])
    };
    let tree_check = |json: serde_json::Value| {
        json["checks"].as_array().unwrap().iter().find(|check| check["name"] == "tree").unwrap().clone()
    };
    let ended = verify(&repository.dir);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_eq!(tree_check(ended.json())["outcome"], "passed");
    // Without the repository it is not checked, and says so.
    let json = herma.json(&["verify".as_ref(), run.bundle.dir.as_os_str(), "--json".as_ref()]);
    assert_eq!(tree_check(json)["outcome"], "not_applicable");
    // The repository goes on, with the patch or without: what the run started from is still there.
    std::fs::write(repository.dir.join("README.md"), "another base\n").unwrap();
    repository.commit("another base");
    let ended = verify(&repository.dir);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_eq!(tree_check(ended.json())["outcome"], "passed");
}

#[test]
fn a_repository_without_the_base_breaks_nothing_and_verifies_nothing() {
    let herma = Herma::new();
    Repository::of_fixture(&herma, "string-slugify");
    let run = herma.play(&fix_and(&[]), &ON_REPOSITORY);
    run.assert_pass();
    let bundle = run.bundle.dir.to_str().unwrap();
    std::fs::remove_dir_all(herma.at("repo/.git")).unwrap();
    let no_repository = herma.run(&["verify", bundle, "--repo", "repo"]);
    assert_eq!(no_repository.code, Some(2), "{no_repository:#?}");
    assert_eq!(herma.run(&["verify", bundle, "--repo", "nowhere"]).code, Some(2));

    run_tool("git", &["init".as_ref(), "-q".as_ref(), herma.at("repo").as_os_str()], &[]);
    let ended = herma.run(&["verify", bundle, "--repo", "repo"]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stdout.contains("tree           NOT CHECKED"), "{ended:#?}");
    assert!(ended.stdout.contains("fetch the commit"), "{ended:#?}");
    assert!(ended.stdout.contains("The bundle is NOT verified"), "{ended:#?}");
    assert!(!ended.stdout.contains("BROKEN"), "{ended:#?}");
    let checks = herma.run(&["verify", bundle, "--repo", "repo", "--json"]).json();
    let odd = |check: &&serde_json::Value| check["outcome"] == "unchecked";
    let unchecked: Vec<_> = checks["checks"].as_array().unwrap().iter().filter(odd).collect();
    assert!(matches!(unchecked[..], [check] if check["name"] == "tree"), "{checks:#}");
    assert_eq!(checks["ok"], false);
}

#[test]
fn the_base_that_a_contract_names_is_the_one_that_is_copied() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    repository.git(&["branch", "old"]);
    std::fs::write(repository.dir.join("tests/slugify_test.sh"), "exit 1\n").unwrap();
    repository.commit("a test that nothing passes");
    let on = |base: &str| {
        let target = format!("{{ repo: ../repo, base: {base} }}");
        herma.play(&fix_and(&[]), &[("target", &target), ("stage", "3")])
    };
    on("old").assert_pass();
    assert_eq!(on("main").report.status, Status::Fail);
    let missing = on("nowhere");
    assert_eq!(missing.report.blockers[0].blocker.as_str(), "target_not_admitted");
}

#[test]
fn a_directory_that_is_no_repository_or_only_a_part_of_one_is_refused() {
    let herma = Herma::new();
    Repository::of_fixture(&herma, "string-slugify");
    for repo in ["../nowhere", "../repo/tests", "../contracts"] {
        let run = herma.play(&fix_and(&[]), &[("target", &format!("{{ repo: {repo} }}")), ("stage", "3")]);
        assert!(!run.report.blockers.is_empty(), "{repo}");
        for record in &run.report.blockers {
            assert_eq!(record.blocker, Blocker::TargetNotAdmitted, "{repo}: {record:#?}");
        }
        assert_eq!(run.ended.code, Some(3), "{repo}");
    }
}

#[test]
fn a_linked_work_tree_is_a_repository_too() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let linked = herma.at("linked");
    repository.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let before = repository.picture();
    herma.play(&fix_and(&[]), &[("target", "{ repo: ../linked }"), ("stage", "3")]).assert_pass();
    assert_eq!(repository.picture(), before);
}

/// How somebody breaks a repository.
type Broken = (&'static str, fn(&Path));

const BROKEN: &[Broken] = &[
    ("a FIFO as a ref", |r| fifo(&r.join(".git/refs/heads/pipe"))),
    ("a FIFO as the index", |r| fifo(&r.join(".git/index"))),
    ("a FIFO of ignore rules", |r| fifo(&r.join(".gitignore"))),
    ("a huge ref", |r| {
        std::fs::File::create(r.join(".git/refs/heads/huge")).unwrap().set_len(1 << 40).unwrap();
    }),
    ("an empty index", |r| std::fs::write(r.join(".git/index"), "").unwrap()),
    ("an index that is a directory", |r| {
        std::fs::remove_file(r.join(".git/index")).unwrap();
        std::fs::create_dir(r.join(".git/index")).unwrap();
    }),
    ("a broken setting", |r| std::fs::write(r.join(".git/config"), "[core").unwrap()),
    ("a missing tree", |r| lose(r, "HEAD:tests", false)),
    ("a missing blob", |r| lose(r, "HEAD:slugify.sh", false)),
    ("an empty blob", |r| lose(r, "HEAD:slugify.sh", true)),
];

fn fifo(path: &Path) {
    drop(std::fs::remove_file(path));
    run_tool("mkfifo", &[path.as_os_str()], &[]);
}

/// Takes an object away, or all that is in it.
fn lose(root: &Path, name: &str, keep_file: bool) {
    let id = Repository { dir: root.to_owned() }.git(&["rev-parse", name]);
    let file = root.join(".git/objects").join(&id[..2]).join(id[2..].trim_end());
    std::fs::remove_file(&file).unwrap();
    if keep_file {
        std::fs::write(file, "").unwrap();
    }
}

#[test]
fn a_broken_repository_does_not_block_and_no_file_shows_its_path() {
    // It holds what might pass for the end of a path.
    const PLACE: &str = "where it's: kept";
    for (what, break_it) in BROKEN {
        let herma = Herma::new();
        let made = Repository::of_fixture(&herma, "string-slugify");
        let repository = Repository { dir: herma.at(PLACE).join("repo") };
        std::fs::create_dir(herma.at(PLACE)).unwrap();
        std::fs::rename(&made.dir, &repository.dir).unwrap();
        // The contract itself names a link, so that nothing but an error could name the place.
        symlink(&repository.dir, herma.at("repo")).unwrap();
        break_it(&repository.dir);
        let run = herma.play(&fix_and(&[]), &ON_REPOSITORY);
        assert_eq!(run.report.status, Status::Blocked, "{what}: {:#?}", run.report.blockers);
        let top = herma.at("");
        let top = top.to_str().unwrap().trim_end_matches('/');
        for place in [PLACE, top] {
            assert!(!format!("{:?}", run.ended).contains(place), "{what}: {:#?}", run.ended);
            for (path, (_, bytes)) in everything_below(&run.bundle.dir) {
                let held = bytes.windows(place.len()).any(|window| window == place.as_bytes());
                assert!(!held, "{what}: {} says {place}: {:#?}", path.display(), run.report.blockers);
            }
        }
    }
}

/// How an admitted repository comes to lie elsewhere, and what is said of it.
type Led = (&'static str, fn(&Owned, &Path), &'static str);

const LED: &[Led] = &[
    (
        "a link in its place",
        |owned, other| {
            std::fs::remove_dir_all(&owned.repository.dir).unwrap();
            symlink(other, &owned.repository.dir).unwrap();
        },
        "symbolic link",
    ),
    (
        "a link above it",
        |owned, other| {
            let above = owned.repository.dir.parent().unwrap();
            std::fs::remove_dir_all(above).unwrap();
            symlink(other.parent().unwrap(), above).unwrap();
        },
        "symbolic link",
    ),
    ("a link as .git", |owned, other| lead(owned, ".git", &other.join(".git")), "`.git` is a symbolic link"),
    (
        "a file as .git",
        |owned, other| {
            let own = owned.repository.dir.join(".git");
            std::fs::remove_dir_all(&own).unwrap();
            std::fs::write(own, format!("gitdir: {}\n", other.join(".git").display())).unwrap();
        },
        "admit the main work tree",
    ),
    (
        "another common directory",
        |owned, other| {
            let own = owned.repository.dir.join(".git/commondir");
            std::fs::write(own, format!("{}\n", other.join(".git").display())).unwrap();
        },
        ".git/commondir",
    ),
    ("packs elsewhere", |owned, other| lead_same(owned, ".git/objects/pack", other), ".git/objects/pack"),
    ("refs elsewhere", |owned, other| lead_same(owned, ".git/refs", other), ".git/refs"),
    (
        "branches elsewhere",
        |owned, other| lead_same(owned, ".git/refs/heads/herma", other),
        "refs/heads/herma",
    ),
];

fn lead(owned: &Owned, name: &str, to: &Path) {
    let own = owned.repository.dir.join(name);
    if own.exists() {
        std::fs::remove_dir_all(&own).unwrap();
    }
    symlink(to, own).unwrap();
}

fn lead_same(owned: &Owned, name: &str, other: &Path) {
    std::fs::create_dir_all(other.join(name)).unwrap();
    lead(owned, name, &other.join(name));
}

#[test]
fn an_admitted_repository_that_leads_elsewhere_is_refused_and_nothing_lands_there() {
    let (herma, owned) = Herma::with_target(&[]);
    herma.approve();
    herma.script(&fix_and(&[]));
    for (what, lead, said) in LED {
        let other = herma.at("critical/repo");
        drop(std::fs::remove_dir_all(herma.at("critical")));
        std::fs::create_dir(herma.at("critical")).unwrap();
        run_tool("cp", &["-a".as_ref(), owned.repository.dir.as_os_str(), other.as_os_str()], &[]);
        lead(&owned, &other);
        let before = everything_below(&herma.at("critical"));
        let run = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]);
        assert_eq!(run.ended.code, Some(3), "{what}: {:#?}", run.ended);
        assert!(!run.report.engine_started, "{what}");
        let found = run.report.blockers.iter().find(|b| b.blocker == Blocker::TargetNotAdmitted);
        assert!(found.is_some_and(|b| b.detail.contains(said)), "{what}: {:#?}", run.report.blockers);
        assert!(everything_below(&herma.at("critical")) == before, "{what}");
        assert_unplaced(&run);
        let above = owned.repository.dir.parent().unwrap();
        if above.is_symlink() {
            std::fs::remove_file(above).unwrap();
            std::fs::create_dir(above).unwrap();
        }
        owned.put_back();
    }
    let run = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]);
    run.assert_pass();
}

#[test]
fn an_admitted_linked_work_tree_is_refused() {
    let herma = Herma::proven(5);
    let owned = Owned::new(&herma);
    herma.admit_target(&owned.repository.dir.with_file_name("linked"), &[]);
    herma.contract(&ON_TARGET);
    herma.script(&fix_and(&[]));
    let before = owned.picture();
    let run = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]);
    assert_eq!(run.ended.code, Some(3), "{:#?}", run.ended);
    let found = run.report.blockers.iter().find(|b| b.blocker == Blocker::TargetNotAdmitted);
    assert!(found.is_some_and(|b| b.detail.contains("main work tree")), "{:#?}", run.report.blockers);
    assert!(owned.picture() == before);
    assert_unplaced(&run);
}

/// A user who is not the one of these tests.
const NOBODY: u32 = 65534;

#[test]
fn a_home_or_a_key_of_somebody_else_is_refused() {
    let herma = Herma::new();
    let bundle = herma.demo(&["--destination", "host"]).bundle;
    let key = herma.home().join("keys/installation.key");
    chown(&key, Some(NOBODY), None).unwrap();
    let ended = herma.run(&["runs"]);
    assert_ne!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stderr.contains("belongs to user 65534"), "{ended:#?}");
    chown(&key, Some(0), None).unwrap();
    assert_eq!(herma.run(&["runs"]).code, Some(0));

    let home = herma.home().display().to_string();
    let refused = |fix: &str| {
        for args in [&["runs".as_ref()][..], &["verify".as_ref(), bundle.dir.as_os_str()]] {
            let ended = herma.run(args);
            assert_eq!(ended.code, Some(2), "{ended:#?}");
            assert!(ended.stderr.contains(&format!("`{fix} {home}`")), "{ended:#?}");
        }
    };
    chown(herma.home(), Some(NOBODY), None).unwrap();
    refused("chown -R 0");
    chown(herma.home(), Some(0), None).unwrap();
    run_tool("chmod", &["g+w".as_ref(), herma.home().as_os_str()], &[]);
    refused("chmod go-w");
    run_tool("chmod", &["go-w".as_ref(), herma.home().as_os_str()], &[]);
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap()) & 0o777;
    assert_eq!(mode(herma.home()), 0o700);
    assert_eq!(mode(&herma.home().join("store.db")), 0o600);
}

#[test]
fn a_normal_user_runs_the_demo_in_the_sandbox() {
    let (herma, user) = Herma::of_normal_user();
    let run = herma.demo(&["--destination", "sandbox"]);
    run.assert_pass();
    let owner = std::os::unix::fs::MetadataExt::uid(&run.bundle.dir.metadata().unwrap());
    assert_eq!(owner, user);
}
