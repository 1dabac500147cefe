//! A herma inside a run asks the one outside for a child run, which counts, narrows and links.

mod budget;
mod policy;

use std::ffi::OsString;

use herma_core::{Blocker, EventType, RunId, Status, Step};
use serde_json::Value;

use crate::crash::assert_closed;
use crate::kit::{
    Bundle, Ended, Herma, ON_REPOSITORY, Repository, contract_text, fix_and, processes_of, until,
};

/// The child's contract as an agent would write it: on the workspace, and within the parent's time.
const CHILD: [(&str, &str); 3] =
    [("id", "the-child"), ("target", "{ repo: . }"), ("limits", "{ total: 30s, idle: 30s }")];
const PARENT: [(&str, &str); 1] = [("limits", "{ total: 50s, idle: 10s }")];

/// Asks for the child of these files.
const ASK: &str = "/herma/herma run /tmp/child.md --script /tmp/child.yaml";

/// A script that writes the child's contract and script, and takes these steps.
fn asking(contract: &str, script: &str, steps: &[&str]) -> String {
    let steps: String = steps.iter().flat_map(|step| ["  ", step, "\n"]).collect();
    format!(
        "steps:\n  - write: {{ path: /tmp/child.md, text: {contract:?} }}\n  - write: {{ path: /tmp/child.yaml, text: {script:?} }}\n{steps}"
    )
}

fn args(herma: &Herma, script: &str, terms: &[(&str, &str)]) -> Vec<OsString> {
    let (contract, script) = (herma.contract(terms), herma.script(script));
    vec!["run".into(), contract.into(), "--script".into(), script.into()]
}

/// Runs it; every run that there is now has a whole bundle that verifies, and nothing else.
fn family(herma: &Herma, script: &str, terms: &[(&str, &str)]) -> (Ended, Vec<Bundle>) {
    let ended = herma.run(&args(herma, script, terms));
    let bundles: Vec<Bundle> = herma.runs().into_iter().map(|run| herma.bundle(run)).collect();
    for (bundle, run) in bundles.iter().zip(herma.runs()) {
        bundle.assert_whole();
        herma.assert_verifies(bundle);
        herma.assert_only_the_bundle_is_left(run);
    }
    assert_eq!(herma.active(), [""; 0]);
    (ended, bundles)
}

/// The reasons for which this run was refused a child.
fn refusals(bundle: &Bundle) -> Vec<String> {
    let asked =
        bundle.events().into_iter().filter(|event| event.data.get("tool") == Some(&"herma run".into()));
    asked.filter_map(|event| Some(event.data.get("reason")?.as_str()?.to_owned())).collect()
}

fn said(bundle: &Bundle) -> String {
    bundle.text("engine/stdout.log") + &bundle.text("engine/stderr.log")
}

