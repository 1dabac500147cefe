//! The cgroup hierarchy: where herma can create groups, and where it may have left some.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// The search depth for left-over groups; systems nest less deeply.
const MAX_DEPTH: usize = 12;

/// The controllers that herma uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Pids,
    Cpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    One,
    Two,
}

/// A directory in which herma can create groups, and the controllers that they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CgroupParent {
    pub(super) dir: PathBuf,
    pub(super) version: CgroupVersion,
    pub(super) controllers: Vec<Controller>,
}

/// The group of a process for one controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessCgroup {
    pub(super) controller: Controller,
    pub(super) version: CgroupVersion,
    pub(super) dir: PathBuf,
}

/// A mounted cgroup hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct CgroupMount {
    version: CgroupVersion,
    /// The root of the mount within the hierarchy.
    root: String,
    at: PathBuf,
    options: String,
}

/// Every usable parent directory, at most one per controller.
pub(super) fn usable() -> io::Result<Vec<CgroupParent>> {
    let mounts = mounted(&fs::read_to_string("/proc/self/mountinfo")?);
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let mut found: Vec<CgroupParent> = Vec::new();
    for mounted in &mounts {
        let Some(mut place) = place(mounted, &own) else { continue };
        place.controllers.retain(|new| found.iter().all(|known| !known.controllers.contains(new)));
        if !place.controllers.is_empty() && place.is_open() {
            found.push(place);
        }
    }
    Ok(found)
}

impl CgroupParent {
    /// Whether herma may create groups here and move processes into them. Version 2 requires write access to
    /// `cgroup.procs` of the common ancestor, which is this directory.
    fn is_open(&self) -> bool {
        let may_write = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
        may_write(&self.dir)
            && (self.version == CgroupVersion::One || may_write(&self.dir.join("cgroup.procs")))
    }
}

/// The groups of another process, as far as this process can see them.
pub(super) fn of(process: i32) -> io::Result<Vec<ProcessCgroup>> {
    let own = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    Ok(groups(&mounted(&fs::read_to_string("/proc/self/mountinfo")?), &own))
}

fn groups(mounts: &[CgroupMount], own: &str) -> Vec<ProcessCgroup> {
    let of_one = |mounted: &CgroupMount, (word, controller): (&str, Controller)| {
        let version = mounted.version;
        let path = match version {
            CgroupVersion::One if !mounted.options.split(',').any(|option| option == word) => return None,
            CgroupVersion::One => path_of(own, |names| names.split(',').any(|name| name == word))?,
            CgroupVersion::Two => path_of(own, str::is_empty)?,
        };
        Some(ProcessCgroup { controller, version, dir: inside(mounted, &path)? })
    };
    let all = [("memory", Controller::Memory), ("pids", Controller::Pids), ("cpu", Controller::Cpu)];
    mounts.iter().flat_map(|mounted| all.into_iter().filter_map(|one| of_one(mounted, one))).collect()
}

/// Every group with this name prefix, in every hierarchy.
pub(super) fn named(prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for mounted in mounted(&fs::read_to_string("/proc/self/mountinfo")?) {
        let mut left = vec![(mounted.at, 0)];
        while let Some((dir, depth)) = left.pop() {
            // A group that vanishes meanwhile, or that is unreadable, is not one of ours.
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
                        found.push(entry.path());
                    } else if depth < MAX_DEPTH {
                        left.push((entry.path(), depth + 1));
                    }
                }
            }
        }
    }
    Ok(found)
}

fn place(mounted: &CgroupMount, own: &str) -> Option<CgroupParent> {
    match mounted.version {
        CgroupVersion::One => {
            let controllers: Vec<Controller> = mounted.options.split(',').filter_map(controller).collect();
            let first = mounted.options.split(',').find(|option| controller(option).is_some())?;
            let dir = inside(mounted, &path_of(own, |names| names.split(',').any(|name| name == first))?)?;
            Some(CgroupParent { dir, version: CgroupVersion::One, controllers })
        }
        CgroupVersion::Two => {
            let own = inside(mounted, &path_of(own, str::is_empty)?)?;
            // In version 2 a group with processes cannot delegate controllers, so this is mostly the parent group.
            // Only controllers that are enabled already are used: enabling one would change a group of another
            // owner.
            own.ancestors().take(2).filter(|dir| dir.starts_with(&mounted.at)).find_map(|dir| {
                if !holds_whole_processes(dir) {
                    return None;
                }
                let lent = fs::read_to_string(dir.join("cgroup.subtree_control")).ok()?;
                let controllers: Vec<Controller> = lent.split_whitespace().filter_map(controller).collect();
                let dir = dir.to_owned();
                (!controllers.is_empty()).then_some(CgroupParent {
                    dir,
                    version: CgroupVersion::Two,
                    controllers,
                })
            })
        }
    }
}

/// Whether groups below this one can hold whole processes; threaded subtrees cannot.
fn holds_whole_processes(dir: &Path) -> bool {
    // The root of the hierarchy has no such file and is a domain.
    fs::read_to_string(dir.join("cgroup.type")).map_or(true, |kind| kind.trim() == "domain")
}

fn controller(word: &str) -> Option<Controller> {
    match word {
        "memory" => Some(Controller::Memory),
        "pids" => Some(Controller::Pids),
        "cpu" => Some(Controller::Cpu),
        _ => None,
    }
}

/// The group of this process in the hierarchy whose controllers match, from `/proc/self/cgroup`.
fn path_of(own: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, path) = (fields.next()?, fields.next()?);
        fits(names).then(|| path.to_owned())
    })
}

