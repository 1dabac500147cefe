//! Runs every command of every page and compares what it prints with what the page shows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::console::{Shown, run_command, shown};
use crate::filters::Filters;
use crate::pages::{self, Page};

/// The pages whose commands need a real agent and the registries: the tests of the real agents run them.
const WITH_REAL_AGENT: [&str; 2] = ["docs/ecosystems/", "docs/start.md"];

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
    let needs_agent = WITH_REAL_AGENT.iter().any(|start| page.path.starts_with(start));
    if needs_agent || blocks.iter().all(|block| block.language != "console") {
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
        let home = self.home();
        let variables =
            [(OsStr::new("PATH"), OsStr::new(&self.path)), (OsStr::new("HOME"), home.as_os_str())];
        let ended = run_command(&command, &self.work(), variables);
        shown.check(ended, self.root.path(), filters)
    }
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