#[test]
fn a_child_works_on_the_workspace_as_it_is_and_its_work_is_taken_over() {
    let herma = Herma::new();
    let child = fix_and(&["- shell: { command: grep -q from-the-parent slugify.sh.seen, must: true }"]);
    let child = child.replace("steps:\n", "steps:\n  - shell: cp slugify.sh slugify.sh.seen\n")
        + "  - delete: slugify.sh.seen\n";
    let ask = format!("- shell: {{ command: {ASK}, must: true }}");
    let script = asking(
        &contract_text(&CHILD),
        &child,
        &["- append: { path: slugify.sh, text: \"# from-the-parent\\n\" }", &ask],
    );
    let (ended, bundles) = family(&herma, &script, &PARENT);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let [parent, child] = &bundles[..] else { panic!("{ended:#?}") };
    let (above, below) = (parent.report(), child.report());
    assert_eq!((above.status, below.status), (Status::Pass, Status::Pass), "{below:#?}");
    assert_eq!((above.parent_run, below.parent_run), (None, Some(above.run_id)));
    assert_eq!(above.result_tree, below.result_tree, "what the child made is what the parent has");
    assert_eq!(child.events()[0].data["depth"], 1);
    let named = parent.events().into_iter().find(|event| event.data.contains_key("child")).unwrap();
    assert_eq!(named.kind, EventType::ToolEvaluated);
    assert_eq!(named.data["child"], below.run_id.to_string());

    for run in [above.run_id, below.run_id] {
        let shown = herma.run(&["show", "--full", &run.to_string()]).stdout;
        assert!(shown.contains("## The runs around it"), "{shown}");
        let tree = herma.json(&["show", &run.to_string(), "--tree", "--json"])["tree"].clone();
        assert_eq!(tree["run_id"], above.run_id.to_string());
        assert_eq!(tree["children"][0]["run_id"], below.run_id.to_string());
        assert_eq!(tree["children"][0]["depth"], 1);
        assert_eq!(tree["children"][0]["children"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_child_that_fails_changes_nothing_in_the_workspace() {
    let herma = Herma::new();
    let script = asking(
        &contract_text(&CHILD),
        "steps: [{ write: { path: slugify.sh, text: 'exit 1' } }]",
        &[&format!("- shell: {ASK}")],
    );
    let (_, bundles) = family(&herma, &script, &PARENT);
    let [parent, child] = &bundles[..] else { panic!("{bundles:?}") };
    assert_eq!(child.report().status, Status::Fail);
    assert!(parent.report().changed_files.is_empty());
}

#[test]
fn a_wider_child_is_refused_with_a_reason_and_the_attempt_is_recorded() {
    let herma = Herma::new();
    let wide: Vec<_> = CHILD.into_iter().chain([("allowed_paths", "['**']")]).collect();
    let script = asking(&contract_text(&wide), &fix_and(&[]), &[&format!("- shell: {ASK}; echo code $?")]);
    let (_, bundles) = family(&herma, &script, &PARENT);
    let [parent] = &bundles[..] else { panic!("{bundles:?}") };
    assert!(said(parent).contains("code 3"), "{}", said(parent));
    let refused = refusals(parent);
    assert!(refused.len() == 1 && refused[0].contains("`allowed_paths` has `**`"), "{refused:?}");
}

#[test]
fn lies_about_where_it_is_only_block_a_herma_inside() {
    let herma = Herma::new();
    let lies = [
        "env -u HERMA_SOCKET",
        "env -u HERMA_RUN -u HERMA_SOCKET -u HERMA_WORKSPACE",
        "env HERMA_SOCKET=/nowhere",
        "env HERMA_SOCKET=/herma/inside",
        "env HERMA_DEPTH=0 HERMA_RUN= HERMA_SOCKET=",
    ];
    let mut steps: Vec<String> =
        lies.iter().map(|lie| format!("- shell: {lie} {ASK}; echo code $?")).collect();
    for command in [
        "demo",
        "resume last",
        "prove --engine fake --stage 1",
        "compare --engines fake,stub --contract fixture:string-slugify",
    ] {
        steps.push(format!("- shell: /herma/herma {command}; echo code $?"));
    }
    let garbage = r#"- shell: "python3 -c \"import socket,os; s=socket.socket(socket.AF_UNIX); s.connect(os.environ['HERMA_SOCKET']); s.sendall(b'{\\\"child_run\\\":{\\\"contract\\\":\\\"\\\",\\\"engine\\\":\\\"fake\\\",\\\"depth\\\":0}}'); s.shutdown(1); print(s.recv(9999))\"""#;
    steps.push(garbage.to_owned());
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let script = asking(&contract_text(&CHILD), &fix_and(&[]), &steps);
    let (_, bundles) = family(&herma, &script, &PARENT);
    let [parent] = &bundles[..] else { panic!("{bundles:?}") };
    let said = said(parent);
    assert_eq!(said.matches("code 3").count(), lies.len() + 4, "{said}");
    assert!(said.contains("unknown field `depth`"), "{said}");
    assert!(
        refusals(parent).iter().any(|why| why.contains("unknown field `depth`")),
        "{:?}",
        refusals(parent)
    );
}

#[test]
fn more_than_five_deep_is_blocked_and_nobody_inside_counts() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let own =
        [("allowed_paths", "[level]"), ("verify", "['true']"), ("limits", "{ total: 900s, idle: 900s }")];
    let terms: Vec<_> = ON_REPOSITORY.into_iter().chain(own).collect();
    let next: Vec<_> = terms
        .iter()
        .copied()
        .filter(|(key, _)| *key != "target")
        .chain([("target", "{ repo: . }")])
        .collect();
    let script = "steps:
  - shell: |
      n=$(cat level); echo $((n + 1)) > level
      sed \"s/total: [0-9]*/total: $((800 - 100 * n))/\" next.md > /tmp/next.md
      /herma/herma run /tmp/next.md --script next.yaml; echo code $?
";
    for (name, text) in [("level", "0\n"), ("next.md", &contract_text(&next)), ("next.yaml", script)] {
        std::fs::write(repository.dir.join(name), text).unwrap();
    }
    repository.commit("what each level begins with");
    let (ended, bundles) = family(&herma, script, &terms);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let depths: Vec<Option<u64>> =
        bundles.iter().map(|b| b.events()[0].data.get("depth").and_then(Value::as_u64)).collect();
    assert_eq!(depths, [None, Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)]);
    let reports: Vec<_> = bundles.iter().map(Bundle::report).collect();
    for pair in reports.windows(2) {
        assert_eq!(pair[1].parent_run, Some(pair[0].run_id));
        assert_eq!(pair[0].status, Status::Pass, "{:#?}", pair[0]);
    }
    let deepest = &reports[6];
    assert_eq!(deepest.status, Status::Blocked);
    assert_eq!(deepest.blockers.iter().map(|b| b.blocker).collect::<Vec<_>>(), [Blocker::RecursionDepth]);
    assert!(!deepest.engine_started);
}

/// A child that works until somebody ends it.
fn endless(contract: &str, step: &str) -> String {
    asking(contract, "steps: [{ daemon: sleep 1000 }, { sleep: 10m }]", &[step])
}

fn child_at_work(herma: &Herma) -> [RunId; 2] {
    until(
        "the child works",
        || matches!(herma.runs()[..], [_, child] if herma.said(child, "engine.started") && !processes_of(child).is_empty()),
    );
    let runs = herma.runs();
    [runs[0], runs[1]]
}

#[test]
fn a_parent_that_is_killed_takes_its_child_along_and_both_are_closed() {
    let herma = Herma::new();
    let script = endless(&contract_text(&CHILD), &format!("- shell: {ASK}"));
    let started = herma.start(&args(&herma, &script, &PARENT));
    let runs = child_at_work(&herma);
    assert!(started.kill().was_killed());
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    for run in runs {
        assert_closed(&herma, run, Step::Engine);
    }
    assert_eq!(herma.bundle(runs[1]).report().parent_run, Some(runs[0]));
}

#[test]
fn a_child_ends_with_the_engine_that_asked_for_it() {
    let herma = Herma::new();
    let terms = [("limits", "{ total: 20s, idle: 20s }")];
    let child: Vec<_> =
        CHILD.into_iter().map(|(k, v)| if k == "limits" { (k, "{ total: 15s }") } else { (k, v) }).collect();
    let script = endless(&contract_text(&child), &format!("- daemon: {ASK}")) + "  - sleep: 6s\n";
    let (_, bundles) = family(&herma, &script, &terms);
    let [_, child] = &bundles[..] else { panic!("{bundles:?}") };
    let report = child.report();
    assert_eq!(report.status, Status::Blocked, "{report:#?}");
    let interrupted = report.blockers.iter().find(|b| b.blocker == Blocker::Interrupted).unwrap();
    assert!(interrupted.detail.contains("asked for it"), "{interrupted:?}");
    assert_eq!(processes_of(report.run_id), [0; 0]);
}
