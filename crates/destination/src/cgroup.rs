//! Cgroups: limits on the memory, processes and CPU time of all processes of a job together, where this machine
//! lets herma create groups. herma creates groups below or beside its own, and changes no other.

mod hierarchy;
mod initial_cgroup;

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use rustix::process::Pid;

use self::hierarchy::{CgroupParent, CgroupVersion, Controller};
pub(crate) use self::initial_cgroup::InitialCgroup;
use crate::limits::{Held, HeldBy, LimitName, Limits};

/// The CFS bandwidth period, in microseconds.
const CFS_PERIOD_US: u64 = 100_000;
/// The kernel releases a group shortly after its last process has died.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The cgroup of one job. Dropping it removes it, which succeeds once every process in it is dead.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dirs: Vec<PathBuf>,
    initial: InitialCgroup,
    /// The groups of version 2, which a process is moved into after its start.
    later: Vec<PathBuf>,
}

/// The directories in which groups can be created. Looked up once, because herma does not move between groups.
fn usable() -> &'static [CgroupParent] {
    static USABLE: OnceLock<Vec<CgroupParent>> = OnceLock::new();
    USABLE.get_or_init(|| hierarchy::usable().unwrap_or_default())
}

/// The limits that cgroups enforce on this machine.
pub(crate) fn will_hold(limits: &Limits) -> Vec<Held> {
    held(usable(), limits)
}

fn held(places: &[CgroupParent], limits: &Limits) -> Vec<Held> {
    let mut all = Vec::new();
    for place in places {
        let by = match place.version {
            CgroupVersion::One => HeldBy::CgroupV1,
            CgroupVersion::Two => HeldBy::CgroupV2,
        };
        all.extend(place.controllers.iter().map(|controller| match controller {
            Controller::Memory => Held::new(LimitName::Memory, limits.total_memory.0, by),
            Controller::Pids => Held::new(LimitName::Processes, limits.processes, by),
            Controller::Cpu => Held::new(LimitName::Cpu, limits.cpu, by),
        }));
    }
    all
}

impl Cgroup {
    /// Creates a group for the run with these limits; `None` where this machine lets herma create none.
    pub(crate) fn make(run: RunId, limits: &Limits) -> io::Result<Option<Self>> {
        Self::make_in(usable(), run, limits)
    }

    fn make_in(places: &[CgroupParent], run: RunId, limits: &Limits) -> io::Result<Option<Self>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if places.is_empty() {
            return Ok(None);
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{count}", prefix(run), rustix::process::getpid().as_raw_nonzero());
        // Grown one by one, so that dropping it removes the groups that were created before an error.
        let mut group = Self { dirs: Vec::new(), initial: InitialCgroup::default(), later: Vec::new() };
        let made: HashMap<&Path, CgroupVersion> =
            places.iter().map(|place| (place.dir.as_path(), place.version)).collect();
        for (outside, version) in made {
            let dir = outside.join(&name);
            fs::create_dir(&dir).map_err(|error| not_made(&dir, &error))?;
            match version {
                CgroupVersion::One => group.initial.add(&dir, outside),
                CgroupVersion::Two => group.later.push(dir.clone()),
            }
            group.dirs.push(dir);
        }
        for place in places {
            let dir = place.dir.join(&name);
            for controller in &place.controllers {
                set(&dir, place.version, *controller, limits)?;
            }
        }
        Ok(Some(group))
    }

    /// The limit that a process in the group exceeded, if one did.
    pub(crate) fn met(&self) -> Option<LimitName> {
        met(&self.dirs)
    }

    /// The groups that the spawning thread joins before it starts the job.
    pub(crate) fn initial_cgroup(&self) -> &InitialCgroup {
        &self.initial
    }

    /// Whether a process must also be moved after its start, by [`Cgroup::admit`].
    pub(crate) fn admits_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Moves a started process into the groups of version 2; its later children are in them too.
    pub(crate) fn admit(&self, process: Pid) -> io::Result<()> {
        let number = process.as_raw_nonzero().to_string();
        self.later.iter().try_for_each(|dir| fs::write(dir.join("cgroup.procs"), &number))
    }
}

