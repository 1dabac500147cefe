//! Finds a tool in a version that fits, with its mounts, variables and digest.

use std::io;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::environment::ToolRequest;
use herma_destination::Mount;

use super::candidates::{Candidate, candidates, paths_like};
use super::credentials::exposes_any;
use super::error::ToolError;
use super::query::{Query, Said};
use super::table::{Layout, TOOLS, ToolRow};
use super::version::{major, version_in};
use super::{FoundTool, HostEnvironment, OperatorTool};
use crate::file_digest::digest_of_file;

/// Directories that every sandbox shows.
const SYSTEM_DIRS: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];
/// Directories that are in every job's `PATH`.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Finds every requested tool and those that they run with, each once.
pub fn find_all(
    requests: &[ToolRequest],
    host: &HostEnvironment,
    own: &[OperatorTool],
) -> Result<Vec<FoundTool>, ToolError> {
    let mut pending: Vec<ToolRequest> = requests.to_vec();
    let mut found: Vec<FoundTool> = Vec::new();
    let mut next = 0;
    while let Some(request) = pending.get(next).cloned() {
        next += 1;
        found.push(find(&request, host, own)?);
        let needs = TOOLS.iter().find(|row| row.name == request.name()).map_or(&[][..], |row| row.needs);
        for name in needs {
            let is_known = pending.iter().any(|request| request.name() == *name);
            pending.extend(ToolRequest::any(name).filter(|_| !is_known));
        }
    }
    Ok(found)
}

/// Finds one tool. The operator's own definition of a name wins over the table.
pub fn find(
    request: &ToolRequest,
    host: &HostEnvironment,
    own: &[OperatorTool],
) -> Result<FoundTool, ToolError> {
    if let Some(tool) = own.iter().find(|tool| tool.name == request.name()) {
        return operator_tool(request, tool, host);
    }
    let row = TOOLS.iter().find(|row| row.name == request.name());
    let row = row.ok_or_else(|| ToolError::Unknown(request.name().to_owned()))?;
    let mut others = Vec::new();
    for candidate in candidates(row, host) {
        let Some(version) = ask_version(row.version_args, host, &candidate) else { continue };
        if request.version().is_none_or(|wanted| wanted.fits(&version)) {
            return describe(row, host, &candidate, version);
        }
        others.push((version, candidate.program));
    }
    Err(ToolError::Missing {
        tool: row.name.to_owned(),
        wanted: request.version().map(ToString::to_string),
        found: others,
        install: row.install.to_owned(),
    })
}

fn ask_version(args: &[&str], host: &HostEnvironment, candidate: &Candidate) -> Option<String> {
    // A script finds its interpreter beside itself first.
    let mut path = candidate.program.parent()?.as_os_str().to_owned();
    path.push(":");
    path.push(&host.search_path);
    let query = Query { program: &candidate.program, args, path: &path, home: &host.home };
    let version_said = |said| version_in(&String::from_utf8_lossy(&query.ask(said)?));
    // Warnings on standard error have numbers too, but Java has its version there.
    version_said(Said::Output).or_else(|| version_said(Said::OutputAndErrors))
}

fn describe(
    row: &ToolRow,
    host: &HostEnvironment,
    candidate: &Candidate,
    version: String,
) -> Result<FoundTool, ToolError> {
    let (prefix, parts) = shown_parts(row, candidate, &host.home)?;
    let is_system = |path: &Path| SYSTEM_DIRS.iter().any(|dir| path.starts_with(dir));
    let mut shown: Vec<PathBuf> =
        parts.into_iter().filter(|path| !is_system(path) && path.exists()).collect();
    if is_system(&candidate.real) {
        let files = row.system_files.iter().map(|file| file.replace("{major}", major(&version)));
        shown.extend(files.map(PathBuf::from).filter(|file| file.exists()));
    }
    let mounts: Vec<Mount> =
        shown.into_iter().map(|path| Mount { host: path.clone(), inside: path }).collect();
    check_mounts(row.name, &mounts, host)?;
    let bin = candidate.program.parent().unwrap_or(Path::new("/")).to_owned();
    let real_bin = candidate.real.parent().unwrap_or(Path::new("/")).to_owned();
    // A program is started by its own name: the directory of its file may hold others of that name, such as npm's wrapper.
    let is_shown =
        |dir: &PathBuf| is_system(dir) || mounts.iter().any(|mount| mounted_in(mount, dir, candidate));
    let shown_dir = [bin, real_bin].into_iter().find(is_shown);
    let is_usual = |dir: &PathBuf| SYSTEM_PATH.iter().any(|known| dir == Path::new(known));
    let search_path: Vec<PathBuf> = shown_dir.into_iter().filter(|dir| !is_usual(dir)).collect();
    let value = |text: &str| text.replace("{prefix}", &prefix.to_string_lossy());
    Ok(FoundTool {
        name: row.name.to_owned(),
        version,
        digest: digest(row.name, &candidate.real)?,
        program: candidate.real.clone(),
        mounts,
        search_path,
        env: row.env.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect(),
    })
}

/// Whether programs of a directory are visible through a mount.
fn mounted_in(mount: &Mount, dir: &Path, candidate: &Candidate) -> bool {
    dir.starts_with(&mount.inside) || (mount.inside == candidate.real && candidate.real.starts_with(dir))
}

