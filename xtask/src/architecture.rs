//! `cargo xtask architecture`: prints the crate graph and the shape of each crate, and fails where a rule is broken.
//!
//! Rules: no two top-level modules of a crate use each other; no function above 80 lines; no file above 500 lines.

mod modules;
mod shape;

use std::io::{self, Write};
use std::process::ExitCode;

use self::modules::Modules;
use self::shape::{Longest, longest_file, longest_function};
use crate::TaskResult;
use crate::workspace::{Package, Workspace};

/// A longer function does not fit on a screen.
const MAX_FUNCTION_LINES: usize = 80;
/// A longer file has more than one job.
const MAX_FILE_LINES: usize = 500;

/// Prints the report. The exit code is 1 if a rule is broken.
pub(crate) fn run() -> TaskResult {
    let workspace = Workspace::read()?;
    let mut stdout = io::stdout().lock();
    graph(&workspace, &mut stdout)?;
    let mut broken = Vec::new();
    for package in &workspace.packages {
        check(package, &workspace, &mut stdout, &mut broken)?;
    }
    for rule in &broken {
        writeln!(stdout, "BROKEN: {rule}")?;
    }
    Ok(ExitCode::from(u8::from(!broken.is_empty())))
}

/// One line for each crate: the crates of the workspace that it uses.
fn graph(workspace: &Workspace, text: &mut dyn Write) -> io::Result<()> {
    writeln!(text, "Crates, each with the crates that it uses:")?;
    for package in &workspace.packages {
        let uses = package.dependencies.iter().filter(|used| used.kind.is_none() && used.path.is_some());
        let uses: Vec<&str> = uses.map(|used| used.name.trim_start_matches("herma-")).collect();
        writeln!(text, "  {:12} {}", package.name.trim_start_matches("herma-"), uses.join(" "))?;
    }
    writeln!(text)
}

fn check(
    package: &Package,
    workspace: &Workspace,
    text: &mut dyn Write,
    broken: &mut Vec<String>,
) -> Result<(), crate::command::TaskError> {
    let dir = package.manifest_path.parent().unwrap_or(&workspace.root);
    let root = &workspace.root;
    let modules = Modules::read(&dir.join("src"))?;
    let function = longest_function(&dir.join("src"), root)?;
    let file = longest_file(dir, root)?;
    writeln!(text, "{}", package.name)?;
    for (what, longest, limit) in [("function", function, MAX_FUNCTION_LINES), ("file", file, MAX_FILE_LINES)]
    {
        let Some(Longest { lines, place }) = longest else { continue };
        writeln!(text, "  longest {what:9} {lines:4} lines  {place}")?;
        if lines > limit {
            broken.push(format!("{place}: {what} of {lines} lines; at most {limit}"));
        }
    }
    let pairs = modules.mutual();
    for (a, b) in &pairs {
        writeln!(text, "  mutual            {a} <-> {b}")?;
        broken.push(format!("{}: modules {a} and {b} use each other", package.name));
    }
    Ok(())
}
