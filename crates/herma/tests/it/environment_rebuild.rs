//! `rebuild: true`: a patch that changes a manifest is verified in an environment that was built for it.

use herma_core::Blocker;
use herma_core::environment::EnvironmentRecord;

use crate::kit::{Finished, Herma, fix_and};

const WRITE: &str = "- write: { path: package.json, text: wanted }";

fn terms(environment: &str) -> [(&'static str, String); 3] {
    [
        ("environment", environment.to_owned()),
        ("verify", "[\"grep -q wanted deps/seen && [ \\\"$(cat deps/net)\\\" = lo ]\"]".to_owned()),
        ("allowed_paths", "[slugify.sh, package.json, build.sh]".to_owned()),
    ]
}

fn play(herma: &Herma, step: &str, terms: &[(&str, String)]) -> Finished {
    let terms: Vec<(&str, &str)> = terms.iter().map(|(key, value)| (*key, &**value)).collect();
    herma.play(&fix_and(&[step]), &terms)
}

fn record(run: &Finished) -> EnvironmentRecord {
    serde_json::from_str(&run.bundle.text("environment.json")).unwrap()
}

#[test]
fn without_it_a_changed_manifest_fails_and_the_message_names_it() {
    let herma = Herma::new();
    let definition = "{ setup: [\"mkdir deps\"], inputs: [package.json], cache: [deps] }";
    let run = play(&herma, WRITE, &terms(definition));
    run.assert_only(Blocker::EnvironmentChanged);
    let detail = &run.report.blockers[0].detail;
    assert!(detail.contains("package.json") && detail.contains("`rebuild: true`"), "{detail}");
}

#[test]
fn rebuild_builds_for_the_patch_and_the_evidence_shows_it() {
    let herma = Herma::new();
    let definition = "{ setup: [\"mkdir deps && (cat package.json || echo none) > deps/seen && sed -n 's/:.*//p' /proc/net/dev | tr -d ' ' > deps/net\"], \
                      inputs: [package.json], cache: [deps], rebuild: true }";
    let run = play(&herma, WRITE, &terms(definition));
    run.assert_pass();
    let mut changed = run.changed();
    changed.sort();
    assert_eq!(changed, ["package.json", "slugify.sh"]);
    let rebuilt = record(&run).rebuilt.unwrap();
    assert_eq!(rebuilt.changed_inputs[0].as_bytes(), b"package.json");
    assert_eq!(rebuilt.layers.len(), 2, "{rebuilt:#?}");
    let used = run.report.environment.as_ref().unwrap();
    assert_ne!(used.rebuilt.as_ref().unwrap().tree, used.tree);
    // The next run of the base gets the environment of the base.
    let again = play(&herma, "- shell: \"cat deps/seen\"", &terms(definition));
    assert!(again.engine_said().contains("none"), "{}", again.engine_said());
    again.assert_only(Blocker::VerificationFailed);
    assert_eq!(record(&again).rebuilt, None);
}

#[test]
fn nothing_is_built_for_a_patch_that_breaks_a_rule_or_could_run_its_own_code_with_network() {
    let herma = Herma::new();
    let definition = |fetch: &str, inputs: &str| {
        format!(
            "{{ fetch: [{fetch:?}], setup: [\"mkdir -p deps && (cat package.json || echo none) > deps/seen\"], inputs: {inputs}, cache: [deps], rebuild: true }}"
        )
    };
    // The fetch command would run the script that the patch changes.
    let scripts = definition("if [ -e build.sh ]; then sh build.sh; fi", "[package.json, build.sh]");
    for (step, said) in [
        ("- write: { path: build.sh, text: \"touch ran\" }", "build.sh can hold programs"),
        (WRITE, "could run code of the patch with network"),
    ] {
        let run = play(&herma, step, &terms(&scripts));
        run.assert_only(Blocker::EnvironmentChanged);
        assert!(run.report.blockers[0].detail.contains(said), "{:#?}", run.report.blockers);
        assert_eq!(record(&run).rebuilt, None);
        assert_eq!(run.report.verification, []);
    }
    // A patch with a disallowed path is not built for.
    let mut narrow = terms(
        "{ setup: [\"mkdir deps && cat package.json > deps/seen\"], inputs: [package.json], cache: [deps], rebuild: true }",
    );
    narrow[0].1 = narrow[0].1.replace("cat package.json", "(cat package.json || true)");
    narrow[2].1 = "[slugify.sh]".to_owned();
    let run = play(&herma, WRITE, &narrow);
    assert!(
        run.report.blockers.iter().any(|b| b.blocker == Blocker::DisallowedFile),
        "{:#?}",
        run.report.blockers
    );
    assert_eq!(record(&run).rebuilt, None);
}

#[test]
fn a_rebuild_that_fails_fails_the_run_and_names_the_command() {
    let herma = Herma::new();
    let definition = "{ setup: [\"mkdir deps && [ ! -e package.json ] || { echo no such package; exit 9; }\"], inputs: [package.json], \
                      cache: [deps], rebuild: true }";
    let run = play(&herma, WRITE, &terms(definition));
    run.assert_only(Blocker::EnvironmentChanged);
    assert!(run.report.blockers[0].detail.contains("package.json"), "{:#?}", run.report.blockers);
    let failure = record(&run).rebuilt.unwrap().failure.unwrap();
    assert!(failure.last_lines.iter().any(|line| line.contains("no such package")), "{failure:#?}");
}
