//! Why a tool is not there.

use std::path::PathBuf;

/// A tool could not be found, or may not be mounted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// No installation fits.
    #[error("{}", missing(tool, wanted.as_deref(), found, install))]
    Missing {
        /// The tool.
        tool: String,
        /// The requested version.
        wanted: Option<String>,
        /// The versions that are there, each with its program.
        found: Vec<(String, PathBuf)>,
        /// A command that installs it.
        install: String,
    },
    /// It is known neither to herma nor in the operator's settings.
    #[error("unknown tool `{0}`: add it to `tools` in settings.yaml")]
    Unknown(String),
    /// Mounting it would show credentials inside.
    #[error(
        "the tool `{tool}` is not mounted: `{}` holds `{}`, which may hold credentials; install it elsewhere",
        mount.display(),
        credential.display()
    )]
    Credentials {
        /// The tool.
        tool: String,
        /// The directory that would be mounted.
        mount: PathBuf,
        /// The file or directory of credentials.
        credential: PathBuf,
    },
    /// Its files are among those of other programs and of the operator.
    #[error(
        "the tool `{tool}` is not mounted: it is installed directly in `{}`, which holds files of other programs and your own; \
         install it into a directory of its own",
        prefix.display()
    )]
    SharedPrefix {
        /// The tool.
        tool: String,
        /// The directory.
        prefix: PathBuf,
    },
    /// The file of the program cannot be read.
    #[error("the program of the tool `{tool}`, `{}`, cannot be read: {reason}", program.display())]
    Unreadable {
        /// The tool.
        tool: String,
        /// Its program.
        program: PathBuf,
        /// The error of the system.
        reason: String,
    },
}

fn missing(tool: &str, wanted: Option<&str>, found: &[(String, PathBuf)], install: &str) -> String {
    let versions: Vec<String> =
        found.iter().map(|(version, program)| format!("{version} ({})", program.display())).collect();
    match (wanted, versions.is_empty()) {
        (Some(wanted), false) => {
            format!("there is no {tool} {wanted}: found {}; install it: {install}", versions.join(", "))
        }
        (Some(wanted), true) => format!("there is no {tool} {wanted} on this machine; install it: {install}"),
        (None, _) => format!("there is no {tool} on this machine; install it: {install}"),
    }
}
