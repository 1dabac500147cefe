//! The `console` blocks of a page: commands with what they print. The tests of the docs run those that need nothing but herma, and
//! the tests of the real agents those of the pages below `docs/ecosystems`.

use std::path::Path;

use crate::filters::{Filters, matches, shown_places};
use crate::pages::Page;

/// A fenced block.
pub(crate) struct Block {
    /// The first word after the fence.
    pub(crate) language: String,
    /// The file that the reader writes, from `file=NAME` after the language.
    pub(crate) file: Option<String>,
    /// The line of the opening fence.
    pub(crate) line: usize,
    /// The content.
    pub(crate) text: String,
}

impl Page {
    /// The page's fenced blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (at, line) in self.text.lines().enumerate() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(info), None) => {
                    let mut words = info.split_whitespace();
                    let language = words.next().unwrap_or_default().to_owned();
                    let file = words.find_map(|word| word.strip_prefix("file=")).map(str::to_owned);
                    open = Some(Block { language, file, line: at + 1, text: String::new() });
                }
                (None, Some(block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a fence is not closed", self.path);
        blocks
    }
}

/// One command of a page with what the page says that it prints.
pub(crate) struct Shown {
    pub(crate) line: usize,
    pub(crate) command: String,
    output: Vec<String>,
    exit: i32,
}

impl Shown {
    /// Compares the page with what the command printed below this directory.
    pub(crate) fn check(
        &self,
        (output, exit): (String, i32),
        root: &Path,
        filters: &Filters,
    ) -> Result<(), String> {
        let output = shown_places(&output, root);
        let lines: Vec<String> = output.lines().map(|line| filters.line(line)).collect();
        let page: Vec<String> = self.output.iter().map(|line| filters.line(line)).collect();
        let page: Vec<String> = trim(page);
        if exit != self.exit || !matches(&page, &trim(lines)) {
            return Err(format!("the page says exit {}; it was {exit} with\n{output}", self.exit));
        }
        Ok(())
    }
}

/// The commands of a block. A line `$ COMMAND` starts one; the last line of its output can be `[exit CODE]`.
pub(crate) fn shown(block: &Block) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    if block.language != "console" {
        return all;
    }
    for (at, line) in block.text.lines().enumerate() {
        let exit = line.strip_prefix("[exit ").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        match (line.strip_prefix("$ "), exit, all.last_mut()) {
            (Some(command), ..) => all.push(Shown {
                line: block.line + at + 1,
                command: command.to_owned(),
                output: Vec::new(),
                exit: 0,
            }),
            (None, Some(code), Some(last)) => last.exit = code,
            (None, None, Some(last)) => last.output.push(line.to_owned()),
            (None, _, None) => panic!("line {}: output before the first command", block.line + at + 1),
        }
    }
    all
}

/// Runs a command of a page as its reader does, and gives what it prints and its exit code.
#[allow(clippy::disallowed_types, reason = "the test is the person at the keyboard, outside of herma")]
pub(crate) fn run_command(
    command: &str,
    dir: &Path,
    variables: impl IntoIterator<Item = (impl AsRef<std::ffi::OsStr>, impl AsRef<std::ffi::OsStr>)>,
) -> (String, i32) {
    use std::os::unix::process::ExitStatusExt as _;
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("exec 2>&1 </dev/null\n{command}")])
        .current_dir(dir)
        .env_clear()
        .envs(variables)
        .env("LC_ALL", "C.UTF-8")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "you")
        .env("GIT_AUTHOR_EMAIL", "you@example.org")
        .env("GIT_COMMITTER_NAME", "you")
        .env("GIT_COMMITTER_EMAIL", "you@example.org")
        .output()
        .unwrap();
    // A shell may let its last command take its place, and then the signal is its own.
    let exit = output.status.code().or_else(|| Some(128 + output.status.signal()?)).unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), exit)
}

/// Without empty lines at the end: a page often has one before its next command.
fn trim(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
