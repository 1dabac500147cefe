//! Which tool an intent becomes.

use std::fmt::Write as _;

use herma_dialect::Dialect;
use herma_scripted::{Call, Chosen, Input, KNOWN_TOOLS, ToolCall, choose};
use serde_json::{Value, json};

use super::agents;
use super::kit::{Request, function};

const CALLS: &[(&str, &str)] = &[
    ("shell", r#"{"shell": "sh tests/slugify_test.sh"}"#),
    ("write", r#"{"write": {"path": "a/b.sh", "text": "echo hi\n"}}"#),
    ("edit", r#"{"edit": {"path": "a/b.sh", "old": "hi", "new": "ho"}}"#),
    (
        "patch",
        r#"{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Delete File: b\n*** End Patch\n"}"#,
    ),
    ("diff", r#"{"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"}"#),
    ("read", r#"{"read": "a/b.sh"}"#),
    ("list", r#"{"list": "a"}"#),
];

fn call(json: &str) -> Call {
    serde_json::from_str(json).unwrap()
}

fn shown(chosen: &Chosen) -> String {
    match chosen {
        Chosen::Unable(why) => format!("(text) {why}"),
        Chosen::Calls(calls) => calls.iter().map(one).collect::<Vec<String>>().join("\n         and "),
    }
}

fn one(call: &ToolCall) -> String {
    let ToolCall { name, input } = call;
    match input {
        Input::Arguments(text) => format!("{name} {text}"),
        Input::Freeform(text) => format!("{name} freeform {text:?}"),
        Input::LocalShell(text) => format!("{name} (local shell) {text:?}"),
        Input::Shell(text) => format!("{name} (shell) {text:?}"),
        Input::ApplyPatch(operation) => format!("{name} (apply patch) {operation:?}"),
    }
}

#[test]
fn every_intent_becomes_a_tool_of_every_agent() {
    let mut table = String::new();
    for (agent, request) in agents::all() {
        let asked = request.asked();
        writeln!(table, "{agent}").unwrap();
        for (intent, json) in CALLS {
            writeln!(table, "  {intent:6} {}", shown(&choose(&call(json), &asked))).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

/// The calls for one advertised function.
fn with(name: &str, schema: Value, json: &str) -> String {
    let request = Request::new(Dialect::Chat).tools(vec![(name.to_owned(), schema)], vec![]);
    shown(&choose(&call(json), &request.asked()))
}

fn object(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

#[test]
fn unknown_tools_are_found_by_their_schema() {
    let text = || json!({ "type": "string" });
    let shell = r#"{"shell": "ls"}"#;
    assert_eq!(
        with("do_it", object(json!({ "script": text() }), json!(["script"])), shell),
        r#"do_it {"script":"ls"}"#
    );
    let argv = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(
        with("run", object(json!({ "cmd": argv }), json!(["cmd"])), shell),
        r#"run {"cmd":["bash","-lc","ls"]}"#
    );
    let write = r#"{"write": {"path": "a", "text": "b"}}"#;
    let schema =
        object(json!({ "target_file": text(), "contents": text() }), json!(["target_file", "contents"]));
    assert_eq!(with("create_it", schema, write), r#"create_it {"target_file":"a","contents":"b"}"#);
}

#[test]
fn a_tool_that_only_resembles_a_shell_is_none() {
    let shell = r#"{"shell": "ls"}"#;
    let refused = "(text) The script wants to run `ls`, but the client advertises no tool that can.";
    // A word from a list.
    let editor = json!({ "type": "string", "enum": ["view", "create"] });
    assert_eq!(with("editor", object(json!({ "command": editor }), json!(["command"])), shell), refused);
    // An argument that need not be there.
    let text = json!({ "type": "string" });
    assert_eq!(with("deploy", object(json!({ "command": text }), json!([])), shell), refused);
    // A known name with arguments of another kind.
    let number = json!({ "type": "number" });
    assert_eq!(with("Bash", object(json!({ "command": number }), json!(["command"])), shell), refused);
    assert_eq!(with("Bash", object(json!({ "words": text }), json!(["words"])), shell), refused);
}

#[test]
fn required_properties_are_filled_in() {
    let schema = object(
        json!({
            "command": { "type": "string" },
            "description": { "type": "string" },
            "workdir": { "type": "string" },
            "timeout": { "type": ["number", "null"] },
            "retries": { "type": "integer", "minimum": 3 },
            "mode": { "enum": ["fast", "slow"] },
            "safe": { "type": "boolean" },
            "kind": { "const": "k" },
            "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            "nested": { "$ref": "#/$defs/n" },
        }),
        json!([
            "description",
            "command",
            "workdir",
            "timeout",
            "retries",
            "mode",
            "safe",
            "kind",
            "tags",
            "nested",
            "ghost"
        ]),
    );
    let mut schema = schema;
    schema["$defs"] =
        json!({ "n": object(json!({ "deep": { "anyOf": [{ "type": "integer" }] } }), json!(["deep"])) });
    assert_eq!(
        with("Bash", schema, r#"{"shell": "ls"}"#),
        r#"Bash {"command":"ls","description":"A step of the task","workdir":".","timeout":null,"retries":3,"mode":"fast","safe":false,"kind":"k","tags":["scripted"],"nested":{"deep":1},"ghost":"scripted"}"#
    );
}

#[test]
fn hostile_schemas_end_in_something() {
    let shell = r#"{"shell": "ls"}"#;
    let names: Vec<String> = (0..64).map(|n| format!("n{n}")).collect();
    let properties: Value = names.iter().map(|name| (name.clone(), json!({ "$ref": "#" }))).collect();
    let mut endless = object(properties, json!(names));
    endless["properties"]["command"] = json!({ "type": "string" });
    endless["required"].as_array_mut().unwrap().push(json!("command"));
    assert!(with("x", endless, shell).len() < 1 << 20);
    let many =
        json!({ "type": "array", "minItems": u64::MAX, "items": { "type": "array", "minItems": u64::MAX } });
    let schema = object(json!({ "command": { "type": "string" }, "many": many }), json!(["command", "many"]));
    assert!(with("x", schema, shell).len() < 1 << 16);
    for odd in
        [json!(null), json!([]), json!({ "properties": 7, "required": { "a": 1 } }), json!({ "type": 5 })]
    {
        assert!(with("Bash", odd, shell).starts_with("Bash {"));
    }
}

#[test]
fn a_tool_that_the_script_names_is_called_as_it_says() {
    let asked = Request::new(Dialect::Chat).asked();
    let chosen = |json: &str| shown(&choose(&call(json), &asked));
    assert_eq!(chosen(r#"{"tool": {"name": "ghost", "arguments": {"a": [1]}}}"#), r#"ghost {"a":[1]}"#);
    assert_eq!(chosen(r#"{"tool": {"name": "bash", "text": "{not json"}}"#), "bash {not json");
}

#[test]
fn without_any_tool_the_answer_says_so() {
    let asked = Request::new(Dialect::Chat).tools(vec![function("weather", &["city"])], vec![]).asked();
    for (_, json) in CALLS {
        assert!(matches!(choose(&call(json), &asked), Chosen::Unable(_)), "{json}");
    }
}

#[test]
fn every_row_of_the_table_is_reached() {
    for row in KNOWN_TOOLS {
        let properties: Value =
            row.arguments.iter().map(|(name, _)| ((*name).to_owned(), json!({}))).collect();
        let intent = format!("{:?}", row.intent).to_lowercase();
        let (_, json) = CALLS.iter().find(|(name, _)| *name == intent).unwrap();
        let chosen = with(row.tool, object(properties, json!([])), json);
        assert!(chosen.starts_with(&format!("{} {{", row.tool)), "{row:?}: {chosen}");
        for (argument, _) in row.arguments {
            assert!(chosen.contains(&format!("\"{argument}\":")), "{row:?}: {chosen}");
        }
    }
}
