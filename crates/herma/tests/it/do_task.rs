//! `herma do`: a contract from flags and defaults.

use std::fs;

use herma_core::{Blocker, Status};
use serde_json::Value;

use crate::kit::{Finished, Herma, Repository, fix_and};

const TASK: &str = "slugify keeps outer whitespace";

/// A repository in which detection finds something, with files that git does not know.
fn repository(herma: &Herma) -> Repository {
    let repository = Repository::of_fixture(herma, "string-slugify");
    fs::create_dir_all(repository.dir.join(".herma/contracts")).unwrap();
    fs::write(repository.dir.join(".herma/contracts/first.md"), "a draft\n").unwrap();
    fs::write(repository.dir.join("notes.txt"), "mine\n").unwrap();
    repository
}

/// The flags that the fixture needs.
const FLAGS: [&str; 6] =
    ["--engine", "fake", "--allow", "slugify.sh", "--verify", "sh tests/slugify_test.sh"];

fn do_it(herma: &Herma, more: &[&str]) -> Finished {
    let (repo, script) = (herma.at("repo"), herma.script(&fix_and(&[])));
    let given =
        ["do", TASK, "--json", "--repo", repo.to_str().unwrap(), "--script", script.to_str().unwrap()];
    herma.finished(&[&given[..], more].concat())
}

fn refused(herma: &Herma, more: &[&str]) -> (String, String) {
    let repo = herma.at("repo");
    let given = ["do", TASK, "--json", "--repo", repo.to_str().unwrap()];
    let ended = herma.run(&[&given[..], more].concat());
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    herma.assert_no_run();
    let failure: Value = ended.json();
    let text = |key: &str| failure[key].as_str().unwrap_or_default().to_owned();
    (text("error"), text("next_step"))
}

#[test]
fn a_task_becomes_a_contract_and_the_target_stays_as_it_is() {
    let herma = Herma::new();
    let repository = repository(&herma);
    let before = repository.picture();
    let run = do_it(&herma, &[&FLAGS[..], &["--limit", "total=5m", "--limit", "idle=60s"]].concat());
    run.assert_pass();
    assert_eq!(repository.picture(), before);
    assert_eq!(run.changed(), ["slugify.sh"]);
    let expected = "---\nid: do-slugify-keeps-outer-whitespace\ntitle: \"slugify keeps outer whitespace\"\n\
        target: { repo: \"./repo\" }\nstage: 3\nallowed_paths: [\"slugify.sh\"]\n\
        verify: [\"sh tests/slugify_test.sh\"]\nlimits: { total: 5m, startup: 1m, idle: 1m }\n---\n\
        slugify keeps outer whitespace\n";
    assert_eq!(run.bundle.text("contract.md"), expected);
}

#[test]
fn a_person_sees_the_contract_the_change_and_the_ways_to_take_it() {
    let herma = Herma::new();
    repository(&herma);
    let (repo, script) = (herma.at("repo"), herma.script(&fix_and(&[])));
    let given = ["do", TASK, "--repo", repo.to_str().unwrap(), "--script", script.to_str().unwrap()];
    let shown = herma.run(&[&given[..], &FLAGS].concat());
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    assert!(shown.stderr.contains("  allowed_paths: [\"slugify.sh\"]\n"), "{shown:#?}");
    let run = herma.runs()[0].short();
    for line in [
        " slugify.sh | ".to_owned(),
        " 1 file changed, +".to_owned(),
        format!("  herma apply {run} "),
        format!("  herma show {run} "),
    ] {
        assert!(shown.stdout.contains(&line), "{line}: {shown:#?}");
    }
    // A script keeps no session.
    assert!(!shown.stdout.contains("--continue") && !shown.stdout.contains("discard"), "{shown:#?}");
    let tried = herma.run(&[&given[..], &FLAGS, &["--dry-run"]].concat());
    assert_eq!(tried.code, Some(0), "{tried:#?}");
    assert_eq!(herma.runs().len(), 1);
}

#[test]
fn only_changes_of_tracked_files_block() {
    let herma = Herma::new();
    let repository = repository(&herma);
    fs::write(repository.dir.join("README.md"), "changed\n").unwrap();
    do_it(&herma, &FLAGS).assert_only(Blocker::DirtyStartingTree);
}

