//! Attempts that a child makes, since who makes them is another process, or none, afterwards.

use std::fs;
use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use super::Attempt;
use super::Attempt::{Denied, NotDenied};
use crate::probe::{ChildTask, ProbePlan, ProbeResult, SUBCOMMAND};

/// Starts a child: the same program, with a plan of its own.
pub(super) fn start(plan: &ProbePlan, task: ChildTask) -> io::Result<Child> {
    let file = plan.workspace.join("child.json");
    let own = ProbePlan { child: Some(task), ..plan.clone() };
    fs::write(&file, serde_json::to_vec(&own)?)?;
    Command::new("/proc/self/exe")
        .arg(SUBCOMMAND)
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Has a child make the attempt.
pub(super) fn attempt(plan: &ProbePlan, task: ChildTask) -> Attempt {
    match start(plan, task).and_then(Child::wait_with_output) {
        Ok(output) => match serde_json::from_slice(&output.stdout) {
            Ok(ProbeResult { denied: true, observed, .. }) => Denied(observed),
            Ok(ProbeResult { observed, .. }) => NotDenied(observed),
            Err(_) => NotDenied(format!("unclear: {}", output.status)),
        },
        Err(error) => NotDenied(format!("unclear: {error}")),
    }
}

/// Does the one thing that this child is for.
pub(in super::super) fn be_child(task: ChildTask) -> Attempt {
    match task {
        ChildTask::Wait => {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            Denied("waited".to_owned())
        }
        ChildTask::MakeUserNamespace => match unshare(CloneFlags::CLONE_NEWUSER) {
            Ok(()) => NotDenied("made one".to_owned()),
            Err(error @ (Errno::EPERM | Errno::ENOSPC | Errno::EUSERS)) => Denied(error.desc().to_owned()),
            Err(error) => NotDenied(format!("unclear: {error}")),
        },
    }
}
