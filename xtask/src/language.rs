//! `cargo xtask language`: checks comments, messages, names and documents against the rules of `xtask/language.toml`.

mod rules;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use self::rules::Rules;
use self::text::{Piece, pieces};
use crate::TaskResult;
use crate::command::{TaskError, output};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Count what the rules find in files that are not on the list of checked paths yet, file by file
    #[arg(long)]
    unchecked: bool,
    /// Check these files or directories, on the list or not
    paths: Vec<PathBuf>,
}

/// A match of a rule.
struct Finding {
    path: String,
    line: usize,
    found: String,
    instead: String,
}

/// Prints what the rules find. The exit code is 1 if they find anything in a checked path.
pub(crate) fn run(arguments: &Arguments) -> TaskResult {
    let root = Workspace::read()?.root;
    let rules = Rules::read(&root.join("xtask/language.toml"))?;
    let mut stdout = io::stdout().lock();
    if arguments.unchecked {
        return unchecked(&root, &rules);
    }
    let chosen = |path: &str| {
        if arguments.paths.is_empty() {
            rules.checks(path)
        } else {
            arguments.paths.iter().any(|chosen| Path::new(path).starts_with(chosen))
        }
    };
    let mut findings = Vec::new();
    for path in files()?.iter().filter(|path| chosen(path)) {
        findings.extend(check(&root, path, &rules));
    }
    for Finding { path, line, found, instead } in &findings {
        writeln!(stdout, "{path}:{line}: \"{found}\": {instead}")?;
    }
    let unused = if arguments.paths.is_empty() { rules.unused_exceptions() } else { Vec::new() };
    for exception in &unused {
        writeln!(stdout, "xtask/language.toml: the exception for {exception} matches nothing: remove it")?;
    }
    let broken = findings.len() + unused.len();
    writeln!(stdout, "language: {broken} findings")?;
    Ok(ExitCode::from(u8::from(broken > 0)))
}

/// The files of the repository that the rules know how to read.
fn files() -> Result<Vec<String>, TaskError> {
    let listed = output("git", &["ls-files", "*.rs", "*.md", "*.toml", "scripts", ".ci"])?;
    Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
}

fn check(root: &Path, path: &str, rules: &Rules) -> Vec<Finding> {
    let file = root.join(path);
    // A file that was removed and is not committed yet is still listed.
    let Ok(text) = fs::read(&file) else { return Vec::new() };
    let text = String::from_utf8_lossy(&text);
    let found = pieces(path, &text).into_iter().flat_map(|Piece { line, scope, text }| {
        let found = rules.find(path, scope, &text);
        found.into_iter().map(move |(found, instead)| Finding { path: path.to_owned(), line, found, instead })
    });
    found.collect()
}

fn unchecked(root: &Path, rules: &Rules) -> TaskResult {
    let mut counts = BTreeMap::new();
    for path in files()?.iter().filter(|path| !rules.checks(path)) {
        counts.insert(path.clone(), check(root, path, rules).len());
    }
    let mut stdout = io::stdout().lock();
    for (path, count) in &counts {
        writeln!(stdout, "{count:5} {path}")?;
    }
    Ok(ExitCode::SUCCESS)
}
