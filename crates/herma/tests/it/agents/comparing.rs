//! All agents side by side, on three fixtures, on one page.

use std::fs;

use herma_core::Status;
use herma_core::comparison::Comparison;
use herma_engines::{claude, codex, hermes, opencode, pi};

use super::rows;
use crate::kit::Herma;

/// The fixtures, words of each brief by which its model knows it, and the command by which it does its work.
const FIXTURES: [(&str, &str, &str); 3] = [
    (
        "string-slugify",
        "slugify keeps outer and repeated whitespace",
        r#"printf '%s\n' 'slugify() {' 'printf "%s" "$1" | tr A-Z a-z | tr -cs a-z0-9 - | sed "s/^-//; s/-$//"' '}' > slugify.sh"#,
    ),
    (
        "rename-module",
        "the module strutil is to be called text",
        "mv lib/strutil.sh lib/text.sh && sed -i s/strutil/text/ bin/*.sh lib/text.sh",
    ),
    (
        "exec-script",
        "bin/greet cannot be run and greets the wrong one",
        r#"printf '%s\n' '#!/bin/sh' 'echo "Hello, ${1:-world}!"' > bin/greet && chmod 755 bin/greet"#,
    ),
];

#[test]
fn every_agent_is_on_one_page() {
    let agents = [
        (codex::NAME, codex::PACKAGE),
        (claude::NAME, claude::PACKAGE),
        (opencode::NAME, opencode::PACKAGE),
        (pi::NAME, pi::PACKAGE),
        (hermes::NAME, hermes::PACKAGE),
    ];
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    for (engine, package) in &agents {
        herma.let_agent_in(engine, package);
        for stage in ["1", "2"] {
            let proven = herma.run_patiently(&["prove", "--engine", engine, "--stage", stage, "--json"]);
            assert_eq!(proven.code, Some(0), "{proven:#?}");
        }
    }
    herma.with_rehearsal();
    let mut args = vec!["compare".to_owned(), "--json".to_owned(), "--runs".to_owned(), "1".to_owned()];
    let mut scripts = Vec::new();
    for (fixture, marker, command) in FIXTURES {
        let command = serde_json::Value::from(command);
        let script = format!(
            "name: {fixture}\nmodels: [m]\nmatch: {{ marker: {marker} }}\nturns:\n  - call: {{ shell: {command} }}\n  - say: It is done.\n"
        );
        fs::write(herma.home().join(format!("{fixture}.yaml")), script).unwrap();
        scripts.push(format!("\"{fixture}.yaml\""));
        let text = herma_fixtures::find(fixture).unwrap().contract;
        let (front, brief) = text.split_once("\n---\n").unwrap();
        let front: String =
            front.lines().filter(|line| !line.starts_with("limits:")).flat_map(|line| [line, "\n"]).collect();
        let limits = rows::LIMITS;
        let text =
            format!("{front}model: {{ provider: rehearsal, model: m }}\nlimits: {limits}\n---\n{brief}");
        let contract = herma.file(&format!("contracts/{fixture}.md"), text);
        args.extend(["--contract".to_owned(), contract.display().to_string()]);
    }
    let router = format!(
        "[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [{}, \"present.yaml\"]\n",
        scripts.join(", ")
    );
    fs::write(herma.home().join("router.toml"), router).unwrap();
    let engines: Vec<&str> = std::iter::once("fake").chain(agents.map(|(name, _)| name)).collect();
    args.extend(["--engines".to_owned(), engines.join(",")]);

    let ended = herma.run_patiently(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let comparison: Comparison = serde_json::from_value(ended.json()).unwrap();
    let lanes: Vec<String> = comparison.lanes.iter().map(|lane| lane.engine.to_string()).collect();
    assert_eq!(lanes, engines);
    for lane in &comparison.lanes {
        let ends: Vec<Status> = lane.runs.iter().map(|run| run.status).collect();
        assert_eq!((lane.blocked.as_deref(), ends), (None, vec![Status::Pass; 3]), "{}", lane.engine);
    }
    // One page, with a column for each.
    let kept = herma.home().join("comparisons");
    let page = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path());
    let page = page.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "md")).unwrap();
    let page = fs::read_to_string(page).unwrap();
    let head = page.lines().find(|line| line.starts_with("| criterion")).unwrap();
    for engine in engines {
        assert!(head.contains(&format!("| {engine} ")), "{head}");
    }
}
