//! Starts the commands of a script.
#![allow(
    clippy::disallowed_types,
    reason = "fake is the agent: what it starts lives and dies inside the destination"
)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Runs the command to its end.
pub(super) fn run(command: &str, workspace: &Path, output: &File) -> io::Result<ExitStatus> {
    start("/bin/sh", &["-c", command], workspace, output)
}

/// Starts the command in a session of its own without a waiting parent, and leaves it running.
pub(super) fn leave_behind(command: &str, workspace: &Path, output: &File) -> io::Result<ExitStatus> {
    start("setsid", &["--fork", "/bin/sh", "-c", command], workspace, output)
}

fn start(program: &str, args: &[&str], workspace: &Path, output: &File) -> io::Result<ExitStatus> {
    Command::new(program)
        .args(args)
        .current_dir(workspace)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .status()
}
