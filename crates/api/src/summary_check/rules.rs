//! The rules that need no record: they look at the document as it is written, whatever else is wrong with it.

use herma_core::contract::Action;
use herma_evidence::secrets::scan;
use serde_json::Value;

use super::Errors;

/// Every field of a control summary.
const FIELDS: [&str; 19] = [
    "schema_version",
    "health",
    "default_validation_lane",
    "runtime_default_activation",
    "promotion_status",
    "proof_ladder",
    "candidate_default",
    "refresh",
    "repeatability",
    "target_read_only",
    "blocked_lanes",
    "replay",
    "approval",
    "approval_packet",
    "governed_execution",
    "target_repository_mutation",
    "landed_branches",
    "next_operator_action",
    "health.status",
];

/// Parts of keys under which secrets are kept.
const SECRET_KEYS: [&str; 12] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "private_key",
    "credential",
    "authorization",
    "cookie",
    "endpoint",
    "base_url",
];

/// Steps that no summary may allow, besides the actions that every contract forbids.
const NEVER: [&str; 2] = ["activate_default", "promote"];

/// Checks the document.
pub(super) fn check(bytes: &[u8], value: &Value, errors: &mut Errors) {
    for field in FIELDS {
        if at(value, field).is_none() {
            errors.add("fields", format!("`{field}` is missing"));
        }
    }
    if at(value, "runtime_default_activation") != Some(&Value::Bool(false)) {
        errors.add("default_activation", "`runtime_default_activation` is not false");
    }
    if at(value, "default_validation_lane").and_then(Value::as_str) != Some("fake") {
        errors.add("default_activation", "`default_validation_lane` is not `fake`");
    }
    if at(value, "promotion_status").and_then(Value::as_str) != Some("not-promoted") {
        errors.add("promotion", "`promotion_status` is not `not-promoted`");
    }
    if at(value, "approval_packet.executable") != Some(&Value::Bool(false)) {
        errors.add("forbidden_actions", "`approval_packet.executable` is not false");
    }
    actions(value, errors);
    if at(value, "target_repository_mutation") == Some(&Value::Bool(true)) {
        errors.add("target_mutation", "a target changed beyond herma's own branch");
    }
    secrets(bytes, value, errors);
}

fn actions(value: &Value, errors: &mut Errors) {
    let listed = |path: &str| -> Vec<&str> {
        let items = at(value, path).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    for action in listed("approval.allowed_next_actions") {
        let is_forbidden = Action::ALL.iter().any(|known| known.as_str() == action);
        if is_forbidden || NEVER.contains(&action) {
            errors.add("forbidden_actions", format!("it allows `{}`", action.escape_debug()));
        }
    }
    let blocked = listed("approval_packet.blocked_actions");
    for action in Action::BUILT_IN.iter().filter(|action| !blocked.contains(&action.as_str())) {
        errors.add("forbidden_actions", format!("`{}` is not among the blocked actions", action.as_str()));
    }
    let blocked = listed("approval.blocked_next_actions");
    for step in NEVER.iter().filter(|step| !blocked.contains(step)) {
        errors.add("forbidden_actions", format!("`{step}` is not among the blocked steps"));
    }
}

fn secrets(bytes: &[u8], value: &Value, errors: &mut Errors) {
    for finding in scan(bytes) {
        errors.add("secrets", format!("it holds what looks like a secret ({})", finding.rule));
    }
    keys(value, &mut |key| {
        let lower = key.to_ascii_lowercase();
        if SECRET_KEYS.iter().any(|part| lower.contains(part)) {
            let shown: String = key.chars().take(40).flat_map(char::escape_debug).collect();
            errors.add("secrets", format!("the key `{shown}` is one under which secrets are kept"));
        }
    });
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

fn keys(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found(key);
                keys(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// Every text in it, with the key that it is under.
pub(super) fn texts(value: &Value, found: &mut dyn FnMut(&str, &str)) {
    fn below(key: &str, value: &Value, found: &mut dyn FnMut(&str, &str)) {
        match value {
            Value::String(text) => found(key, text),
            Value::Array(items) => items.iter().for_each(|item| below(key, item, found)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value, found)),
            _ => {}
        }
    }
    below("", value, found);
}
