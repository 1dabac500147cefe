//! The person's pager, for long output on a terminal. It is a program of the person's own choice that runs as they do, on the
//! terminal, like git's: nothing of a run's destination applies to it.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Variables that herma passes on to no program.
const SECRETS: [&str; 2] = ["HERMA_APPROVER_TOKEN", "HERMA_STORE_PASSWORD"];

/// A program and its arguments, as `PAGER` names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pager {
    /// The command line, which the shell reads.
    pub command: String,
    /// Whether the person has options for `less`; otherwise it is to end at once with little output, and to show colours.
    pub has_less_options: bool,
}

impl Pager {
    /// Shows the text and waits until the person leaves the pager.
    pub fn show(&self, text: &[u8], search_path: &OsStr) -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.command).env("PATH", search_path).stdin(Stdio::piped());
        for secret in SECRETS {
            command.env_remove(secret);
        }
        if !self.has_less_options {
            command.env("LESS", "FRX");
        }
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A person may leave before the end.
            match stdin.write_all(text) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => drop(stdin),
            }
        }
        let status = child.wait()?;
        // The shell's code for a command that it cannot find or start.
        match status.code() {
            Some(126 | 127) => Err(io::Error::other(format!("`{}` cannot be started", self.command))),
            _ => Ok(()),
        }
    }
}
