//! Runs whose contract has an environment: its files reach the agent and each verification as copies of their own.

use herma_core::environment::{BaseResult, EnvironmentRecord};
use herma_core::{Blocker, Contract, EventType, Step};

use crate::crash::assert_closed;
use crate::kit::{Finished, Herma, fix_and, until};

/// A dependency that setup makes in the checkout, and one in the home.
const ENVIRONMENT: &str = r#"{ setup: ["mkdir deps && echo 'echo original' > deps/dep.sh && chmod +x deps/dep.sh", "echo original > $HOME/dep"], cache: [deps] }"#;
/// The tests need both.
const VERIFY: &str =
    r#"["[ \"$(deps/dep.sh)$(cat $HOME/dep)\" = originaloriginal ]", "sh tests/slugify_test.sh"]"#;
const TERMS: [(&str, &str); 2] = [("environment", ENVIRONMENT), ("verify", VERIFY)];

fn record(run: &Finished) -> EnvironmentRecord {
    serde_json::from_str(&run.bundle.text("environment.json")).unwrap()
}

#[test]
fn agent_and_verification_find_what_setup_made() {
    let herma = Herma::new();
    let run = herma.play(&fix_and(&["- shell: \"deps/dep.sh; cat $HOME/dep; pwd\""]), &TERMS);
    run.assert_pass();
    assert!(run.engine_said().contains("original\noriginal\n"), "{}", run.engine_said());
    assert_eq!(run.changed(), ["slugify.sh"]);
    let record = record(&run);
    let used = run.report.environment.as_ref().unwrap();
    assert_eq!(used.layers, record.layers.iter().map(|layer| layer.key).collect::<Vec<_>>());
    assert!(record.layers.iter().all(|layer| !layer.reused), "{record:#?}");
    let [BaseResult::Passed { .. }, BaseResult::Failed { exit_code: Some(1), .. }] =
        &run.report.verify_before[..]
    else {
        panic!("the fixture's own test fails before the work: {:#?}", run.report.verify_before)
    };
    let again = herma.play(&fix_and(&[]), &TERMS);
    again.assert_pass();
    let record = self::record(&again);
    assert!(record.layers.iter().all(|layer| layer.reused), "{record:#?}");
    assert!(!record.preflight.unwrap().reused, "a failure may be one of chance");
    let passes = [TERMS[0], ("verify", "[\"[ -e deps/dep.sh ]\"]")];
    for reused in [false, true] {
        let run = herma.play(&fix_and(&[]), &passes);
        run.assert_pass();
        assert_eq!(self::record(&run).preflight.unwrap().reused, reused);
    }
    assert_eq!(again.report.environment, run.report.environment);
}

#[test]
fn nothing_that_the_agent_does_to_the_environment_reaches_verification_or_a_later_run() {
    let herma = Herma::new();
    let poison = "echo 'echo poisoned' > deps/dep.sh; echo poisoned > $HOME/dep; rm -rf $HOME/.cache; mkdir -p deps/more; \
                  echo exit > deps/more/x.sh; printf '#!/bin/sh\\nexit 0\\n' > $HOME/.profile; ln -sf /etc/passwd deps/link";
    let run = herma.play(&fix_and(&[&format!("- shell: {poison:?}")]), &TERMS);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh"]);
    herma.play(&fix_and(&[]), &TERMS).assert_pass();
}

#[test]
fn a_patch_that_changes_an_input_or_takes_the_place_of_a_part_of_the_environment_fails() {
    let herma = Herma::new();
    let environment =
        "{ setup: [\"mkdir deps && echo original > deps/dep\"], cache: [\"deps/*\"], inputs: [deps.list] }";
    let terms = [
        ("environment", environment),
        ("verify", "[\"true\"]"),
        ("allowed_paths", "[slugify.sh, deps.list, deps, fake/**]"),
    ];
    for step in [
        "- write: { path: deps.list, text: more }",
        "- shell: \"rm -r deps && mkdir fake && echo poisoned > fake/dep && ln -s fake deps\"",
        "- shell: \"rm -r deps && echo poisoned > deps\"",
    ] {
        let run = herma.play(&fix_and(&[step]), &terms);
        assert!(
            run.report.blockers.iter().any(|b| b.blocker == Blocker::EnvironmentChanged),
            "{:#?}",
            run.report
        );
        assert_eq!(run.report.verification, []);
    }
    herma.play(&fix_and(&[]), &terms).assert_pass();
}