/// Explains why a group could not be created: at its limits the kernel says only "try again".
fn not_made(dir: &Path, error: &io::Error) -> io::Error {
    let why = match error.kind() {
        ErrorKind::WouldBlock => {
            " (`cgroup.max.descendants` or `cgroup.max.depth` there or above allows no more groups)"
        }
        _ => "",
    };
    io::Error::new(error.kind(), format!("{}: {error}{why}", dir.display()))
}

/// Reads back the limits that Docker set for a process; a different value is an error. `swap` says whether swap was
/// limited too. Where it could not be, the memory probe detects it.
pub(crate) fn confirm(process: i32, held: &[Held], swap: bool) -> io::Result<()> {
    let groups = hierarchy::of(process)?;
    for Held { name, value, by } in held {
        let controller = match name {
            LimitName::Memory => Controller::Memory,
            LimitName::Processes => Controller::Pids,
            LimitName::Cpu => Controller::Cpu,
            _ => continue,
        };
        let version = if *by == HeldBy::CgroupV2 { CgroupVersion::Two } else { CgroupVersion::One };
        let group = groups.iter().find(|group| group.controller == controller && group.version == version);
        let agreed = match group {
            Some(group) => confirmed(&group.dir, version, controller, *value, swap),
            None => Err(io::Error::other(
                "its cgroup is not shown here; herma must run outside of containers, on the daemon's machine",
            )),
        };
        agreed.map_err(|error| io::Error::other(format!("the limit `{name}` does not hold: {error}")))?;
    }
    Ok(())
}

/// Reads back one limit in one group.
fn confirmed(
    dir: &Path,
    version: CgroupVersion,
    controller: Controller,
    value: u64,
    swap: bool,
) -> io::Result<()> {
    let quota = value * CFS_PERIOD_US / 100;
    match (controller, version) {
        (Controller::Pids, _) => agree(dir, "pids.max", value),
        (Controller::Memory, CgroupVersion::Two) => {
            agree(dir, "memory.max", value)?;
            if swap { if_there(agree(dir, "memory.swap.max", 0)) } else { Ok(()) }
        }
        (Controller::Memory, CgroupVersion::One) => {
            agree(dir, "memory.limit_in_bytes", value)?;
            if swap { if_there(agree(dir, "memory.memsw.limit_in_bytes", value)) } else { Ok(()) }
        }
        // The period must be read too: the same quota per shorter period is more CPU time.
        (Controller::Cpu, CgroupVersion::Two) => {
            agree(dir, "cpu.max", quota)?;
            let text = fs::read_to_string(dir.join("cpu.max"))?;
            at_least(text.split_whitespace().nth(1), CFS_PERIOD_US)
        }
        (Controller::Cpu, CgroupVersion::One) => {
            agree(dir, "cpu.cfs_quota_us", quota)?;
            at_least(Some(fs::read_to_string(dir.join("cpu.cfs_period_us"))?.trim()), CFS_PERIOD_US)
        }
    }
}

fn at_least(seen: Option<&str>, least: u64) -> io::Result<()> {
    let number = seen.and_then(|seen| seen.parse::<u64>().ok());
    let enough = number.is_some_and(|number| number >= least);
    enough.then_some(()).ok_or_else(|| {
        io::Error::other(format!(
            "processor time is dealt out every {} and not every {least}",
            seen.unwrap_or("?")
        ))
    })
}

/// The limit that was exceeded, by the groups that a process in a container sees as its own.
pub(crate) fn met_inside() -> Option<LimitName> {
    let root = Path::new("/sys/fs/cgroup");
    met(&[root.to_owned(), root.join("memory"), root.join("pids")])
}

