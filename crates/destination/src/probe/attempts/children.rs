//! Attempts that a child makes, since who makes them is another process, or none, afterwards.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{FallocateFlags, fallocate};

use super::Attempt;
use super::Attempt::{Denied, NotDenied};
use crate::memory;
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

/// Has a child make the attempt. One that the kernel killed was refused in the kernel's way.
pub(super) fn attempt(plan: &ProbePlan, task: ChildTask) -> Attempt {
    let ended = start(plan, task).and_then(Child::wait_with_output);
    match ended {
        Ok(output) if output.status.signal() == Some(libc::SIGKILL) => {
            Denied("killed by the kernel".to_owned())
        }
        Ok(output) => match serde_json::from_slice::<Vec<ProbeResult>>(&output.stdout).as_deref() {
            Ok([ProbeResult { denied: true, observed, .. }]) => Denied(observed.clone()),
            Ok([ProbeResult { observed, .. }]) => NotDenied(observed.clone()),
            _ => NotDenied(format!("unclear: {}", output.status)),
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
        ChildTask::FillMemory(bytes) => fill(bytes),
        ChildTask::MakeUserNamespace => match unshare(CloneFlags::CLONE_NEWUSER) {
            Ok(()) => NotDenied("made one".to_owned()),
            Err(error @ (Errno::EPERM | Errno::ENOSPC | Errno::EUSERS)) => Denied(error.desc().to_owned()),
            Err(error) => NotDenied(format!("unclear: {error}")),
        },
    }
}

/// Which part of what is tried is a file; twice the limit is tried.
const AS_FILE: u64 = 4;

fn fill(bytes: usize) -> Attempt {
    let mut memory: Vec<u8> = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return Denied("no more memory is given".to_owned());
    }
    // A file in memory counts as all memory does and costs a third of the time, for which every run waits. But it is
    // nobody's own, and who has most of its own is killed: so the rest is.
    let part = bytes as u64 / AS_FILE;
    let file = memory::file(b"").and_then(|file| {
        fallocate(&file, FallocateFlags::empty(), 0, part)?;
        Ok(file)
    });
    let Ok(_file) = file else { return NotDenied("unclear: a part of the memory was refused".to_owned()) };
    while memory.len() < bytes {
        memory.extend_from_slice(&[1; 4096]);
    }
    // Looked at, so that it is really written.
    NotDenied(format!("filled {} bytes", std::hint::black_box(&memory).len()))
}
