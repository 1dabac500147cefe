//! Decisions.

use herma_core::contract::Action;
use herma_core::tool::{CHILD_TOOL, MAX_SUBJECT_BYTES, ToolAction as A, ToolCall};
use herma_policy::{ChildRun, Policies, PolicyRequester};
use proptest::prelude::*;

use crate::kit::{asker, call, decide, file};

#[test]
fn each_stage_permits_what_it_is_for_and_nothing_else() {
    let policies = Policies::compile(&[]).unwrap();
    for stage in 1..=6 {
        for action in A::ALL {
            let work = matches!(action, A::Shell | A::Write | A::Read | A::Other);
            let decision = decide(&policies, stage, action, "x");
            assert_eq!(decision.allowed, work && stage > 1, "{action} at {stage}: {decision:?}");
            let with_hosts =
                policies.decide(&PolicyRequester { network: true, ..asker(stage) }, &call(action, "x"));
            let expected = (work || action == A::Fetch) && stage > 1;
            assert_eq!(with_hosts.allowed, expected, "{action} at {stage} with hosts: {with_hosts:?}");
        }
    }
}

#[test]
fn actions_that_the_contract_forbids_are_denied_by_its_rule() {
    let policies = Policies::compile(&[]).unwrap();
    for command in ["git push origin main", "cd x && git -C . push", "sh -c 'gh pr create'"] {
        let decision = decide(&policies, 3, A::Shell, command);
        assert_eq!(
            (decision.allowed, decision.rules),
            (false, vec!["herma.contract".to_owned()]),
            "{command}"
        );
        assert_eq!(decision.reason, "the contract forbids it (rule herma.contract)");
    }
    // A file is not made by what it is called.
    assert!(decide(&policies, 3, A::Write, "git push").allowed);
    let tag = |stage| decide(&policies, stage, A::Shell, "git tag v1").allowed;
    assert_eq!((tag(3), tag(4), tag(5)), (true, false, false));
    let contract = PolicyRequester { forbidden: [Action::Tag].into(), ..asker(3) };
    assert!(!policies.decide(&contract, &call(A::Shell, "git tag v1")).allowed);
}

#[test]
fn restrictions_of_a_run_apply_to_all_of_its_children() {
    let policies = Policies::compile(&[file(
        "@id(\"a\") forbid (principal in Contract::\"outer\", action, resource);\n\
         @id(\"b\") forbid (principal in Engine::\"codex\", action == Action::\"spawn\", resource);",
    )])
    .unwrap();
    let below = |engine: &str, contract: &str| {
        let above = vec![(engine.parse().unwrap(), contract.to_owned())];
        PolicyRequester { above, ..asker(3) }
    };
    let child = ChildRun { engine: "fake".parse().unwrap(), contract: "part".to_owned() };
    let rows =
        [("fake", "other", true, true), ("fake", "outer", false, false), ("codex", "other", true, false)];
    for (engine, contract, reads, spawns) in rows {
        let asker = below(engine, contract);
        assert_eq!(policies.decide(&asker, &call(A::Read, "x")).allowed, reads, "{engine} {contract}");
        assert_eq!(policies.decide_child(&asker, &child).allowed, spawns, "{engine} {contract}");
    }
}

#[test]
fn an_overlong_subject_is_denied() {
    let policies = Policies::compile(&[]).unwrap();
    assert!(decide(&policies, 3, A::Shell, &"x".repeat(MAX_SUBJECT_BYTES)).allowed);
    let decision = decide(&policies, 3, A::Shell, &"x".repeat(MAX_SUBJECT_BYTES + 1));
    assert!(!decision.allowed && decision.rules.is_empty(), "{}", decision.reason);
}

#[test]
fn a_call_that_says_nothing_of_what_it_is_about_is_denied() {
    let policies = Policies::compile(&[]).unwrap();
    for action in A::ALL {
        for subject in ["", " \n"] {
            let decision = decide(&policies, 3, action, subject);
            assert!(!decision.allowed && decision.rules.is_empty(), "{action}: {decision:?}");
            assert_eq!(decision.reason, "nothing says what it is about");
        }
    }
}

