//! The tools that real agents advertise, as far as the mapping looks at them.

use herma_dialect::Dialect;
use serde_json::{Value, json};

use super::kit::{Request, function};

/// An agent's request, with its name.
pub(crate) fn all() -> Vec<(&'static str, Request)> {
    vec![
        ("claude", claude()),
        ("codex", codex()),
        ("codex with a shell function", codex_with_a_shell_function()),
        ("codex with local_shell", codex_with_local_shell()),
        ("opencode", opencode()),
        ("pi", pi()),
        ("hermes", hermes()),
        ("qwen", qwen()),
        ("anthropic's own tools", anthropic_tools()),
        ("openai's own tools", openai_tools()),
    ]
}

fn with_schema(name: &str, schema: Value) -> (String, Value) {
    (name.to_owned(), schema)
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

pub(crate) fn claude() -> Request {
    let absolute = json!({ "type": "string", "description": "The absolute path to the file (must be absolute, not relative)" });
    let text = json!({ "type": "string" });
    let functions = vec![
        with_schema(
            "Bash",
            object(
                json!({ "command": text, "timeout": { "type": "number" }, "description": text }),
                &["command"],
            ),
        ),
        with_schema(
            "Read",
            object(json!({ "file_path": absolute, "offset": { "type": "number" } }), &["file_path"]),
        ),
        with_schema(
            "Write",
            object(json!({ "file_path": absolute, "content": text }), &["file_path", "content"]),
        ),
        with_schema(
            "Edit",
            object(
                json!({ "file_path": absolute, "old_string": text, "new_string": text,
                        "replace_all": { "type": "boolean", "default": false } }),
                &["file_path", "old_string", "new_string"],
            ),
        ),
    ];
    Request::new(Dialect::Messages)
        .tools(functions, vec![])
        .prompt("<env>\nWorking directory: /srv/project\nPlatform: linux\n</env>\nFix slugify.")
}

fn codex() -> Request {
    let functions = vec![with_schema(
        "exec_command",
        object(
            json!({ "cmd": { "type": "string" }, "workdir": { "type": "string" }, "yield_time_ms": { "type": "number" } }),
            &["cmd"],
        ),
    )];
    let patch = json!({ "type": "custom", "name": "apply_patch", "description": "Edits files.",
        "format": { "type": "grammar", "syntax": "lark", "definition": "start: begin_patch" } });
    Request::new(Dialect::Responses).tools(functions, vec![patch])
}

fn codex_with_a_shell_function() -> Request {
    let argv = json!({ "type": "array", "items": { "type": "string" } });
    let functions = vec![
        with_schema(
            "shell",
            object(json!({ "command": argv, "workdir": { "type": "string" } }), &["command"]),
        ),
        function("apply_patch", &["input"]),
    ];
    Request::new(Dialect::Responses).tools(functions, vec![])
}

fn codex_with_local_shell() -> Request {
    Request::new(Dialect::Responses).tools(vec![], vec![json!({ "type": "local_shell" })])
}

fn opencode() -> Request {
    let functions = vec![
        function("bash", &["command", "description"]),
        function("read", &["filePath"]),
        function("write", &["filePath", "content"]),
        function("edit", &["filePath", "oldString", "newString"]),
    ];
    Request::new(Dialect::Chat).tools(functions, vec![])
}

fn pi() -> Request {
    let edits = json!({ "type": "array", "items": object(
        json!({ "oldText": { "type": "string" }, "newText": { "type": "string" } }), &["oldText", "newText"]) });
    let functions = vec![
        function("read", &["path"]),
        function("bash", &["command"]),
        with_schema(
            "edit",
            object(json!({ "path": { "type": "string" }, "edits": edits }), &["path", "edits"]),
        ),
        function("write", &["path", "content"]),
    ];
    Request::new(Dialect::Chat).tools(functions, vec![])
}

fn hermes() -> Request {
    let text = json!({ "type": "string" });
    let functions = vec![
        with_schema(
            "terminal",
            object(json!({ "command": text, "background": { "type": "boolean" } }), &["command"]),
        ),
        function("read_file", &["path"]),
        function("write_file", &["path", "content"]),
        with_schema(
            "patch",
            object(
                json!({ "mode": { "type": "string", "enum": ["replace", "patch"] }, "path": text,
                        "old_string": text, "new_string": text, "patch": text }),
                &["mode"],
            ),
        ),
    ];
    Request::new(Dialect::Chat).tools(functions, vec![])
}

fn qwen() -> Request {
    let absolute = json!({ "type": "string", "description": "The absolute path to the file" });
    let text = json!({ "type": "string" });
    let functions = vec![
        with_schema(
            "run_shell_command",
            object(
                json!({ "command": text, "is_background": { "type": "boolean" }, "description": text }),
                &["command", "is_background"],
            ),
        ),
        with_schema(
            "write_file",
            object(json!({ "file_path": absolute, "content": text }), &["file_path", "content"]),
        ),
        with_schema(
            "edit",
            object(
                json!({ "file_path": absolute, "old_string": text, "new_string": text }),
                &["file_path", "old_string", "new_string"],
            ),
        ),
        with_schema("read_file", object(json!({ "absolute_path": absolute }), &["absolute_path"])),
        with_schema("list_directory", object(json!({ "path": absolute }), &["path"])),
    ];
    Request::new(Dialect::Chat)
        .tools(functions, vec![])
        .prompt("I'm currently working in the directory: /srv/project\nFix slugify.")
}

fn anthropic_tools() -> Request {
    let others = vec![
        json!({ "type": "bash_20250124", "name": "bash" }),
        json!({ "type": "text_editor_20250728", "name": "str_replace_based_edit_tool" }),
    ];
    Request::new(Dialect::Messages).tools(vec![], others)
}

fn openai_tools() -> Request {
    let others = vec![
        json!({ "type": "shell", "environment": { "type": "local" } }),
        json!({ "type": "apply_patch" }),
    ];
    Request::new(Dialect::Responses).tools(vec![], others)
}
