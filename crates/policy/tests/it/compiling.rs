//! Valid and invalid policies.

use herma_policy::{Policies, PolicyFile, PolicyProblem};

use crate::kit::file;

fn problems(text: &str) -> Vec<PolicyProblem> {
    Policies::compile(&[file(text)]).unwrap_err().0
}

#[test]
fn shipped_policies_are_valid_and_every_forbidding_rule_has_a_reason() {
    let policies = Policies::compile(&[]).unwrap();
    let rules: Vec<_> = policies.rules().collect();
    assert_eq!(rules.len(), 9);
    for rule in rules {
        assert!(rule.id.starts_with("herma."), "{}", rule.id);
        assert_eq!(rule.reason.is_some(), rule.forbids, "{}", rule.id);
    }
}

#[test]
fn problems_have_line_and_column() {
    let place = |text: &str| problems(text).first().map(|found| (found.line, found.column));
    let named = "@id(\"a\")\n";
    for (text, line) in [
        // No Cedar at all.
        ("forbid (principal, action, resource", 1),
        // No such attribute.
        ("@id(\"a\")\nforbid (principal, action, resource)\nwhen { resource.path == \"x\" };", 3),
        // No such action.
        ("@id(\"a\")\n\nforbid (principal, action == Action::\"push\", resource);", 3),
        // A number is no text.
        ("@id(\"a\") forbid (principal, action, resource) when { principal.stage like \"3\" };", 1),
    ] {
        let (found, column) = place(text).unwrap();
        assert_eq!(found, Some(line), "{text}");
        assert!(column.is_some(), "{text}");
    }
    assert!(
        problems(&format!("{named}forbid (principal == ?principal, action, resource);"))[0]
            .problem
            .contains("template")
    );
}

#[test]
fn an_operator_can_only_forbid_and_each_rule_has_a_name_of_its_own() {
    let said = |text: &str| problems(text)[0].to_string();
    let all = "(principal, action, resource);";
    assert!(said(&format!("@id(\"a\") permit {all}")).contains("permits; herma's own rules"));
    assert!(said(&format!("forbid {all}")).contains("has no name"));
    assert!(said(&format!("@id(\"a b\") forbid {all}")).contains("has no name"));
    assert!(said(&format!("@id(\"herma.x\") forbid {all}")).contains("a name of herma's own"));
    let twice = said(&format!("@id(\"a\") forbid {all}\n@id(\"a\") forbid {all}"));
    assert!(twice.contains("taken by a rule in own.cedar"), "{twice}");
}

#[test]
fn any_change_is_another_digest_and_another_order_of_files_is_not() {
    let rule = |id: &str| format!("@id(\"{id}\") forbid (principal, action == Action::\"fetch\", resource);");
    let named = |name: &str, id: &str| PolicyFile { name: name.to_owned(), text: rule(id) };
    let digest = |files: &[PolicyFile]| Policies::compile(files).unwrap().digest();
    let both = digest(&[named("a.cedar", "a"), named("b.cedar", "b")]);
    assert_eq!(both, digest(&[named("b.cedar", "b"), named("a.cedar", "a")]));
    for other in [
        vec![],
        vec![named("a.cedar", "a")],
        vec![named("a.cedar", "a"), named("b.cedar", "c")],
        vec![named("a.cedar", "a"), named("c.cedar", "b")],
    ] {
        assert_ne!(both, digest(&other), "{other:?}");
    }
}