/// Reads the kernel's counters: OOM kills, and forks refused by `pids.max`.
fn met(dirs: &[PathBuf]) -> Option<LimitName> {
    const COUNTS: [(&str, &str, LimitName); 3] = [
        ("memory.events", "oom_kill", LimitName::Memory),
        ("memory.oom_control", "oom_kill", LimitName::Memory),
        ("pids.events", "max", LimitName::Processes),
    ];
    let counted = |(file, count, _): &&(&str, &str, LimitName)| {
        let says = |dir: &PathBuf| {
            let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.any(|(name, number)| name == *count && number.trim() != "0")
        };
        dirs.iter().any(says)
    };
    COUNTS.iter().find(counted).map(|(_, _, limit)| *limit)
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for dir in &self.dirs {
            // A group that cannot be removed now is found by its name when the run is reaped.
            let _ = remove(dir);
        }
    }
}

/// Removes every group that a killed herma left of this run; returns how many there were.
pub(crate) fn remove_of_run(run: RunId) -> io::Result<usize> {
    let found = hierarchy::named(&prefix(run))?;
    found.iter().try_for_each(|dir| remove(dir))?;
    Ok(found.len())
}

fn prefix(run: RunId) -> String {
    format!("herma-{run}-")
}

fn remove(dir: &Path) -> io::Result<()> {
    let give_up = Instant::now() + REMOVE_TIMEOUT;
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < give_up => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            done => return done,
        }
    }
}

/// Writes the limit and reads it back, because the kernel may store another value.
fn set(dir: &Path, version: CgroupVersion, controller: Controller, limits: &Limits) -> io::Result<()> {
    let memory = limits.total_memory.0;
    let quota = limits.cpu * CFS_PERIOD_US / 100;
    match (controller, version) {
        (Controller::Pids, _) => put(dir, "pids.max", limits.processes),
        (Controller::Memory, CgroupVersion::Two) => {
            put(dir, "memory.max", memory)?;
            if_there(put(dir, "memory.swap.max", 0))
        }
        (Controller::Memory, CgroupVersion::One) => {
            put(dir, "memory.limit_in_bytes", memory)?;
            // Memory plus swap: without this line a job could use swap beyond its memory limit.
            if_there(put(dir, "memory.memsw.limit_in_bytes", memory))?;
            // Version 2 counts socket buffers as memory. Version 1 counts them apart, and only where this is set.
            if_there(put(dir, "memory.kmem.tcp.limit_in_bytes", socket_buffers(memory)))
        }
        (Controller::Cpu, CgroupVersion::Two) => {
            write(dir, "cpu.max", &format!("{quota} {CFS_PERIOD_US}"))?;
            agree(dir, "cpu.max", quota)
        }
        (Controller::Cpu, CgroupVersion::One) => {
            put(dir, "cpu.cfs_period_us", CFS_PERIOD_US)?;
            put(dir, "cpu.cfs_quota_us", quota)
        }
    }
}

/// The limit of TCP and UDP buffers under version 1: a small part of the memory limit, to which they are added, and
/// of `net.ipv4.tcp_mem`, which the whole machine shares.
fn socket_buffers(memory: u64) -> u64 {
    const MAX_BUFFER_BYTES: u64 = 256 << 20;
    (memory / 16).min(MAX_BUFFER_BYTES)
}

fn put(dir: &Path, file: &str, value: u64) -> io::Result<()> {
    write(dir, file, &value.to_string())?;
    agree(dir, file, value)
}

