//! Whether a run may have children is judged by the operator's policies, before anything of a child is made.

use std::fs;

use herma_core::{EventType, Status};
use serde_json::json;

use super::{ASK, CHILD, PARENT, asking, family, said};
use crate::kit::{Bundle, Herma, contract_text, fix_and};

/// A run that asks for a child, under this rule of the operator.
fn under(rule: &str) -> (Herma, Vec<Bundle>) {
    let herma = Herma::new();
    let dir = herma.marked_home().join("policy");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("own.cedar"), rule).unwrap();
    let ask = format!("- shell: {ASK}; echo code $?");
    let script = asking(&contract_text(&CHILD), &fix_and(&[]), &[&ask]);
    let (_, bundles) = family(&herma, &script, &PARENT);
    (herma, bundles)
}

/// The events that tell of a child that was asked for.
fn asked(bundle: &Bundle) -> Vec<serde_json::Value> {
    let events = bundle.events().into_iter().filter(|event| event.kind == EventType::ToolEvaluated);
    events.map(|event| json!(event.data)).filter(|data| data["tool"] == "herma run").collect()
}

#[test]
fn an_operators_forbid_on_spawn_applies_to_children_and_is_reported() {
    let rule = "@id(\"no-children\")\n@reason(\"one agent at a time\")\n\
                forbid (principal, action == Action::\"spawn\", resource);\n";
    let (herma, bundles) = under(rule);
    let [parent] = &bundles[..] else { panic!("nothing of the child was made: {:?}", herma.runs()) };
    let told = said(parent);
    let refused = "the child run was refused: one agent at a time (rule no-children)";
    assert!(told.contains("code 3") && told.contains(refused), "{told}");
    assert_eq!(
        asked(parent),
        [json!({
            "tool": "herma run", "command": "the-child", "engine": "fake", "action": "spawn", "actions": [],
            "forbidden": [], "permission": "denied", "rules": ["no-children"], "asked_by": "herma",
            "reason": "one agent at a time (rule no-children)",
        })]
    );
    let report = parent.report();
    assert_eq!((report.children, report.tools), (None, None));
}

#[test]
fn a_rule_about_other_children_leaves_this_one_and_the_event_names_what_permits_it() {
    let rule = "@id(\"no-stub\")\n\
                forbid (principal, action == Action::\"spawn\", resource in Engine::\"stub\");\n";
    let (_, bundles) = under(rule);
    let [parent, child] = &bundles[..] else { panic!("{bundles:?}") };
    assert_eq!(child.report().status, Status::Pass);
    assert_eq!(
        asked(parent),
        [json!({
            "tool": "herma run", "command": "the-child", "engine": "fake", "action": "spawn", "actions": [],
            "forbidden": [], "permission": "allowed", "rules": ["herma.child"], "asked_by": "herma",
            "child": child.report().run_id, "depth": 1,
        })]
    );
}

/// A child's contract is named by who asks for it, and its engine is not always its parent's.
#[test]
fn no_child_does_what_is_forbidden_to_its_requester() {
    let herma = Herma::new();
    let dir = herma.marked_home().join("policy");
    fs::create_dir_all(&dir).unwrap();
    let rule = "@id(\"not-below\")\n\
                forbid (principal in Contract::\"trim-slug\", action == Action::\"spawn\", resource)\n\
                when { resource.subject == \"the-child\" };\n";
    fs::write(dir.join("own.cedar"), rule).unwrap();
    let ask = format!("- shell: {ASK}; echo code $?");
    let between = contract_text(&[
        ("id", "between"),
        ("target", "{ repo: . }"),
        ("limits", "{ total: 40s, idle: 40s }"),
    ]);
    let script = asking(&between, &asking(&contract_text(&CHILD), &fix_and(&[]), &[&ask]), &[&ask]);
    let (_, bundles) = family(&herma, &script, &PARENT);
    let [parent, between] = &bundles[..] else { panic!("{:?}", herma.runs()) };
    assert_eq!(asked(parent)[0]["permission"], "allowed");
    assert_eq!(asked(between)[0]["rules"], json!(["not-below"]));
}
