//! The people of an installation: approvers, and who sits at a terminal.
#![allow(clippy::disallowed_types, reason = "the tests start the real binary from outside")]

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Ended, Herma};

impl Herma {
    /// Makes an approver with a passphrase; `by` lets in everyone but the first.
    pub(crate) fn let_in(&self, name: &str, by: Option<&str>) {
        let file = |name: &str| format!("{name}.txt");
        self.file(&file(name), format!("the passphrase of {name}\n"));
        let mut args =
            ["approver", "init", name, "--passphrase-file", &file(name)].map(str::to_owned).to_vec();
        if let Some(by) = by {
            args.extend(["--by", by, "--by-passphrase-file", &file(by)].map(str::to_owned));
        }
        let ended = self.run(&args);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }

    /// Runs a command as this approver.
    pub(crate) fn run_as(&self, name: &str, args: &[&str]) -> Ended {
        self.run(&as_approver(name, args))
    }

    /// Starts a command at a terminal of its own, where this was typed, and kills it as soon as the condition holds.
    pub(crate) fn kill_typing(&self, typed: &str, args: &[&str], mut when: impl FnMut() -> bool) -> Ended {
        at_terminal(typed, |stdin| {
            let mut started = self.start_reading(args, stdin);
            while started.is_alive() && !when() {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            started.kill()
        })
    }

    /// The operator's settings for the whole installation.
    pub(crate) fn settings(&self, text: &str) {
        std::fs::write(self.marked_home().join("settings.yaml"), text).unwrap();
    }
}

/// The arguments of a command that this approver signs.
pub(crate) fn as_approver(name: &str, args: &[&str]) -> Vec<String> {
    let file = format!("{name}.txt");
    [args, &["--approver", name, "--passphrase-file", &file]]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Gives the command a terminal as its standard input, on which this was typed already.
pub(super) fn at_terminal(typed: &str, run: impl FnOnce(Stdio) -> Ended) -> Ended {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let inside = File::options().read(true).write(true).open(name).unwrap();
    let mut terminal = File::from(terminal);
    writeln!(terminal, "{typed}").unwrap();
    run(inside.into())
}