/// The prefix of an installation, and the parts of it that are shown.
fn shown_parts(
    row: &ToolRow,
    candidate: &Candidate,
    home: &Path,
) -> Result<(PathBuf, Vec<PathBuf>), ToolError> {
    let dir = candidate.real.parent().unwrap_or(Path::new("/")).to_owned();
    let above = |file: &str| candidate.real.ancestors().skip(1).find(|dir| dir.join(file).exists());
    Ok(match row.layout {
        Layout::Prefix(parts) => {
            let prefix = dir.parent().unwrap_or(Path::new("/")).to_owned();
            if is_shared(&prefix, home) {
                let shown = shared_parts(row, candidate, &prefix)?;
                return Ok((prefix, shown));
            }
            let shown = parts.iter().map(|part| prefix.join(part)).collect();
            (prefix, shown)
        }
        Layout::Directory(parts) => {
            let shown = parts.iter().map(|part| dir.join(part)).collect();
            (dir, shown)
        }
        Layout::Program => (dir, vec![candidate.real.clone()]),
        Layout::NodePackage => match above("package.json") {
            Some(package) => (package.to_owned(), node_package(package, &candidate.program)),
            None => (dir, vec![candidate.real.clone()]),
        },
        Layout::VirtualEnvironment => match above("pyvenv.cfg") {
            Some(venv) => {
                let shown = ["bin", "lib", "pyvenv.cfg"].map(|part| venv.join(part));
                (venv.to_owned(), shown.to_vec())
            }
            None => (dir, vec![candidate.real.clone()]),
        },
    })
}

/// Whether a prefix is the operator's home or `~/.local`, whose `share` and `lib` hold keyrings and data of every program.
fn is_shared(prefix: &Path, home: &Path) -> bool {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    [home.to_owned(), home.join(".local")]
        .into_iter()
        .any(|shared| prefix == shared || prefix == real(shared))
}

/// The program, under each of its names, and what the table names as its own beside it.
fn shared_parts(row: &ToolRow, candidate: &Candidate, prefix: &Path) -> Result<Vec<PathBuf>, ToolError> {
    let Some(own) = row.shared_parts else {
        return Err(ToolError::SharedPrefix { tool: row.name.to_owned(), prefix: prefix.to_owned() });
    };
    let mut shown = vec![candidate.real.clone()];
    if candidate.program != candidate.real && candidate.program.parent() == candidate.real.parent() {
        shown.push(candidate.program.clone());
    }
    shown.extend(own.iter().flat_map(|part| paths_like(prefix.to_owned(), part)));
    Ok(shown)
}

/// A package, and the links to its programs if it is installed globally below a prefix.
fn node_package(package: &Path, program: &Path) -> Vec<PathBuf> {
    let bin = program.parent().unwrap_or(Path::new("/"));
    let modules = bin.parent().map(|prefix| prefix.join("lib/node_modules"));
    let is_global = modules.is_some_and(|modules| package.starts_with(modules));
    [package].into_iter().chain(is_global.then_some(bin)).map(Path::to_owned).collect()
}

fn operator_tool(
    request: &ToolRequest,
    tool: &OperatorTool,
    host: &HostEnvironment,
) -> Result<FoundTool, ToolError> {
    let unreadable = |e: io::Error| ToolError::Unreadable {
        tool: tool.name.clone(),
        program: tool.path.clone(),
        reason: e.to_string(),
    };
    let real = tool.path.canonicalize().map_err(unreadable)?;
    let candidate = Candidate { program: tool.path.clone(), real: real.clone() };
    let version = ask_version(&["--version"], host, &candidate).unwrap_or_else(|| "unknown".to_owned());
    if let Some(wanted) = request.version().filter(|wanted| !wanted.fits(&version)) {
        return Err(ToolError::Missing {
            tool: tool.name.clone(),
            wanted: Some(wanted.to_string()),
            found: vec![(version, tool.path.clone())],
            install: "change `tools` in settings.yaml".to_owned(),
        });
    }
    let shown = tool.mounts.iter().cloned().chain([tool.path.clone()]);
    let mounts: Vec<Mount> = shown.map(|path| Mount { host: path.clone(), inside: path }).collect();
    check_mounts(&tool.name, &mounts, host)?;
    Ok(FoundTool {
        name: tool.name.clone(),
        version,
        digest: digest(&tool.name, &real)?,
        program: real,
        mounts,
        search_path: tool.path.parent().map(Path::to_owned).into_iter().collect(),
        env: tool.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    })
}

fn check_mounts(tool: &str, mounts: &[Mount], host: &HostEnvironment) -> Result<(), ToolError> {
    for mount in mounts {
        if let Some(credential) = exposes_any(mount, &host.home, &host.never_mounted) {
            let (tool, mount) = (tool.to_owned(), mount.host.clone());
            return Err(ToolError::Credentials { tool, mount, credential });
        }
    }
    Ok(())
}

fn digest(tool: &str, program: &Path) -> Result<Digest, ToolError> {
    digest_of_file(program).map_err(|e| ToolError::Unreadable {
        tool: tool.to_owned(),
        program: program.to_owned(),
        reason: e.to_string(),
    })
}
