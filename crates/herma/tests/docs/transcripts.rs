//! Runs every command of every page and compares what it prints with what the page shows.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::blocks::Block;
use crate::filters::{Filters, matches, shown_places};
use crate::pages::{self, Page};

/// One command of a page with what the page says that it prints.
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
    exit: i32,
}

#[test]
fn every_command_prints_what_its_page_shows() {
    let pages: Vec<Page> = pages::all();
    let programs = Programs::new();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(check_page(page, &programs));
        }
        wrong
    };
    // A few at a time, so that no run on a slow machine meets a limit because of the others.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_readme_shows_both_commands_and_a_whole_run() {
    let blocks = pages::named("README.md").blocks();
    let commands: Vec<String> = blocks.iter().flat_map(shown).map(|shown| shown.command).collect();
    for wanted in ["cargo run --release -- demo", "scripts/test"] {
        assert!(commands.iter().any(|command| command == wanted), "the README does not show `{wanted}`");
    }
}

/// The problem of the page's first command whose output differs from the page; its later ones build on it.
fn check_page(page: &Page, programs: &Programs) -> Option<String> {
    let blocks = page.blocks();
    if blocks.iter().all(|block| block.language != "console") {
        return None;
    }
    if blocks.iter().any(|block| block.text.contains("herma-stub")) && !programs.has_stub {
        return Some(format!("{}: herma-stub is not there: `cargo build -p herma-stub` makes it", page.path));
    }
    let ground = Ground::new(programs);
    let filters = Filters::new();
    for block in &blocks {
        if let Some(file) = &block.file {
            std::fs::write(ground.work().join(file), &block.text).unwrap();
        }
        for shown in shown(block) {
            if let Err(why) = ground.check(&shown, &filters) {
                return Some(format!("{}:{}: `{}`: {why}", page.path, shown.line, shown.command));
            }
        }
    }
    None
}

/// The commands of a block. A line `$ COMMAND` starts one; the last line of its output can be `[exit CODE]`.
fn shown(block: &Block) -> Vec<Shown> {
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

/// The programs that pages run, as they were when the test began: a proof is bound to every byte of them.
struct Programs {
    dir: tempfile::TempDir,
    has_stub: bool,
}

impl Programs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let herma = Path::new(env!("CARGO_BIN_EXE_herma"));
        std::fs::copy(herma, dir.path().join("herma")).unwrap();
        let stub = herma.with_file_name("herma-stub");
        let has_stub = stub.is_file() && std::fs::copy(stub, dir.path().join("herma-stub")).is_ok();
        Self { dir, has_stub }
    }
}

/// Where a page's commands run: a home, a place to work, and herma on PATH.
struct Ground {
    root: tempfile::TempDir,
    path: String,
}

impl Ground {
    fn new(programs: &Programs) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("home/you/projects")).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.dir.path().display());
        Self { root, path }
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home/you")
    }

    fn work(&self) -> PathBuf {
        self.home().join("projects")
    }

    /// Runs the command, or looks at the script that it names, and says what is not as the page shows it.
    fn check(&self, shown: &Shown, filters: &Filters) -> Result<(), String> {
        if let Some(script) = shown.command.split_whitespace().find(|word| word.starts_with("scripts/")) {
            return check_script(&pages::top().join(script));
        }
        if shown.command.contains("cargo test") || shown.command.contains("cargo clippy") {
            return Err("a test cannot run the tests: name the script that does".to_owned());
        }
        // It is this very binary that `cargo run` would build and start, so it is not built a second time.
        let command = shown.command.replace("cargo run --release --", "herma");
        let (output, exit) = self.run(&command);
        let output = shown_places(&output, self.root.path());
        let lines: Vec<String> = output.lines().map(|line| filters.line(line)).collect();
        let page: Vec<String> = shown.output.iter().map(|line| filters.line(line)).collect();
        let page: Vec<String> = trim(page);
        if exit != shown.exit || !matches(&page, &trim(lines)) {
            return Err(format!("the page says exit {}; it was {exit} with\n{output}", shown.exit));
        }
        Ok(())
    }

    #[allow(clippy::disallowed_types, reason = "the test is the person at the keyboard, outside of herma")]
    fn run(&self, command: &str) -> (String, i32) {
        use std::os::unix::process::ExitStatusExt as _;
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("exec 2>&1 </dev/null\n{command}")])
            .current_dir(self.work())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home())
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
}

/// Without empty lines at the end: a page often has one before its next command.
fn trim(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Whether a script that a page shows is sound shell.
#[allow(clippy::disallowed_types, reason = "the test is the person at the keyboard, outside of herma")]
pub(crate) fn check_shell(text: &str) -> Result<(), String> {
    let sh = std::process::Command::new("sh").args(["-n", "-c", text]).output().unwrap();
    if sh.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&sh.stderr).into_owned()) }
}

/// A script of the house takes minutes and runs this very test, so it is not run here: it has to be there, to be
/// executable, and to be sound shell.
#[allow(clippy::disallowed_types, reason = "the test is the person at the keyboard, outside of herma")]
pub(crate) fn check_script(script: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let meta = std::fs::metadata(script).map_err(|e| format!("{}: {e}", script.display()))?;
    if meta.permissions().mode() & 0o111 == 0 {
        return Err(format!("{} is not executable", script.display()));
    }
    let bash = std::process::Command::new("bash").arg("-n").arg(script).output().unwrap();
    if bash.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&bash.stderr).into_owned()) }
}
