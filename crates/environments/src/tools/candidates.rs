//! The programs on this machine that may be a tool, in the order in which they are asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::HostEnvironment;
use super::query::{Query, Said};
use super::table::{ManagerPlace, ToolRow};

/// Directories of version managers whose programs only start others.
const SHIM_DIRS: &[&str] = &[
    ".asdf/shims",
    ".local/share/mise/shims",
    ".local/share/fnm/aliases",
    ".nodenv/shims",
    ".pyenv/shims",
    ".rbenv/shims",
    ".volta/bin",
];

/// rustup's shims, among programs that cargo installed.
const CARGO_BIN: &str = ".cargo/bin";

/// One program that may be the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The path to start it by: with its name, which may decide what it does.
    pub(super) program: PathBuf,
    /// Its file.
    pub(super) real: PathBuf,
}

/// Every candidate: first the one that the operator's PATH and variables choose, then those of version managers.
pub(super) fn candidates(row: &ToolRow, host: &HostEnvironment) -> Vec<Candidate> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for variable in row.prefix_variables {
        let prefix = host.variables.get(*variable).map(PathBuf::from).filter(|prefix| prefix.is_absolute());
        dirs.extend(prefix.into_iter().flat_map(|prefix| [prefix.join("bin"), prefix]));
    }
    dirs.extend(std::env::split_paths(&host.search_path).filter(|dir| dir.is_absolute()));
    dirs.extend(row.managers.iter().flat_map(|place| manager_dirs(place, host)));
    let mut found: Vec<Candidate> = Vec::new();
    for dir in dirs {
        for name in row.programs {
            let program = dir.join(name);
            if let Some(candidate) = candidate(row, host, &program)
                && !found.iter().any(|known| known.real == candidate.real)
            {
                found.push(candidate);
            }
        }
    }
    found
}

fn candidate(row: &ToolRow, host: &HostEnvironment, program: &Path) -> Option<Candidate> {
    if !is_executable(program) {
        return None;
    }
    let real = program.canonicalize().ok()?;
    let cargo_bin = row.prefix_args.map(|_| &CARGO_BIN);
    let is_shim = SHIM_DIRS.iter().chain(cargo_bin).any(|dir| {
        let dir = host.home.join(dir);
        program.starts_with(&dir) || real.starts_with(&dir)
    });
    if !is_shim && !is_script(row, &real) {
        return Some(Candidate { program: program.to_owned(), real });
    }
    let prefix = ask_prefix(row, host, program)?;
    let own = row.programs.iter().map(|name| prefix.join("bin").join(name)).find(|own| is_executable(own))?;
    let real = own.canonicalize().ok()?;
    Some(Candidate { program: own, real })
}

/// Whether a program that is a binary elsewhere is a script here: a manager's shim outside of the known directories.
fn is_script(row: &ToolRow, real: &Path) -> bool {
    row.prefix_args.is_some() && herma_files::read_start(real, 2).is_ok_and(|start| start == b"#!")
}

fn ask_prefix(row: &ToolRow, host: &HostEnvironment, program: &Path) -> Option<PathBuf> {
    let query = Query { program, args: row.prefix_args?, path: &host.search_path, home: &host.home };
    let said = String::from_utf8(query.ask(Said::Output)?).ok()?;
    let prefix = PathBuf::from(said.trim());
    // Resolved: a link could lead from the path that is checked to another one that is then mounted.
    prefix.is_absolute().then(|| prefix.canonicalize().ok()).flatten()
}

/// The directories that a place names, newest version first.
fn manager_dirs(place: &ManagerPlace, host: &HostEnvironment) -> Vec<PathBuf> {
    if let Some(absolute) = place.programs.strip_prefix('/') {
        return expand(PathBuf::from("/"), absolute);
    }
    let named = host.variables.get(place.variable).map(PathBuf::from).filter(|dir| dir.is_absolute());
    expand(named.unwrap_or_else(|| host.home.join(place.default)), place.programs)
}

/// Replaces each `*` by the names that are there.
fn expand(root: PathBuf, below: &str) -> Vec<PathBuf> {
    paths_like(root, below).into_iter().filter(|dir| dir.is_dir()).collect()
}

/// The paths below `root` that are like this one, in which `*` stands for a part of a name. Only the last name may be missing.
pub(super) fn paths_like(root: PathBuf, below: &str) -> Vec<PathBuf> {
    let mut dirs = vec![root];
    for part in below.split('/').filter(|part| !part.is_empty()) {
        let matching = |dir: &PathBuf| -> Vec<PathBuf> {
            let Some((before, after)) = part.split_once('*') else { return vec![dir.join(part)] };
            let mut names: Vec<String> = fs::read_dir(dir)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .filter(|name| name.starts_with(before) && name.ends_with(after))
                .collect();
            names.sort_by_key(|name| std::cmp::Reverse(numbers(name)));
            names.into_iter().map(|name| dir.join(name)).collect()
        };
        dirs = dirs.iter().flat_map(matching).collect();
    }
    dirs
}

/// The numbers of a name, so that 3.12 is newer than 3.9.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