#[test]
fn code_of_the_result_in_one_command_does_not_reach_the_programs_of_the_next() {
    let herma = Herma::new();
    let poison = "mkdir -p $HOME/.local/bin; printf '#!/bin/sh\\nexit 0\\n' > $HOME/.local/bin/sh; \
                  cp $HOME/.local/bin/sh $HOME/.local/bin/grep; chmod +x $HOME/.local/bin/*";
    let result = format!("- append: {{ path: slugify.sh, text: {poison:?} }}");
    let terms = [
        TERMS[0],
        (
            "verify",
            "[\"sh ./slugify.sh\", \"[ -z \\\"$(ls $HOME/.local 2>/dev/null)\\\" ] && grep -q nothing-has-this slugify.sh\"]",
        ),
    ];
    let run = herma.play(&fix_and(&[&result]), &terms);
    run.assert_only(Blocker::VerificationFailed);
    assert_eq!(run.report.verification[1].exit_code, Some(1), "{:#?}", run.report.verification);
}

#[test]
fn the_base_must_do_what_the_contract_expects_before_the_engine_starts() {
    for (verify, expected, runs) in [
        ("[\"sh tests/slugify_test.sh\"]", "fail", true),
        ("[\"sh tests/slugify_test.sh\"]", "pass", false),
        ("[\"true\"]", "pass", true),
        ("[\"true\"]", "fail", false),
    ] {
        let run = Herma::new().play(&fix_and(&[]), &[("verify", verify), ("expect_before", expected)]);
        if runs {
            run.assert_pass();
        } else {
            run.assert_only(Blocker::VerificationUnrunnable);
            assert!(!run.report.engine_started && !run.bundle.has_event(EventType::WorkspacePrepared));
        }
        assert_eq!(run.report.verify_before.len(), 1, "{verify} {expected}");
    }
}

#[test]
fn a_command_that_cannot_run_stops_the_run_before_the_engine_and_the_message_has_the_fix() {
    let herma = Herma::new();
    for (verify, missing, fix) in [
        ("no-such-runner --all", "no-such-runner", "tools"),
        (
            "/usr/bin/python3 -m no_such_module",
            "the Python module `no_such_module` is missing",
            "`fetch` and `setup`",
        ),
        (
            "echo \"Error: Cannot find module 'left-pad'\" >&2; exit 1",
            "the Node module `left-pad` is missing",
            "`fetch` and `setup`",
        ),
    ] {
        let verify = serde_json::json!([verify]).to_string();
        let run = herma.play(&fix_and(&[]), &[("verify", &verify), ("environment", "{ setup: [\"true\"] }")]);
        run.assert_only(Blocker::VerificationUnrunnable);
        let record = &run.report.blockers[0];
        let said = format!("{} {}", record.detail, record.next_step);
        assert!(said.contains(missing) && said.contains(fix), "{verify}: {said}");
        assert!(
            !run.report.engine_started && !run.bundle.has_event(EventType::WorkspacePrepared),
            "{verify}"
        );
    }
}

#[test]
fn a_build_that_fails_names_its_command_and_leaves_no_layer() {
    let herma = Herma::new();
    for (setup, said) in [
        ("echo no such tool >&2; exit 3", "no such tool"),
        ("echo changed >> slugify.sh", "slugify.sh"),
        ("curl -sS http://192.0.2.1 || exec 3<>/dev/tcp/192.0.2.1/80 || exit 7", "exit"),
    ] {
        let environment = format!("{{ setup: [{setup:?}] }}");
        let run = herma.play(&fix_and(&[]), &[("environment", &environment)]);
        run.assert_only(Blocker::EnvironmentFailed);
        assert!(run.report.blockers[0].detail.contains(said), "{:#?}", run.report.blockers);
        assert!(record(&run).failure.is_some() && !run.report.engine_started);
    }
    let listed = herma.json(&["env", "list", "--json"]);
    let setups = listed["layers"].as_array().unwrap().iter().filter(|layer| layer["kind"] == "setup");
    assert_eq!(setups.count(), 0, "{listed:#}");
}

