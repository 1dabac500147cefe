//! A real agent works on real projects: `herma init` writes the contract, the project's own tests run in its environment, and the
//! evidence verifies. The pages below `docs/ecosystems` are run here.

mod pages;
mod source;
mod stage_five;
mod table;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use herma_core::environment::{BaseResult, EnvironmentRecord};
use herma_engines::claude;
use regex::Regex;

pub(super) use self::source::person;
use self::table::{PROJECTS, Project};
use crate::console::run_command;
use crate::kit::{Finished, Herma};

/// The model as a person names it; a script answers in its place.
const MODEL: &str = "anthropic/claude-sonnet-4-5";

/// Registries may be at addresses of the tester's own network.
const SETTINGS: &str = "registries:\n  npm: { own_network: true }\n  pypi: { own_network: true }\n  \
    crates: { own_network: true }\n  go: { own_network: true }\n  maven: { own_network: true }\n";

/// The page that CI runs.
const QUICK_PAGE: &str = "python";

/// Every project, on its page or from the table.
#[test]
fn every_project_is_changed_by_a_real_agent_and_passes_its_own_tests() {
    let herma = Herma::with_agent(claude::NAME, &claude::PACKAGE);
    let proven = herma.run_patiently(&["prove", "--engine", claude::NAME, "--up-to", "3", "--json"]);
    assert_eq!(proven.code, Some(0), "{proven:#?}");
    let herma = with_projects(&herma);
    let mut wrong = Vec::new();
    for project in chosen() {
        let run = std::panic::AssertUnwindSafe(|| match project.page {
            Some(page) => pages::plays(&herma, page, project),
            None => play(&herma, project),
        });
        if std::panic::catch_unwind(run).is_err() {
            wrong.push(project.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The projects that the variable `PROJECTS` names, or all.
#[allow(clippy::disallowed_methods, reason = "the variable is for the person who runs the tests")]
fn chosen() -> Vec<&'static Project> {
    match std::env::var("PROJECTS") {
        Ok(names) => names.split_whitespace().map(table::named).collect(),
        Err(_) => PROJECTS.iter().collect(),
    }
}

/// The same for the project of one page, and one more lands what the agent did. The engine has proven five stages.
pub(super) fn quick_page_and_a_landing(herma: &Herma, engine: &str) {
    let herma = with_projects(herma);
    let project = PROJECTS.iter().find(|project| project.page == Some(QUICK_PAGE)).unwrap();
    pages::plays(&herma, QUICK_PAGE, project);
    stage_five::lands(&herma, engine);
}

/// A herma as a person of this machine uses it, whose model does the work of every project.
fn with_projects(herma: &Herma) -> Herma {
    let mut herma = herma.twin();
    for (name, value) in person(&herma) {
        herma.set(name.to_str().unwrap(), value);
    }
    let settings = herma.home().join("settings.yaml");
    let before = fs::read_to_string(&settings).unwrap_or_default();
    assert!(!before.contains("registries"), "{before}");
    fs::write(settings, before + SETTINGS).unwrap();
    let (provider, model) = MODEL.split_once('/').unwrap();
    let mut names = Vec::new();
    for project in PROJECTS {
        names.push(format!("{}.yaml", project.name));
        let script = project.script(model).to_string();
        fs::write(herma.home().join(names.last().unwrap()), script).unwrap();
    }
    let present = format!("name: present\nmodels: [{model}]\nrepeat: true\nturns: [say: I am there.]\n");
    fs::write(herma.home().join("project-present.yaml"), present).unwrap();
    names.push("project-present.yaml".to_owned());
    let router = herma.home().join("router.toml");
    let before = fs::read_to_string(&router).unwrap_or_default();
    let upstream = format!("\n[upstreams.{provider}]\nprovider = \"scripted\"\nscripts = {names:?}\n");
    fs::write(router, before + &upstream).unwrap();
    // The model keeps the name that a person writes, and the admission says that a script takes its place.
    let admit =
        ["admit", "model", MODEL, "--json", "--runtime-provider", "scripted", "--network", "loopback"];
    let more = ["--credential-source", "none", "--review-trigger", "herma_version=0.1"];
    herma.json(&[&admit[..], &more].concat());
    assert_eq!(herma.sign("model", MODEL)["status"], "admitted");
    herma
}

/// Plays a project of the table that is on no page.
fn play(herma: &Herma, project: &Project) {
    let person = person(herma);
    let dir = herma.at(project.name);
    fs::create_dir(&dir).unwrap();
    project.source.import(project.name, &dir, &person);
    let root = dir.join(project.name);
    let contract = init(herma, project, &root);
    let (output, code) = run_command("git add -A && git commit -q -m contract", &root, &person);
    assert_eq!(code, 0, "{output}");
    let began = Instant::now();
    let args = ["run", &contract, "--engine", claude::NAME, "--json"];
    let finished = herma.finished_by(|| herma.run_patiently(&args));
    check(project, &finished, &root, began.elapsed());
    fs::remove_dir_all(dir).unwrap();
}

/// Has herma write the contract, and gives its file.
fn init(herma: &Herma, project: &Project, root: &Path) -> String {
    let task = ["--title", project.title, "--brief", "Change it, and add a test.", "--model", MODEL];
    let words = ["init", root.to_str().unwrap(), "--id", project.name, "--json"];
    let written = herma.json(&[&words[..], &task].concat());
    written["file"].as_str().unwrap().to_owned()
}

/// Looks at the run of a project, and prints a row of the table of the docs.
#[allow(clippy::disallowed_macros, reason = "a person writes the figures into the docs")]
fn check(project: &Project, finished: &Finished, root: &Path, took: Duration) {
    finished.assert_pass();
    assert_eq!(finished.changed(), project.changed());
    let report = &finished.report;
    let passes = |result: &BaseResult| matches!(result, BaseResult::Passed { .. });
    assert!(report.verify_before.iter().all(passes), "{report:#?}");
    assert!(!report.verify_before.is_empty() && report.verify_before.len() == report.verification.len());
    let record: EnvironmentRecord = serde_json::from_str(&finished.bundle.text("environment.json")).unwrap();
    let decisions: usize = record.layers.iter().map(|layer| layer.egress.len()).sum();
    // Cargo fetches optional packages too, which no test needs.
    assert!(decisions > 0 || !project.needs_packages, "{record:#?}");
    // The commands run again with the tests as they were, if the agent added some: they count once.
    let log = finished.bundle.text("test.log");
    let first = format!("$ {}\n", report.verification[0].command);
    let again = log.match_indices(&first).nth(1).map_or(log.len(), |(at, _)| at);
    let tests = count_tests(&log[..again]) + count_go_tests(root);
    assert!(tests >= project.min_tests, "{tests} tests:\n{log}");
    let built: u64 = record.layers.iter().map(|layer| layer.duration_ms).sum();
    let files: u64 = record.layers.iter().map(|layer| layer.files).max().unwrap_or_default();
    let verified: u64 = report.verification.iter().map(|command| command.duration_ms).sum();
    println!(
        "| {} | {tests} | {files} files | built {} s | run {:.0} s | tests {:.1} s |",
        project.name,
        built.div_ceil(1000),
        took.as_secs_f64(),
        Duration::from_millis(verified).as_secs_f64()
    );
}

/// The test functions of a Go project: `go test` prints packages only.
fn count_go_tests(root: &Path) -> usize {
    let words = ["-r", "-h", "--include=*_test.go", "^func Test", root.to_str().unwrap()];
    let (output, _) = run_command(
        &format!("grep {} || true", words.map(|word| format!("'{word}'")).join(" ")),
        root,
        [("PATH", "/usr/bin:/bin")],
    );
    output.lines().count()
}

/// How many tests passed, as the runners print it.
fn count_tests(log: &str) -> usize {
    let forms = [
        r"(?m)^(?:=+ )?(\d+) passed",
        r"(?m)^ +(\d+) passing",
        r"(?m)^test result: ok\. (\d+) passed",
        r"tests failed out of (\d+)",
        r"(?m)Tests run: (\d+), Failures: 0, Errors: 0, Skipped: \d+\s*$",
    ];
    let all = forms.iter().map(|form| {
        let form = Regex::new(form).unwrap();
        form.captures_iter(log).map(|found| found[1].parse::<usize>().unwrap()).sum::<usize>()
    });
    all.sum()
}
