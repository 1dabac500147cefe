//! Attempts on other processes.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use nix::sys::ptrace;
use nix::unistd::Pid as NixPid;
use rustix::process::{Pid, test_kill_process};

use super::ProbeOutcome::{Denied, NotDenied};
use super::{ProbeOutcome, judge_numbers};
use crate::probe::{HermaProcess, SUBCOMMAND, WAIT};
use crate::proc;

pub(in super::super) fn see(herma: &HermaProcess) -> ProbeOutcome {
    match in_its_namespace(herma) {
        Err(why) => NotDenied(why),
        Ok(true) => NotDenied("in the pid namespace of the host".to_owned()),
        Ok(false) if shown(herma) => NotDenied(format!("/proc shows process {}", herma.pid)),
        Ok(false) => Denied(format!("/proc does not show process {}", herma.pid)),
    }
}

/// Whether a signal would reach herma; none is sent.
pub(in super::super) fn signal(herma: &HermaProcess) -> ProbeOutcome {
    let Some(pid) = Pid::from_raw(herma.pid) else { return NotDenied("unclear: no number".to_owned()) };
    match (test_kill_process(pid), in_its_namespace(herma)) {
        (Ok(()), Ok(false)) => Denied(format!("{} is another process here", herma.pid)),
        (_, Err(why)) => NotDenied(why),
        (tested, _) => {
            let refused = [libc::ESRCH, libc::EPERM];
            judge_numbers(tested.map_err(io::Error::from), &[], &refused, |()| {
                "a signal would reach it".to_owned()
            })
        }
    }
}

/// Attaches to herma with `PTRACE_SEIZE`, which does not stop it; the probe's exit detaches.
pub(in super::super) fn trace(herma: &HermaProcess) -> ProbeOutcome {
    seize(herma.pid)
}

/// Attaches to another process of the same user inside: only the seccomp filter denies that.
pub(in super::super) fn trace_sibling() -> ProbeOutcome {
    let waiting = Command::new("/proc/self/exe").args([SUBCOMMAND, WAIT]).stdin(Stdio::piped()).spawn();
    let mut sibling = match waiting {
        Ok(sibling) => sibling,
        Err(error) => return NotDenied(format!("unclear: {error}")),
    };
    let attempt = i32::try_from(sibling.id()).map_or(NotDenied("unclear: no number".to_owned()), seize);
    // A dead process cannot be attached to, which proves nothing.
    let attempt = match sibling.try_wait() {
        Ok(None) => attempt,
        Ok(Some(ended)) => NotDenied(format!("unclear: it ended by itself, {ended}")),
        Err(error) => NotDenied(format!("unclear: {error}")),
    };
    let _ = sibling.kill();
    let _ = sibling.wait();
    attempt
}

fn seize(pid: i32) -> ProbeOutcome {
    let seized = ptrace::seize(NixPid::from_raw(pid), ptrace::Options::empty()).map_err(io::Error::from);
    judge_numbers(seized, &[], &[libc::EPERM, libc::ESRCH], |()| format!("traces process {pid}"))
}

fn in_its_namespace(herma: &HermaProcess) -> Result<bool, String> {
    match fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) => Ok(namespace.as_os_str() == herma.pid_namespace.as_str()),
        Err(error) => Err(format!("unclear: cannot read the own pid namespace: {error}")),
    }
}

fn shown(herma: &HermaProcess) -> bool {
    Pid::from_raw(herma.pid).and_then(proc::look).is_some_and(|seen| seen.started == herma.started)
}