#[test]
fn a_build_that_is_killed_leaves_no_layer_and_the_next_run_builds_it() {
    let herma = Herma::new();
    let setup = ENVIRONMENT.replacen("mkdir deps", "sleep 3 && mkdir deps", 1);
    let terms = [("environment", &*setup), TERMS[1]];
    let (contract, script) = (herma.contract(&terms), herma.script(&fix_and(&[])));
    let started = herma.start(&["run", contract.to_str().unwrap(), "--script", script.to_str().unwrap()]);
    let building = herma.home().join("environments/building");
    until("the setup layer is built", || {
        let all = std::fs::read_dir(&building).into_iter().flatten().flatten();
        all.into_iter().any(|layer| layer.path().join("scratch/work/slugify.sh").exists())
    });
    assert!(started.kill().was_killed());
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    let [run] = herma.runs()[..] else { panic!("one run was started") };
    assert_closed(&herma, run, Step::Probe);
    let again = herma.play(&fix_and(&[]), &terms);
    again.assert_pass();
    let reused: Vec<bool> = record(&again).layers.iter().map(|layer| layer.reused).collect();
    assert_eq!(reused, [true, false], "the fetch layer was whole, the setup layer was not");
    assert_eq!(std::fs::read_dir(&building).unwrap().count(), 0);
}

#[test]
fn layers_are_listed_shown_and_pruned() {
    let herma = Herma::new();
    herma.play(&fix_and(&[]), &TERMS).assert_pass();
    let listed = herma.json(&["env", "list", "--json"]);
    let layers = listed["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 2, "{listed:#}");
    let key = layers[0]["key"].as_str().unwrap();
    let shown = herma.json(&["env", "show", &key["sha256:".len()..][..12], "--json"]);
    assert_eq!(shown["layer"]["key"], key, "{shown:#}");
    let kept = herma.json(&["env", "prune", "--max", "1GiB", "--json"]);
    assert_eq!(
        (kept["removed"].as_array().unwrap().len(), kept["kept"].as_array().unwrap().len()),
        (0, 2),
        "{kept:#}"
    );
    let pruned = herma.json(&["env", "prune", "--max", "0B", "--json"]);
    assert!(!pruned["removed"].as_array().unwrap().is_empty(), "{pruned:#}");
    assert_eq!(herma.run(&["env", "show", "ffff"]).code, Some(2));
    // It is built again.
    herma.play(&fix_and(&[]), &TERMS).assert_pass();
}

#[test]
fn an_environment_is_built_without_a_run() {
    let herma = Herma::new();
    let contract = herma.contract(&TERMS);
    let contract = contract.to_str().unwrap();
    let built = herma.json(&["env", "build", contract, "--json"]);
    assert_eq!(built["layers"].as_array().unwrap().len(), 2, "{built:#}");
    assert_eq!(herma.json(&["runs", "--all", "--json"])["runs"].as_array().unwrap().len(), 0);
    let run = herma.play(&fix_and(&[]), &TERMS);
    run.assert_pass();
    assert!(record(&run).layers.iter().all(|layer| layer.reused));
    assert_eq!(herma.active(), [""; 0]);
}

#[test]
fn init_writes_a_contract_with_what_it_detects() {
    let herma = Herma::new();
    herma.file("shop/.git/HEAD", "ref: refs/heads/main\n");
    herma.file("shop/pyproject.toml", "[project]\nname = \"shop\"\ndependencies = [\"attrs==23.2.0\"]\n");
    herma.file("shop/shop/__init__.py", "");
    herma.file("shop/tests/test_shop.py", "import pytest\n");
    let dir = herma.at("shop");
    let ended = herma.run(&["init", dir.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("found: `pyproject.toml` makes this a Python project"), "{ended:#?}");
    let file = dir.join(".herma/contracts/first.md");
    let contract = Contract::parse(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(contract.terms.verify, ["python -m pytest -q"]);
    let environment = contract.terms.environment.unwrap();
    assert!(environment.fetch.iter().any(|command| command.contains("attrs==23.2.0")), "{environment:#?}");
    assert!(!environment.setup.is_empty() && !environment.registries.is_empty(), "{environment:#?}");
    let again = herma.run(&["init", dir.to_str().unwrap()]);
    assert_eq!(again.code, Some(2), "it overwrites nothing: {again:#?}");
}