#[test]
fn what_is_missing_is_named_with_the_flag_for_it() {
    let herma = Herma::new();
    let repository = repository(&herma);
    let (error, next) = refused(&herma, &[]);
    assert_eq!(error, "no engine is chosen");
    assert!(next.contains("herma quickstart") && next.contains("--engine NAME"), "{next}");
    let (error, next) = refused(&herma, &["--engine", "cluade"]);
    assert_eq!(error, "herma has no engine `cluade`");
    assert!(next.starts_with("did you mean `claude`?"), "{next}");
    let (error, next) = refused(&herma, &["--engine", "claude"]);
    assert_eq!(error, "the engine `claude` needs a model, and none is chosen");
    assert!(next.starts_with("no model is admitted"), "{next}");
    repository.git(&["rm", "-rq", "tests", "slugify.sh"]);
    let (error, next) = refused(&herma, &["--engine", "fake"]);
    assert_eq!(error, "no path that may change is known");
    assert!(next.contains("--allow GLOB"), "{next}");
    let (error, next) = refused(&herma, &["--engine", "fake", "--allow", "x"]);
    assert_eq!(error, "no verification command is known");
    assert!(next.contains("--verify CMD"), "{next}");
    let outside = herma.at("contracts");
    let ended = herma.run(&["do", TASK, "--repo", outside.to_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("is not in a git repository"), "{ended:#?}");
}

#[test]
fn settings_choose_the_engine_of_do_and_of_no_other_command() {
    let herma = Herma::new();
    repository(&herma);
    let settings = "do:\n  engine: fake\n  destination: host\n  limits: { total: 7m }\n";
    fs::write(herma.marked_home().join("settings.yaml"), settings).unwrap();
    let run = do_it(&herma, &FLAGS[2..]);
    run.assert_pass();
    assert!(run.bundle.text("contract.md").contains("limits: { total: 7m,"));
    assert_eq!(run.report.destination.as_str(), "host");
    fs::write(herma.home().join("settings.yaml"), "do:\n  engine: claude\n").unwrap();
    let other = herma.play(&fix_and(&[]), &[]);
    assert_eq!(other.report.engine.as_str(), "fake");
    fs::write(herma.home().join("settings.yaml"), "do:\n  engin: claude\n").unwrap();
    let ended = herma.run(&["runs"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("engin") && ended.stderr.contains('2'), "{ended:#?}");
}

#[test]
fn a_repository_narrows_at_its_base_and_widens_nothing() {
    let herma = Herma::new();
    let repository = repository(&herma);
    let file = repository.dir.join(".herma/defaults.yaml");
    fs::write(&file, "allowed_paths: [\"**\"]\n").unwrap();
    // Only the committed file is read.
    do_it(&herma, &FLAGS).assert_pass();
    fs::remove_dir_all(herma.home().join("runs")).unwrap();

    let narrowed = "forbidden_paths: [slugify.sh]\nverify: [test -e README.md]\nlimits: { total: 3m }\n";
    fs::write(&file, narrowed).unwrap();
    repository.commit("defaults");
    let run = do_it(&herma, &FLAGS);
    assert_eq!(run.report.status, Status::Fail);
    assert!(run.report.blockers.iter().any(|record| record.blocker == Blocker::DisallowedFile), "{run:#?}");
    let contract = run.bundle.text("contract.md");
    assert!(contract.contains("forbidden_paths: [\"slugify.sh\"]\n"), "{contract}");
    assert!(contract.contains("limits: { total: 3m,"), "{contract}");
    fs::remove_dir_all(herma.home().join("runs")).unwrap();

    for (text, place, why) in [
        ("allowed_paths:\n  - tests/**\n  - docs/**\n", "3:5", "`docs/**` is not within the allowed paths"),
        ("limits: { total: 21m }\n", "1:18", "`limits.total` is 21m, and the limit is 20m"),
        ("environment: { registries: [npm] }\n", "1:29", "the registry `npm` adds hosts"),
        ("engine: claude\n", "1:9", "the engine `claude` is not enabled"),
        ("model: a/b\n", "1:8", "the model `a/b` is not admitted"),
        ("egress: [example.org]\n", "1:1", "unknown key `egress`"),
    ] {
        fs::write(&file, text).unwrap();
        repository.commit(why);
        let (error, _) = refused(&herma, &["--verify", "true"]);
        let place = format!(".herma/defaults.yaml:{place}: ");
        assert!(error.starts_with(&place) && error.contains(why), "{text}: {error}");
    }
}

#[test]
fn inside_a_run_nothing_is_done() {
    let mut herma = Herma::new();
    repository(&herma);
    herma.set("HERMA_RUN", "01234567-0000-7000-8000-000000000000");
    let ended = herma.run(&["do", TASK]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    herma.assert_no_run();
}

#[test]
fn a_file_that_git_does_not_know_decides_nothing() {
    let herma = Herma::new();
    let repository = repository(&herma);
    let manifest = r#"{"name":"x","scripts":{"test":"echo untracked"}}"#;
    let contract = || {
        let args = ["do", TASK, "--repo", "repo", "--engine", "fake", "--allow", "slugify.sh", "--dry-run"];
        herma.run(&args)
    };
    let without = contract();
    fs::write(repository.dir.join("package.json"), manifest).unwrap();
    fs::write(repository.dir.join("package-lock.json"), r#"{"lockfileVersion":3,"packages":{}}"#).unwrap();
    let untracked = contract();
    assert_eq!((untracked.code, untracked.stderr), (without.code, without.stderr));
    repository.commit("a manifest");
    let tracked = contract();
    assert!(tracked.stderr.contains("verify: [\"npm test\"]"), "{tracked:#?}");
}
