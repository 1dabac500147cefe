//! Errors that a newcomer meets: each is brought about, and the whole message is compared. The advice has to fit the cause.

use std::fs;

use crate::kit::{ANSWERS, Ended, Finished, Herma, MODEL, ON_REPOSITORY, ROUTER, Repository, fix_and};

/// The blockers of a run, as people read them.
fn blockers(finished: &Finished) -> String {
    let records = finished.report.blockers.iter();
    let texts: Vec<String> = records
        .map(|record| format!("{}: {}\nnext: {}\n", record.blocker, record.detail, record.next_step))
        .collect();
    texts.concat()
}

/// The message of a command that failed, without the place of this test.
fn said(herma: &Herma, ended: &Ended, code: i32) -> String {
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    ended.stderr.replace(herma.at("").to_str().unwrap(), "[DIR]/")
}

#[test]
fn a_mistyped_engine_is_one_line_and_no_run() {
    let herma = Herma::new();
    let contract = herma.contract(&[]);
    let ended = herma.run(&["run", contract.to_str().unwrap(), "--engine", "cluade"]);
    herma.assert_no_run();
    insta::assert_snapshot!(said(&herma, &ended, 2));
}

#[test]
fn a_missing_contract_and_a_directory_are_named() {
    let herma = Herma::new();
    let ended = herma.run(&["run", "nowhere.md"]);
    insta::assert_snapshot!("missing", said(&herma, &ended, 2));
    let ended = herma.run(&["run", "contracts"]);
    insta::assert_snapshot!("directory", said(&herma, &ended, 2));
}

#[test]
fn fake_without_a_script_names_the_agents() {
    let herma = Herma::new();
    Repository::of_fixture(&herma, "string-slugify");
    let contract = herma.contract(&ON_REPOSITORY);
    let ended = herma.run(&["run", contract.to_str().unwrap()]);
    insta::assert_snapshot!(said(&herma, &ended, 2));
}

#[test]
fn without_bubblewrap_the_package_is_named() {
    let mut herma = Herma::new();
    let bin = herma.at("bin");
    fs::create_dir(&bin).unwrap();
    let git = std::env::split_paths(&crate::kit::environment("PATH"))
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    std::os::unix::fs::symlink(git, bin.join("git")).unwrap();
    herma.set("PATH", &bin);
    insta::assert_snapshot!(blockers(&herma.play(&fix_and(&[]), &[])));
}

#[test]
fn a_changed_file_of_the_target_is_named() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    fs::write(repository.dir.join("README.md"), "changed\n").unwrap();
    fs::write(repository.dir.join("notes.txt"), "untracked\n").unwrap();
    insta::assert_snapshot!(blockers(&herma.play(&fix_and(&[]), &ON_REPOSITORY)));
}

#[test]
fn a_wrong_key_is_called_one() {
    let herma = Herma::with_model("name: locked\nrepeat: true\nmodels: [m]\nturns: [{ error: 401 }]\n");
    insta::assert_snapshot!(blockers(&herma.play(&fix_and(&[]), &[MODEL])));
}

#[test]
fn a_model_without_an_admission_names_the_command() {
    let herma = Herma::new();
    herma.configure(ROUTER, ANSWERS);
    insta::assert_snapshot!(blockers(&herma.play(&fix_and(&[]), &[MODEL])));
}

#[test]
fn a_limit_in_dollars_without_a_price_names_the_price() {
    let herma = Herma::with_model(ANSWERS);
    let router = ROUTER.split("[prices]").next().unwrap();
    herma.configure(router, ANSWERS);
    let limits = ("limits", "{ total: 2m, usd: 1.00 }");
    insta::assert_snapshot!(blockers(&herma.play(&fix_and(&[]), &[MODEL, limits])));
}

#[test]
fn a_small_budget_says_what_is_needed() {
    let herma = Herma::with_model(ANSWERS);
    let limits = ("limits", "{ total: 2m, tokens: 10 }");
    let finished = herma.play(&fix_and(&[]), &[MODEL, limits]);
    assert!(!finished.report.engine_started);
    // The need is counted in bytes of the request, which may change.
    let text = blockers(&finished);
    let (before, rest) = text.split_once("it needs at least ").unwrap();
    let (number, after) = rest.split_once(" tokens").unwrap();
    assert!(number.parse::<u64>().unwrap() > 10, "{text}");
    insta::assert_snapshot!(format!("{before}it needs at least [N] tokens{after}"));
}

#[test]
fn an_agent_that_says_nothing_timed_out() {
    let herma = Herma::new();
    let limits = ("limits", "{ total: 2m, startup: 10s, idle: 1s }");
    insta::assert_snapshot!(
        "idle_after_a_patch",
        blockers(&herma.play(&fix_and(&["- sleep: 30s"]), &[limits]))
    );
    insta::assert_snapshot!(
        "idle_without_a_patch",
        blockers(&herma.play("steps:\n  - sleep: 30s\n", &[limits]))
    );
}

#[test]
fn a_provider_that_fails_is_named_and_not_the_engine() {
    let script = "name: busy\nmatch: { marker: be busy }\nmodels: [m]\nturns: [{ error: 500 }]\n";
    let herma = Herma::with_model(ANSWERS);
    herma.configure(&ROUTER.replace("\"answers.yaml\"", "\"busy.yaml\", \"answers.yaml\""), ANSWERS);
    fs::write(herma.home().join("busy.yaml"), script).unwrap();
    let steps = ["- ask: { prompt: be busy, must: true }", "- exit: 1"];
    insta::assert_snapshot!(blockers(&herma.play(&fix_and(&steps), &[MODEL])));
}

#[test]
fn nothing_is_signed_before_there_is_somebody_to_sign() {
    let herma = Herma::new();
    let args = ["admit", "model", "rehearsal/m", "--network", "loopback", "--credential-source", "none"];
    let drafted = herma.run(&[&args[..], &["--review-trigger", "herma_version=0.1"]].concat());
    assert_eq!(drafted.code, Some(0), "{drafted:#?}");
    let ended = herma.run(&["admit", "sign", "model", "rehearsal/m"]);
    assert_eq!(ended.stdout, "", "no code is asked for");
    insta::assert_snapshot!(said(&herma, &ended, 2));
}

#[test]
fn models_are_never_an_empty_page() {
    let herma = Herma::new();
    let router = ROUTER.split("[models.m]").next().unwrap();
    herma.configure(router, ANSWERS);
    let shown = herma.run(&["models"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    insta::assert_snapshot!(shown.stdout);
}

#[test]
fn a_contract_check_knows_what_is_admitted_here() {
    let herma = Herma::with_model(ANSWERS);
    let check = |terms: &[(&str, &str)]| {
        let contract = herma.contract(terms);
        let shown = herma.run(&["contract", "check", contract.to_str().unwrap()]);
        assert_eq!(shown.code, Some(0), "{shown:#?}");
        let blocks: Vec<String> =
            shown.stdout.lines().filter(|line| line.contains("would block")).map(str::to_owned).collect();
        blocks.join("\n")
    };
    insta::assert_snapshot!("admitted", check(&[MODEL]));
    insta::assert_snapshot!("not_admitted", check(&[("model", "{ provider: other, model: x }")]));
    insta::assert_snapshot!("no_model", check(&[]));
}
