//! The process table: living processes, their parents, and the run that they belong to.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use herma_core::RunId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::variable_names::RUN_VARIABLE;

/// A process that does not die within this time of SIGKILL hangs in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// A process shows an empty environment for a moment during exec. It would be taken for another user's, so
/// processes with an empty environment are read again.
const EXEC_RETRY_DELAY: Duration = Duration::from_millis(2);
const MAX_LOOKS: usize = 5;
/// kthreadd, the parent of all kernel threads.
const KERNEL: i32 = 2;

/// A living process as read from /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessInfo {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    /// The start time in clock ticks since boot; with the pid it identifies a process.
    pub(crate) started: u64,
}

/// Every living process; one that exits during the scan is left out.
pub(crate) fn alive() -> io::Result<Vec<ProcessInfo>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            all.extend(look(pid));
        }
    }
    Ok(all)
}

/// The process with this pid, if it is alive.
pub(crate) fn look(pid: Pid) -> Option<ProcessInfo> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &stat)
}

fn parse(pid: Pid, stat: &str) -> Option<ProcessInfo> {
    // The second field is the command's name in parentheses, which may itself contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    // A zombie thread-group leader makes the process look dead while other threads run.
    let dead = matches!(*fields.first()?, "Z" | "X" | "x") && threads <= 1;
    let seen =
        ProcessInfo { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? };
    (!dead).then_some(seen)
}

/// The descendants of `root` among `all`, without `root` itself.
pub(crate) fn descendants(root: Pid, all: &[ProcessInfo]) -> Vec<ProcessInfo> {
    let mut family = HashSet::from([root.as_raw_nonzero().get()]);
    loop {
        let before = family.len();
        family.extend(
            all.iter().filter(|p| family.contains(&p.parent)).map(ProcessInfo::number).collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    all.iter().filter(|p| p.pid != root && family.contains(&p.number())).copied().collect()
}

/// The processes among `all` that carry the run's id in their environment and belong to herma's user.
pub(crate) fn of_run(run: RunId, all: &[ProcessInfo]) -> Vec<ProcessInfo> {
    let marker = format!("{RUN_VARIABLE}={run}");
    let own = rustix::process::getpid();
    let mut found = Vec::new();
    let mut unclear: Vec<ProcessInfo> = all.iter().filter(|p| p.pid != own && p.is_ours()).copied().collect();
    for _ in 0..MAX_LOOKS {
        let mut blank = Vec::new();
        for process in unclear {
            match process.environment() {
                Some(environment) if environment.is_empty() => blank.push(process),
                Some(environment) if carries(&environment, marker.as_bytes()) => found.push(process),
                _ => {}
            }
        }
        if blank.is_empty() {
            break;
        }
        std::thread::sleep(EXEC_RETRY_DELAY);
        unclear = blank;
    }
    found
}

fn carries(environment: &[u8], marker: &[u8]) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| variable == marker)
}

/// Kills the processes that `select` finds until it finds none; returns how many there were.
pub(crate) fn kill_until_none(mut select: impl FnMut() -> io::Result<Vec<ProcessInfo>>) -> io::Result<usize> {
    let give_up = Instant::now() + KILL_TIMEOUT;
    let mut killed = HashSet::new();
    loop {
        let found = select()?;
        if found.is_empty() {
            return Ok(killed.len());
        }
        if Instant::now() > give_up {
            let pids: Vec<i32> = found.iter().map(ProcessInfo::number).collect();
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("processes {pids:?} do not die")));
        }
        let handles: Vec<OwnedFd> = found.iter().filter_map(|p| p.signal(Signal::KILL)).collect();
        killed.extend(found);
        for handle in &handles {
            ended(handle, Duration::from_millis(200))?;
        }
    }
}

/// Blocks until the process behind the pidfd has exited, at most for `at_most`; returns whether it has.
pub(crate) fn ended(handle: &OwnedFd, at_most: Duration) -> io::Result<bool> {
    readable(handle, at_most)
}

/// Blocks until `file` is readable, at most for `at_most`; returns whether it is.
pub(crate) fn readable(file: &OwnedFd, at_most: Duration) -> io::Result<bool> {
    // A deadline beyond the range of the clock is no deadline.
    let deadline = Instant::now().checked_add(at_most);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(file, PollFlags::IN)], timeout.as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl ProcessInfo {
    /// Its pid as a number.
    pub(crate) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends the signal to exactly this process and returns its pidfd; `None` if it has exited.
    pub(crate) fn signal(&self, signal: Signal) -> Option<OwnedFd> {
        let handle = self.handle()?;
        pidfd_send_signal(&handle, signal).ok()?;
        Some(handle)
    }

    /// A pidfd, which stays with this process when its pid is reused.
    pub(crate) fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(self.pid, PidfdFlags::empty()).ok()?;
        // Checked again with the pidfd open: from here on a reused pid is noticed.
        (look(self.pid)?.started == self.started).then_some(handle)
    }

    fn is_ours(&self) -> bool {
        // Kernel threads, all children of kthreadd, execute no program.
        self.parent != KERNEL
            && self.number() != KERNEL
            && fs::metadata(format!("/proc/{}", self.number()))
                .is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
    }

    /// Its environment; `None` if it has exited.
    fn environment(&self) -> Option<Vec<u8>> {
        fs::read(format!("/proc/{}/environ", self.number())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    fn line(name: &str, state: &str, parent: i32, threads: u32, started: u64) -> String {
        format!("7 ({name}) {state} {parent} 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 {started} 1 1")
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let seen = parse(pid(7), &line("evil) Z 1 (x", "S", 42, 1, 900)).unwrap();
        assert_eq!((seen.parent, seen.started), (42, 900));
    }

    #[test]
    fn a_zombie_is_dead_unless_its_other_threads_go_on() {
        assert_eq!(parse(pid(7), &line("a", "Z", 1, 1, 5)), None);
        assert!(parse(pid(7), &line("a", "Z", 1, 2, 5)).is_some());
    }

    #[test]
    fn descendants_are_found_in_any_order_of_the_table() {
        let seen = |number, parent| ProcessInfo { pid: pid(number), parent, started: 0 };
        let all = [seen(9, 8), seen(8, 5), seen(5, 1), seen(6, 1), seen(10, 9)];
        let mut found: Vec<i32> = descendants(pid(5), &all).iter().map(ProcessInfo::number).collect();
        found.sort_unstable();
        assert_eq!(found, [8, 9, 10]);
    }

    #[test]
    fn this_process_is_alive_and_a_handle_on_a_reused_number_is_refused() {
        let own = look(rustix::process::getpid()).unwrap();
        assert!(alive().unwrap().contains(&own));
        assert!(own.handle().is_some());
        assert!(ProcessInfo { started: own.started + 1, ..own }.handle().is_none());
    }
}
