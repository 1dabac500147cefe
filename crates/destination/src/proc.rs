//! The process table: who is alive, who started whom, who belongs to a run.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use herma_core::RunId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::environment::RUN_VARIABLE;

/// A process that does not die within this time of SIGKILL hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);

/// While a process goes from one program to the next it shows no variables for a moment. A daemon that is looked at
/// then would be taken for somebody else's, so whoever shows none is looked at again.
const BETWEEN_PROGRAMS: Duration = Duration::from_millis(2);
const LOOKS: usize = 5;
/// The process that all threads of the kernel belong to.
const KERNEL: i32 = 2;

/// One living process, as the table showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    /// When it started, in clock ticks since boot: with the pid it names a process for good.
    pub(crate) started: u64,
}

/// Every living process; one that ends while the table is read is left out.
pub(crate) fn alive() -> io::Result<Vec<Seen>> {
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

/// The process with this number, if it is alive.
pub(crate) fn look(pid: Pid) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &stat)
}

fn parse(pid: Pid, stat: &str) -> Option<Seen> {
    // The second field is the command's name in brackets, and the name itself may hold spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    // A first thread that has ended makes the process look dead while its other threads go on.
    let dead = matches!(*fields.first()?, "Z" | "X" | "x") && threads <= 1;
    let seen = Seen { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? };
    (!dead).then_some(seen)
}

/// Those of `all` that `root` started, directly or not; `root` itself is not among them.
pub(crate) fn descendants(root: Pid, all: &[Seen]) -> Vec<Seen> {
    let mut family = HashSet::from([root.as_raw_nonzero().get()]);
    loop {
        let before = family.len();
        family
            .extend(all.iter().filter(|p| family.contains(&p.parent)).map(Seen::number).collect::<Vec<_>>());
        if family.len() == before {
            break;
        }
    }
    all.iter().filter(|p| p.pid != root && family.contains(&p.number())).copied().collect()
}

/// Those of `all` that carry the run's name in their environment and belong to the user that herma runs as.
pub(crate) fn of_run(run: RunId, all: &[Seen]) -> Vec<Seen> {
    let marker = format!("{RUN_VARIABLE}={run}");
    let own = rustix::process::getpid();
    let mut found = Vec::new();
    let mut unclear: Vec<Seen> = all.iter().filter(|p| p.pid != own && p.is_ours()).copied().collect();
    for _ in 0..LOOKS {
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
        std::thread::sleep(BETWEEN_PROGRAMS);
        unclear = blank;
    }
    found
}

fn carries(environment: &[u8], marker: &[u8]) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| variable == marker)
}

/// Kills what `select` finds, again and again until it finds nothing, and says how many processes that were.
pub(crate) fn kill_until_none(mut select: impl FnMut() -> io::Result<Vec<Seen>>) -> io::Result<usize> {
    let give_up = Instant::now() + PATIENCE;
    let mut killed = HashSet::new();
    loop {
        let found = select()?;
        if found.is_empty() {
            return Ok(killed.len());
        }
        if Instant::now() > give_up {
            let pids: Vec<i32> = found.iter().map(Seen::number).collect();
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("processes {pids:?} do not die")));
        }
        let handles: Vec<OwnedFd> = found.iter().filter_map(|p| p.signal(Signal::KILL)).collect();
        killed.extend(found);
        for handle in &handles {
            ended(handle, Duration::from_millis(200))?;
        }
    }
}

/// Sleeps until the process behind `handle` has ended, but no longer than `at_most`; says whether it has.
pub(crate) fn ended(handle: &OwnedFd, at_most: Duration) -> io::Result<bool> {
    readable(handle, at_most)
}

/// Sleeps until `file` can be read, but no longer than `at_most`; says whether it can.
pub(crate) fn readable(file: &OwnedFd, at_most: Duration) -> io::Result<bool> {
    // A deadline that lies beyond what the clock can say is no deadline.
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

impl Seen {
    /// Its number, as the table writes it.
    pub(crate) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends the signal to exactly this process and gives a handle on it; `None` if it has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Option<OwnedFd> {
        let handle = self.handle()?;
        pidfd_send_signal(&handle, signal).ok()?;
        Some(handle)
    }

    /// A handle that stays with this process when its number is given to another one.
    pub(crate) fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(self.pid, PidfdFlags::empty()).ok()?;
        // Looked at again with the handle open: from here on the number cannot change hands unnoticed.
        (look(self.pid)?.started == self.started).then_some(handle)
    }

    fn is_ours(&self) -> bool {
        // The kernel's own threads, all of them children of the second process, run no program.
        self.parent != KERNEL
            && self.number() != KERNEL
            && fs::metadata(format!("/proc/{}", self.number()))
                .is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
    }

    /// Its variables; `None` if it has ended.
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
        let seen = |number, parent| Seen { pid: pid(number), parent, started: 0 };
        let all = [seen(9, 8), seen(8, 5), seen(5, 1), seen(6, 1), seen(10, 9)];
        let mut found: Vec<i32> = descendants(pid(5), &all).iter().map(Seen::number).collect();
        found.sort_unstable();
        assert_eq!(found, [8, 9, 10]);
    }

    #[test]
    fn this_process_is_alive_and_a_handle_on_a_reused_number_is_refused() {
        let own = look(rustix::process::getpid()).unwrap();
        assert!(alive().unwrap().contains(&own));
        assert!(own.handle().is_some());
        assert!(Seen { started: own.started + 1, ..own }.handle().is_none());
    }
}
