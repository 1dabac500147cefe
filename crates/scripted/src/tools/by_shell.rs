//! Shell commands for intents without a tool of their own.

use super::by_patch::is_apply_patch;
use crate::call::{Call, EditFile, WriteFile};

/// The command that does what `call` wants; none for a tool that the script names.
pub(super) fn command(call: &Call) -> Option<String> {
    Some(match call {
        Call::Shell(command) => command.clone(),
        Call::Write(file) => write(file),
        Call::Edit(file) => edit(file),
        Call::Patch(patch) if is_apply_patch(patch) => fed("apply_patch", patch),
        Call::Patch(patch) => fed("git apply -", patch),
        Call::Read(path) => format!("cat -- {}", quoted(path)),
        Call::List(path) => format!("ls -la -- {}", quoted(path)),
        Call::Tool(_) => return None,
    })
}

fn write(file: &WriteFile) -> String {
    let path = quoted(&file.path);
    let directory = match file.path.rsplit_once('/') {
        Some((directory, _)) if !directory.is_empty() => format!("mkdir -p -- {} && ", quoted(directory)),
        _ => String::new(),
    };
    if file.text.ends_with('\n') {
        format!("{directory}{}", fed(&format!("cat > {path}"), &file.text))
    } else {
        // A here-document always ends its last line.
        format!("{directory}printf '%s' {} > {path}", quoted(&file.text))
    }
}

/// The first `old` becomes `new`, byte by byte. The command fails and changes nothing where there is none.
fn edit(file: &EditFile) -> String {
    let program = r#"BEGIN { RS = "\001"; ORS = "" } { at = index($0, ENVIRON["OLD"]); if (!at) exit 3; print substr($0, 1, at - 1) ENVIRON["NEW"] substr($0, at + length(ENVIRON["OLD"])) }"#;
    let path = quoted(&file.path);
    format!(
        "edited=$(OLD={} NEW={} awk '{program}' < {path} && printf x) && printf '%s' \"${{edited%x}}\" > {path}",
        quoted(&file.old),
        quoted(&file.new),
    )
}

/// `command` with `text` as its input.
fn fed(command: &str, text: &str) -> String {
    let mut end = "HERMA_END".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{command} <<'{end}'\n{text}{newline}{end}\n")
}

/// One word for a POSIX shell, whatever is in it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_quotes_or_its_here_document() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(fed("cat", "HERMA_END\n"), "cat <<'HERMA_END_'\nHERMA_END\nHERMA_END_\n");
        assert_eq!(fed("cat", ""), "cat <<'HERMA_END'\nHERMA_END\n");
    }

    #[test]
    fn a_file_is_written_with_exactly_its_text() {
        let file =
            |path: &str, text: &str| write(&WriteFile { path: path.to_owned(), text: text.to_owned() });
        assert_eq!(file("a/b.sh", "x\n"), "mkdir -p -- 'a' && cat > 'a/b.sh' <<'HERMA_END'\nx\nHERMA_END\n");
        assert_eq!(file("/b", "x"), "printf '%s' 'x' > '/b'");
    }
}