#[test]
fn commands_nested_too_deeply_are_denied() {
    let policies = Policies::compile(&[]).unwrap();
    let nested = |depth| format!("echo {}ls{}", "$(".repeat(depth), ")".repeat(depth));
    assert!(decide(&policies, 3, A::Shell, &nested(3)).allowed);
    let decision = decide(&policies, 3, A::Shell, &nested(30));
    assert!(
        !decision.allowed && decision.rules.is_empty() && decision.reason.contains("nested"),
        "{decision:?}"
    );
    // A file name is not read as a command.
    assert!(decide(&policies, 3, A::Write, &nested(30)).allowed);
    let push = decide(&policies, 3, A::Shell, &format!("git push; {}", nested(30)));
    assert_eq!(push.reason, "the contract forbids it (rule herma.contract)");
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies() {
    let overflows = "@id(\"a\") forbid (principal, action, resource)\n\
                     when { principal.stage + 9223372036854775807 == 1 };";
    let policies = Policies::compile(&[file(overflows)]).unwrap();
    let decision = decide(&policies, 3, A::Read, "x");
    assert!(!decision.allowed, "{decision:?}");
    assert!(decision.reason.starts_with("herma's policy could not be asked"), "{}", decision.reason);
}

#[test]
fn an_operators_rule_names_engine_contract_tool_and_subject() {
    for (condition, hits) in [
        ("principal in Engine::\"claude\"", true),
        ("principal in Engine::\"codex\"", false),
        ("principal in Contract::\"fix-it\"", true),
        ("principal in Contract::\"another\"", false),
        ("resource.tool == \"read\"", true),
        ("resource.subject like \"*.env\"", true),
        ("resource.subject like \"*.pem\"", false),
    ] {
        let rule = format!(
            "@id(\"a\") @reason(\"not here\") forbid (principal, action, resource) when {{ {condition} }};"
        );
        let policies = Policies::compile(&[file(&rule)]).unwrap();
        let decision = decide(&policies, 3, A::Read, "config/.env");
        assert_eq!(decision.allowed, !hits, "{condition}");
        if hits {
            assert_eq!(decision.reason, "not here (rule a)");
        }
    }
}

/// The decision about a child run of `fake` under the contract `part`.
fn child(policies: &Policies, stage: u8) -> (bool, Vec<String>) {
    let child = ChildRun { engine: "fake".parse().unwrap(), contract: "part".to_owned() };
    let decision = policies.decide_child(&asker(stage), &child);
    assert!(decision.does.is_empty());
    (decision.allowed, decision.rules)
}

#[test]
fn a_child_run_is_permitted_where_another_agent_is_not() {
    let policies = Policies::compile(&[]).unwrap();
    assert_eq!(child(&policies, 1), (false, vec![]));
    for stage in 2..=6 {
        assert_eq!(child(&policies, stage), (true, vec!["herma.child".to_owned()]));
        // Whatever the agent calls its tool.
        let task = ToolCall { tool: CHILD_TOOL.to_owned(), ..call(A::Spawn, "part") };
        let decision = policies.decide(&asker(stage), &task);
        assert_eq!((decision.allowed, decision.rules), (false, vec!["herma.spawn".to_owned()]));
    }
}

#[test]
fn an_operator_forbids_child_runs_all_of_them_or_some() {
    for (rule, hits) in [
        ("(principal, action == Action::\"spawn\", resource)", true),
        ("(principal, action, resource)", true),
        ("(principal, action, resource is Child)", true),
        ("(principal, action == Action::\"spawn\", resource in Engine::\"fake\")", true),
        ("(principal, action == Action::\"spawn\", resource in Engine::\"claude\")", false),
        ("(principal, action == Action::\"spawn\", resource in Contract::\"part\")", true),
        ("(principal, action == Action::\"spawn\", resource in Contract::\"fix-it\")", false),
        ("(principal in Contract::\"fix-it\", action == Action::\"spawn\", resource)", true),
        ("(principal in Engine::\"claude\", action, resource) when { resource.subject like \"p*\" }", true),
        ("(principal, action == Action::\"shell\", resource)", false),
    ] {
        let policies = Policies::compile(&[file(&format!("@id(\"a\") forbid {rule};"))]);
        let policies = policies.unwrap_or_else(|problems| panic!("{rule}: {problems}"));
        assert_eq!(child(&policies, 3).0, !hits, "{rule}");
    }
}

#[test]
fn a_child_of_the_same_engine_and_contract_is_judged_too() {
    let policies = Policies::compile(&[]).unwrap();
    let same = ChildRun { engine: asker(3).engine, contract: asker(3).contract };
    assert!(policies.decide_child(&asker(3), &same).allowed);
    let long = ChildRun { contract: "x".repeat(MAX_SUBJECT_BYTES + 1), ..same };
    assert!(!policies.decide_child(&asker(3), &long).allowed);
}

proptest! {
    /// For any request, an operator's rule never allows more than herma's own, and no text breaks the decision.
    #[test]
    fn an_operator_only_narrows(
        stage in 1_u8..=6,
        action in proptest::sample::select(&A::ALL[..]),
        subject in "\\PC{0,40}|(git|gh|npm) (push|tag|publish|pr create)",
        pattern in "[a-z ]{0,4}",
    ) {
        let rule = format!(
            "@id(\"a\") forbid (principal, action, resource) when {{ resource.subject like \"*{pattern}*\" }};"
        );
        let own = Policies::compile(&[]).unwrap();
        let narrowed = Policies::compile(&[file(&rule)]).unwrap();
        let (before, after) = (decide(&own, stage, action, &subject), decide(&narrowed, stage, action, &subject));
        prop_assert!(before.allowed || !after.allowed);
        prop_assert_eq!(after.allowed, before.allowed && !subject.contains(&pattern));
    }
}