fn write(dir: &Path, file: &str, text: &str) -> io::Result<()> {
    let path = dir.join(file);
    fs::write(&path, text)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn agree(dir: &Path, file: &str, value: u64) -> io::Result<()> {
    let path = dir.join(file);
    let text = fs::read_to_string(&path)?;
    let read: Option<u64> = text.split_whitespace().next().and_then(|number| number.parse().ok());
    // The kernel counts memory in pages and may round down.
    match read {
        Some(read) if read <= value && value - read < 1 << 16 => Ok(()),
        _ => Err(io::Error::other(format!("{} says {} and not {value}", path.display(), text.trim()))),
    }
}

/// Ignores a missing swap file: a kernel without swap accounting has none.
fn if_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
    }

    #[test]
    fn without_a_parent_there_is_no_group_and_no_limit_is_reported() {
        let limits = Limits::default();
        assert!(Cgroup::make_in(&[], run(), &limits).unwrap().is_none());
        assert_eq!(held(&[], &limits), []);
    }

    #[test]
    fn an_exhausted_cgroup_limit_names_its_setting() {
        let full = io::Error::from_raw_os_error(libc::EAGAIN);
        let said = not_made(Path::new("/groups/new"), &full).to_string();
        assert!(said.starts_with("/groups/new: ") && said.contains("`cgroup.max.descendants`"), "{said}");
        let other = io::Error::from_raw_os_error(libc::EACCES);
        assert!(!not_made(Path::new("/groups/new"), &other).to_string().contains("cgroup.max"));
    }

    #[test]
    fn each_controller_is_written_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let place = CgroupParent {
            dir: dir.path().to_owned(),
            version: CgroupVersion::Two,
            controllers: vec![Controller::Memory, Controller::Pids, Controller::Cpu],
        };
        let limits = Limits { processes: 77, cpu: 150, ..Limits::default() };
        let group = Cgroup::make_in(std::slice::from_ref(&place), run(), &limits).unwrap().unwrap();
        let [own] = &group.dirs[..] else { panic!("{group:?}") };
        assert!(own.starts_with(dir.path()) && own.to_str().unwrap().contains(&run().to_string()));
        let said = |file: &str| fs::read_to_string(own.join(file)).unwrap();
        assert_eq!(said("memory.max"), limits.total_memory.0.to_string());
        assert_eq!(said("pids.max"), "77");
        assert_eq!(said("cpu.max"), "150000 100000");
        let names: Vec<LimitName> = held(&[place], &limits).iter().map(|held| held.name).collect();
        assert_eq!(names, [LimitName::Memory, LimitName::Processes, LimitName::Cpu]);
    }

    #[test]
    fn version_one_bounds_socket_buffers_beside_memory() {
        let dir = tempfile::tempdir().unwrap();
        let written = |memory: u64| {
            let limits = Limits { total_memory: herma_core::units::Bytes(memory), ..Limits::default() };
            set(dir.path(), CgroupVersion::One, Controller::Memory, &limits).unwrap();
            fs::read_to_string(dir.path().join("memory.kmem.tcp.limit_in_bytes")).unwrap()
        };
        assert_eq!(written(1 << 30), (64 << 20).to_string());
        assert_eq!(written(64 << 30), (256 << 20).to_string());
    }

    #[test]
    fn limits_that_docker_set_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let two = |controller, value, swap| {
            confirmed(dir.path(), CgroupVersion::Two, controller, value, swap).is_ok()
        };
        let says = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
        says("memory.max", "4096\n");
        assert!(two(Controller::Memory, 4096, true), "a kernel without swap has no limit for it");
        says("memory.swap.max", "max\n");
        assert!(!two(Controller::Memory, 4096, true) && two(Controller::Memory, 4096, false));
        says("memory.swap.max", "0\n");
        assert!(two(Controller::Memory, 4096, true) && !two(Controller::Memory, 4095, true));
        for (text, holds) in
            [("150000 100000", true), ("150000 50000", false), ("max 100000", false), ("150000", false)]
        {
            says("cpu.max", text);
            assert_eq!(two(Controller::Cpu, 150, true), holds, "{text}");
        }
    }

    #[test]
    fn a_limit_that_reads_back_differently_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("pids.max"), "max\n").unwrap();
        assert!(agree(dir.path(), "pids.max", 5).is_err());
        fs::write(dir.path().join("pids.max"), "6\n").unwrap();
        assert!(agree(dir.path(), "pids.max", 5).is_err());
        fs::write(dir.path().join("pids.max"), "5\n").unwrap();
        assert!(agree(dir.path(), "pids.max", 5).is_ok());
    }
}
