//! `rebuild: true`: a patch that changes a manifest is verified in an environment that was built for it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use herma_core::Blocker;
use herma_core::environment::EnvironmentRecord;
use serde_json::json;

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, environment as variable, fix_and, run_tool};

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

/// Says which network a program of the patch had.
const SPY: &str = "echo \"$(sed -n 's/:.*//p' /proc/net/dev | tr -d ' ') proxy=${HTTPS_PROXY:-none}\" >> ran";

/// A repository with these files, and the terms of a contract with this environment.
fn on_repository(
    herma: &Herma,
    files: &[(&str, &str)],
    environment: &str,
) -> (Repository, [(&'static str, String); 5]) {
    let repository = Repository::of_fixture(herma, "string-slugify");
    for (path, text) in files {
        herma.file(&format!("repo/{path}"), text);
    }
    repository.commit("add manifests");
    let [target, stage] = ON_REPOSITORY.map(|(key, value)| (key, value.to_owned()));
    let terms = [
        target,
        stage,
        ("environment", environment.to_owned()),
        // It ran, each time without a way out.
        ("verify", "[\"cat ran && ! grep -qvx 'lo proxy=none' ran\"]".to_owned()),
        ("allowed_paths", "[\"**\"]".to_owned()),
    ];
    (repository, terms)
}

#[test]
fn a_lifecycle_script_that_the_agent_adds_runs_without_network() {
    let herma = Herma::new();
    let manifest = "{ \"name\": \"shop\", \"version\": \"1.0.0\" }";
    let lock = "{ \"name\": \"shop\", \"version\": \"1.0.0\", \"lockfileVersion\": 3, \"requires\": true, \
                \"packages\": { \"\": { \"name\": \"shop\", \"version\": \"1.0.0\" } } }";
    let environment = "{ tools: [npm], registries: [npm], fetch: [\"npm ci --ignore-scripts --no-audit --no-fund\"], \
                       setup: [\"npm ci --offline && touch ran\"], setup_on: inputs, cache: [ran], rebuild: true }";
    let (_repository, terms) =
        on_repository(&herma, &[("package.json", manifest), ("package-lock.json", lock)], environment);
    let scripts = ["preinstall", "install", "postinstall", "prepare"];
    let scripts = scripts.map(|name| (name, SPY)).into_iter().collect::<BTreeMap<_, _>>();
    let spied = json!({ "name": "shop", "version": "1.0.0", "scripts": scripts }).to_string();
    let step = json!({ "write": { "path": "package.json", "text": spied } });
    let run = play(&herma, &format!("- {step}"), &terms);
    run.assert_pass();
    let said = run.bundle.text("test.log");
    // A second time the tests are as they were before the engine.
    let first = said.split("# once more").next().unwrap();
    let ran = first.lines().filter(|line| *line == "lo proxy=none").count();
    assert_eq!(ran, scripts.len(), "setup ran each, and fetch none: {said}");
    assert!(record(&run).rebuilt.is_some());
}

/// npm installs a git dependency once more in its clone to prepare it, with the settings of the clone, which name the program that is git
/// there. `--ignore-scripts` does not matter to that, and any file can be a bundle, also one with the name of a manifest.
#[test]
fn a_git_dependency_in_the_patch_runs_nothing_while_npm_fetches() {
    let herma = Herma::new();
    let environment = "{ tools: [npm], registries: [npm], fetch: [\"npm install --ignore-scripts --no-audit --no-fund\"], rebuild: true }";
    let manifest = "{ \"name\": \"shop\", \"version\": \"1.0.0\" }";
    let (_repository, mut terms) = on_repository(&herma, &[("package.json", manifest)], environment);
    terms[3].1 = "[\"! cat ~/ran\"]".to_owned();
    let spy = format!("#!/bin/sh\ncd ~\n{SPY}\nexec git \"$@\"\n");
    let package = json!({ "name": "evil", "version": "1.0.0", "scripts": { "prepare": "true" },
                          "devDependencies": { "none": "git+ssh://./x:y/none" } });
    for (path, text) in
        [("package.json", &*package.to_string()), (".npmrc", "git=./spy.sh\n"), ("spy.sh", &spy)]
    {
        let file = herma.file(&format!("evil/{path}"), text);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let evil = Repository { dir: herma.at("evil") };
    evil.git(&["init", "-q", "-b", "main"]);
    evil.commit("it looks like a package");
    let bundle = herma.at("bundle");
    evil.git(&["bundle", "create", "-q", bundle.to_str().unwrap(), "HEAD", "main"]);
    let encoded = run_tool("base64", &["-w0".as_ref(), bundle.as_os_str()], &[]);
    let place = "src/a:b/package.json";
    let wanted = json!({ "name": "shop", "version": "1.0.0", "dependencies": { "evil": format!("git+ssh://./{place}") } });
    let steps = [
        json!({ "write": { "path": place, "base64": encoded.trim() } }),
        json!({ "write": { "path": "package.json", "text": wanted.to_string() } }),
    ]
    .map(|step| format!("- {step}"));
    let terms: Vec<(&str, &str)> = terms.iter().map(|(key, value)| (*key, &**value)).collect();
    let run = herma.play(&fix_and(&[&steps[0], &steps[1]]), &terms);
    run.assert_only(Blocker::EnvironmentChanged);
    let failure = record(&run).rebuilt.unwrap().failure.unwrap();
    let said = failure.last_lines.join("\n");
    // npm got as far as the clone, with the program in the place of git.
    assert!(said.contains("/bin/false") && !said.contains("spy.sh"), "{said}");
}

#[test]
fn a_build_script_that_the_agent_adds_runs_without_network() {
    let mut herma = Herma::new();
    // rustup finds its toolchains by the user's real home.
    herma.set("HOME", variable("HOME"));
    let manifest = "[package]\nname = \"shop\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    let lock = "version = 3\n\n[[package]]\nname = \"shop\"\nversion = \"1.0.0\"\n";
    let environment = "{ tools: [rust], registries: [crates], fetch: [\"cargo fetch --locked\"], \
                       setup: [\"cargo build --offline --locked && touch ran\"], inputs: [Cargo.toml, Cargo.lock, src/lib.rs], cache: [ran, target], rebuild: true }";
    let files = [("Cargo.toml", manifest), ("Cargo.lock", lock), ("src/lib.rs", "")];
    let (_repository, terms) = on_repository(&herma, &files, environment);
    let build = format!(
        "fn main() {{ std::process::Command::new(\"sh\").args([\"-c\", {SPY:?}]).status().unwrap(); }}\n"
    );
    let changed = format!("{manifest}build = \"spy.rs\"\n");
    let steps = [("spy.rs", build), ("Cargo.toml", changed)]
        .map(|(path, text)| format!("- {}", json!({ "write": { "path": path, "text": text } })));
    let terms: Vec<(&str, &str)> = terms.iter().map(|(key, value)| (*key, &**value)).collect();
    let run = herma.play(&fix_and(&[&steps[0], &steps[1]]), &terms);
    run.assert_pass();
    let said = run.bundle.text("test.log");
    assert!(said.contains("lo proxy=none"), "{said}");
}

#[test]
fn a_build_backend_that_the_agent_adds_is_never_fetched_for() {
    let herma = Herma::new();
    let manifest = "[project]\nname = \"shop\"\nversion = \"1.0.0\"\n";
    let environment = "{ registries: [pypi], fetch: [\"true\"], rebuild: true }";
    let (_repository, mut terms) = on_repository(&herma, &[("pyproject.toml", manifest)], environment);
    terms[3].1 = "[\"true\"]".to_owned();
    let changed =
        format!("{manifest}[build-system]\nrequires = []\nbuild-backend = \"own\"\nbackend-path = [\".\"]\n");
    let step = json!({ "write": { "path": "pyproject.toml", "text": changed } });
    let run = play(&herma, &format!("- {step}"), &terms);
    run.assert_only(Blocker::EnvironmentChanged);
    assert!(
        run.report.blockers[0].detail.contains("pyproject.toml can hold programs"),
        "{:#?}",
        run.report.blockers
    );
    assert_eq!(record(&run).rebuilt, None);
}