/// The directory of a group; `None` if it is outside of the mount.
fn inside(mounted: &CgroupMount, group: &str) -> Option<PathBuf> {
    let below = Path::new(group).strip_prefix(&mounted.root).ok()?;
    let plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    plain.then(|| mounted.at.join(below))
}

fn mounted(mountinfo: &str) -> Vec<CgroupMount> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut left = left.split(' ').skip(3);
            let (root, at) = (left.next()?.to_owned(), PathBuf::from(left.next()?));
            let mut right = right.split(' ');
            let version = match right.next()? {
                "cgroup" => CgroupVersion::One,
                "cgroup2" => CgroupVersion::Two,
                _ => return None,
            };
            Some(CgroupMount { version, root, at, options: right.nth(1)?.to_owned() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn in_version_one_the_own_group_is_the_parent() {
        let own = "4:memory:/service/a\n2:cpu,cpuacct:/\n0::/\n";
        let mounts = mounted(HYBRID);
        assert_eq!(mounts.len(), 3);
        let memory = place(&mounts[0], own).unwrap();
        assert_eq!(memory.dir, Path::new("/sys/fs/cgroup/memory/service/a"));
        assert_eq!(memory.controllers, [Controller::Memory]);
        let cpu = place(&mounts[1], own).unwrap();
        assert_eq!((cpu.dir.as_path(), cpu.controllers.len()), (Path::new("/sys/fs/cgroup/cpu,cpuacct"), 1));
    }

    #[test]
    fn the_groups_of_a_process_are_found_in_each_tree() {
        let of = groups(&mounted(HYBRID), "4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/y\n");
        let found = |controller: Controller, version: CgroupVersion| {
            let group = of.iter().find(|group| group.controller == controller && group.version == version);
            group.map(|group| group.dir.to_str().unwrap().to_owned())
        };
        assert_eq!(found(Controller::Memory, CgroupVersion::One).unwrap(), "/sys/fs/cgroup/memory/docker/x");
        assert_eq!(
            found(Controller::Cpu, CgroupVersion::One).unwrap(),
            "/sys/fs/cgroup/cpu,cpuacct/docker/x"
        );
        assert_eq!(found(Controller::Pids, CgroupVersion::One), None);
        assert_eq!(found(Controller::Pids, CgroupVersion::Two).unwrap(), "/sys/fs/cgroup/unified/y");
    }

    #[test]
    fn in_version_two_the_parent_is_the_nearest_group_that_delegates() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("app.slice/own.scope");
        fs::create_dir_all(&group).unwrap();
        let mounted = CgroupMount {
            version: CgroupVersion::Two,
            root: "/".into(),
            at: dir.path().into(),
            options: "rw".into(),
        };
        let own = "0::/app.slice/own.scope\n";
        fs::write(group.join("cgroup.subtree_control"), "\n").unwrap();
        // The grandparent belongs to another owner.
        fs::write(dir.path().join("cgroup.subtree_control"), "memory pids\n").unwrap();
        assert_eq!(place(&mounted, own), None);
        fs::write(dir.path().join("app.slice/cgroup.subtree_control"), "io memory pids\n").unwrap();
        let found = place(&mounted, own).unwrap();
        assert_eq!(found.dir, dir.path().join("app.slice"));
        assert_eq!(found.controllers, [Controller::Memory, Controller::Pids]);
    }

    #[test]
    fn a_threaded_group_is_not_usable() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("app.slice/own.scope");
        fs::create_dir_all(&group).unwrap();
        let mounted = CgroupMount {
            version: CgroupVersion::Two,
            root: "/".into(),
            at: dir.path().into(),
            options: "rw".into(),
        };
        let own = "0::/app.slice/own.scope\n";
        fs::write(group.join("cgroup.subtree_control"), "cpu pids\n").unwrap();
        fs::write(dir.path().join("app.slice/cgroup.subtree_control"), "memory pids\n").unwrap();
        for (kind, place_of) in [("domain", "app.slice/own.scope"), ("domain threaded", "app.slice")] {
            fs::write(group.join("cgroup.type"), format!("{kind}\n")).unwrap();
            assert_eq!(place(&mounted, own).unwrap().dir, dir.path().join(place_of), "{kind}");
        }
        for kind in ["threaded", "domain invalid"] {
            fs::write(dir.path().join("app.slice/cgroup.type"), format!("{kind}\n")).unwrap();
            assert_eq!(place(&mounted, own), None, "{kind}");
        }
    }

    #[test]
    fn a_parent_without_write_access_to_procs_is_not_usable() {
        let dir = tempfile::tempdir().unwrap();
        let place =
            |version| CgroupParent { dir: dir.path().into(), version, controllers: vec![Controller::Pids] };
        assert!(place(CgroupVersion::One).is_open() && !place(CgroupVersion::Two).is_open());
        fs::write(dir.path().join("cgroup.procs"), "").unwrap();
        assert!(place(CgroupVersion::Two).is_open());
    }

    #[test]
    fn a_group_outside_of_the_mount_is_not_usable() {
        let line = "31 30 0:27 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let mounts = mounted(line);
        assert_eq!(place(&mounts[0], "4:memory:/elsewhere\n"), None);
        assert!(place(&mounts[0], "4:memory:/docker/x/y\n").unwrap().dir.ends_with("memory/y"));
        assert_eq!(place(&mounts[0], "4:memory:/docker/x/../y\n"), None);
    }
}
