//! The tools of the agents that we know, as a table: which tool an intent becomes, and what goes into which argument.
//!
//! A row counts where a tool of that name is advertised and takes these arguments. Rows that stand first are preferred.
//! `generic.rs` recognises other tools by their schemas.

use super::Intent::{self, Edit, List, Patch, Read, Shell, Write};

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct KnownTool {
    /// The agent that advertises it.
    pub agents: &'static str,
    /// Its purpose.
    pub intent: Intent,
    /// Its name.
    pub tool: &'static str,
    /// Its arguments, and what each of them gets.
    pub arguments: &'static [(&'static str, Part)],
}

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The command as one text.
    Command,
    /// The command as `["bash", "-lc", COMMAND]`.
    Argv,
    /// The path of the file or directory.
    Path,
    /// The content of the file.
    Text,
    /// The text to replace.
    Old,
    /// The new text.
    New,
    /// A list of one edit, with these names for old and new.
    Edits(&'static str, &'static str),
    /// The patch.
    Diff,
    /// Always this word.
    Word(&'static str),
}

use Part::{Argv, Command, Diff, Edits, New, Old, Path, Text, Word};

const fn row(
    agents: &'static str,
    intent: Intent,
    tool: &'static str,
    arguments: &'static [(&'static str, Part)],
) -> KnownTool {
    KnownTool { agents, intent, tool, arguments }
}

/// The table.
pub const KNOWN_TOOLS: &[KnownTool] = &[
    row("Claude Code", Shell, "Bash", &[("command", Command)]),
    row("Codex", Shell, "exec_command", &[("cmd", Command)]),
    row("Codex", Shell, "shell_command", &[("command", Command)]),
    row("Codex", Shell, "shell", &[("command", Argv)]),
    row("Codex", Shell, "container.exec", &[("command", Argv)]),
    row("OpenCode, Pi", Shell, "bash", &[("command", Command)]),
    row("Hermes", Shell, "terminal", &[("command", Command)]),
    row("Gemini CLI, Qwen Code", Shell, "run_shell_command", &[("command", Command)]),
    row("Claude Code", Write, "Write", &[("file_path", Path), ("content", Text)]),
    row("OpenCode", Write, "write", &[("filePath", Path), ("content", Text)]),
    row("Pi", Write, "write", &[("path", Path), ("content", Text)]),
    row("Hermes", Write, "write_file", &[("path", Path), ("content", Text)]),
    row("Gemini CLI, Qwen Code", Write, "write_file", &[("file_path", Path), ("content", Text)]),
    row("Claude Code", Edit, "Edit", &[("file_path", Path), ("old_string", Old), ("new_string", New)]),
    row("OpenCode", Edit, "edit", &[("filePath", Path), ("oldString", Old), ("newString", New)]),
    row("Pi", Edit, "edit", &[("path", Path), ("oldText", Old), ("newText", New)]),
    row("Pi", Edit, "edit", &[("path", Path), ("edits", Edits("oldText", "newText"))]),
    row(
        "Hermes",
        Edit,
        "patch",
        &[("mode", Word("replace")), ("path", Path), ("old_string", Old), ("new_string", New)],
    ),
    row("Qwen Code", Edit, "edit", &[("file_path", Path), ("old_string", Old), ("new_string", New)]),
    row("Gemini CLI", Edit, "replace", &[("file_path", Path), ("old_string", Old), ("new_string", New)]),
    row("Codex", Patch, "apply_patch", &[("input", Diff)]),
    row("OpenCode", Patch, "apply_patch", &[("patchText", Diff)]),
    row("Hermes", Patch, "patch", &[("mode", Word("patch")), ("patch", Diff)]),
    row("Claude Code", Read, "Read", &[("file_path", Path)]),
    row("OpenCode", Read, "read", &[("filePath", Path)]),
    row("Pi", Read, "read", &[("path", Path)]),
    row("Hermes", Read, "read_file", &[("path", Path)]),
    row("Gemini CLI, Qwen Code", Read, "read_file", &[("file_path", Path)]),
    row("Gemini CLI, Qwen Code", Read, "read_file", &[("absolute_path", Path)]),
    row("Claude Code", List, "LS", &[("path", Path)]),
    row("OpenCode", List, "list", &[("path", Path)]),
    row("Pi", List, "ls", &[("path", Path)]),
    row("Codex", List, "list_dir", &[("dir_path", Path)]),
    row("Gemini CLI", List, "list_directory", &[("dir_path", Path)]),
    row("Gemini CLI, Qwen Code", List, "list_directory", &[("path", Path)]),
];

/// The tools that a provider defines and a client executes, by the names that their types begin with.
pub const PROVIDER_TOOLS: &[KnownTool] = &[
    row("Anthropic", Shell, "bash_", &[("command", Command)]),
    row(
        "Anthropic",
        Write,
        "text_editor_",
        &[("command", Word("create")), ("path", Path), ("file_text", Text)],
    ),
    row(
        "Anthropic",
        Edit,
        "text_editor_",
        &[("command", Word("str_replace")), ("path", Path), ("old_str", Old), ("new_str", New)],
    ),
    row("Anthropic", Read, "text_editor_", &[("command", Word("view")), ("path", Path)]),
    row("Anthropic", List, "text_editor_", &[("command", Word("view")), ("path", Path)]),
];

/// The shells that take `apply_patch` for a command. Codex looks for it in what it runs.
pub(super) fn runs_apply_patch(tool: &str) -> bool {
    matches!(tool, "exec_command" | "shell_command" | "shell" | "container.exec" | "local_shell")
}
