//! Overlays: what a job changes stays in its upper directories, and the lower ones are never changed or reached.

use std::fs;
use std::path::{Path, PathBuf};

use herma_destination::{BadJob, Destination as _, Job, JobPaths, LimitName, Limits, Overlay, StartError};

use crate::support::{JobDirs, helper, host, sandbox, tell, until};

/// A lower directory with a package, and an overlay of it in the workspace.
struct Site {
    dirs: JobDirs,
}

impl Site {
    fn new() -> Self {
        let dirs = JobDirs::new();
        let site = Self { dirs };
        for dir in ["lower/pkg/inner", "upper", "work", "workspace/deps"] {
            fs::create_dir_all(site.at(dir)).unwrap();
        }
        for (file, text) in [("lower/pkg/a", "original"), ("lower/pkg/inner/b", "inner"), ("lower/c", "top")]
        {
            fs::write(site.at(file), text).unwrap();
        }
        site
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dirs.dir.path().join(path)
    }

    fn overlay(&self) -> Overlay {
        Overlay {
            lower: self.at("lower"),
            upper: self.at("upper"),
            work: self.at("work"),
            root: self.dirs.workspace(),
            place: "deps".into(),
        }
    }

    fn job(&self, script: &str) -> Job {
        self.dirs.shell(script).with_overlays(vec![self.overlay()])
    }

    fn assert_lower_is_unchanged(&self) {
        let mut found = Vec::new();
        let mut pending = vec![self.at("lower")];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    found.push((fs::read_to_string(&path).unwrap(), path));
                }
            }
        }
        found.sort();
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["inner", "original", "top"], "{found:#?}");
    }
}

fn host_mounts(dir: &Path) -> usize {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter(|line| line.contains(dir.to_str().unwrap())).count()
}

#[test]
fn changes_go_to_the_upper_directory_and_a_second_job_sees_them() {
    let site = Site::new();
    let script = "cat deps/pkg/a deps/pkg/inner/b deps/c; echo changed > deps/pkg/a; echo new > deps/pkg/new; rm deps/c; \
                  chmod 0700 deps/pkg/inner";
    let told = tell(&sandbox(), &site.job(script));
    assert_eq!((told.exit.code, told.stdout.as_str()), (Some(0), "originalinnertop"), "{told:?}");
    site.assert_lower_is_unchanged();
    assert_eq!(fs::read_to_string(site.at("upper/pkg/a")).unwrap(), "changed\n");
    assert_eq!(fs::read_dir(site.at("workspace/deps")).unwrap().count(), 0, "outside nothing is mounted");
    let told = tell(&sandbox(), &site.job("cat deps/pkg/a deps/pkg/new deps/pkg/inner/b; [ ! -e deps/c ]"));
    assert_eq!((told.exit.code, told.stdout.as_str()), (Some(0), "changed\nnew\ninner"), "{told:?}");
    assert_eq!(host_mounts(site.dirs.dir.path()), 0);
}

#[test]
fn nothing_inside_unmounts_it_reaches_what_is_below_or_names_the_hosts_directories() {
    let site = Site::new();
    let script = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, done):
    if done: print("succeeded:", what)
tried("umount", libc.umount2(b"/workspace/deps", 2) == 0)
tried("remount", libc.mount(b"none", b"/workspace/deps", None, 32 | 4096, b"") == 0)
tried("bind", libc.mount(b"/workspace/deps", b"/tmp", None, 4096, None) == 0)
tried("whiteout", libc.mknod(b"/workspace/deps/whiteout", 0o020644, 0) == 0)
for name in [b"trusted.overlay.redirect", b"trusted.overlay.opaque", b"security.capability"]:
    tried(name, libc.setxattr(b"/workspace/deps/pkg", name, b"/etc", 4, 0) == 0)
# These are stored under other names, or refused.
libc.setxattr(b"/workspace/deps/pkg", b"user.overlay.redirect", b"/../../../../etc", 16, 0)
libc.setxattr(b"/workspace/deps/pkg", b"user.overlay.opaque", b"y", 1, 0)
table = open("/proc/self/mountinfo").read()
tried("a path of the host", sys.argv[1] in "".join(line for line in table.splitlines() if "- overlay" in line))
# What the options name are descriptors of a process that is gone.
for number in os.listdir("/proc/self/fd"):
    try: there = os.readlink("/proc/self/fd/" + number)
    except OSError: continue
    tried("descriptor " + there, "lower" in there or "upper" in there)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for way in ["root", "cwd"]:
        tried(pid, os.path.exists(f"/proc/{pid}/{way}{sys.argv[1]}/lower"))
os.rename("/workspace/deps/pkg/inner/b", "/workspace/deps/pkg/inner/b2")
"#;
    let mut job = site.dirs.python(script).with_overlays(vec![site.overlay()]);
    job.argv.push(site.dirs.dir.path().into());
    let told = tell(&sandbox(), &job);
    assert_eq!((told.exit.code, told.stdout.as_str()), (Some(0), ""), "{told:?}");
    site.assert_lower_is_unchanged();
    let told = tell(&sandbox(), &site.job("ls deps/pkg deps/pkg/inner; cat deps/pkg/a"));
    assert_eq!(told.stdout, "deps/pkg:\na\ninner\n\ndeps/pkg/inner:\nb2\noriginal", "{told:?}");
}

#[test]
fn a_place_that_an_earlier_command_replaced_by_a_link_is_refused() {
    let site = Site::new();
    fs::create_dir(site.at("elsewhere")).unwrap();
    fs::create_dir(site.at("elsewhere/deps")).unwrap();
    std::os::unix::fs::symlink(site.at("elsewhere"), site.at("workspace/sub")).unwrap();
    for place in ["sub/deps", "../elsewhere/deps", "missing"] {
        let overlay = Overlay { place: place.into(), ..site.overlay() };
        let started = sandbox().start(&site.dirs.shell("true").with_overlays(vec![overlay]));
        let Err(StartError::Isolation { said, .. }) = started else { panic!("{place} was mounted") };
        assert!(said.contains("cannot mount an overlay"), "{said}");
    }
}

#[test]
fn what_a_job_writes_in_an_overlay_counts_as_its_disk_usage() {
    let site = Site::new();
    let job = site.job("head -c 8000000 /dev/zero > deps/pkg/big; sleep 60");
    let limits = Limits { disk: herma_core::units::Bytes(4 << 20), ..job.limits };
    let told = tell(&sandbox(), &job.with_limits(limits));
    assert_eq!(told.over, Some(LimitName::Disk), "{told:?}");
}

#[test]
fn the_mounts_are_gone_after_herma_was_killed() {
    let site = Site::new();
    let run = crate::support::run_id().to_string();
    let words = [
        "overlay",
        &run,
        site.dirs.dir.path().to_str().unwrap(),
        "sh",
        "-c",
        "touch deps/started; sleep 600",
    ];
    let mut herma = std::process::Command::new(helper()).args(words).spawn().unwrap();
    until("the job runs", || site.at("upper/started").exists());
    assert_eq!(host_mounts(site.dirs.dir.path()), 0);
    herma.kill().unwrap();
    herma.wait().unwrap();
    // The upper directory is marked as in use as long as it is mounted: another mount of it is quiet only afterwards.
    until("no process is left", || herma_destination::leftovers::kill(run.parse().unwrap()).unwrap() == 0);
    assert_eq!(host_mounts(site.dirs.dir.path()), 0);
    site.assert_lower_is_unchanged();
}

#[test]
fn a_destination_says_whether_it_can_mount_one_and_else_refuses() {
    let site = Site::new();
    let scratch = site.at("trial");
    fs::create_dir(&scratch).unwrap();
    assert!(sandbox().can_overlay(crate::support::run_id(), &site.at("lower"), &scratch).unwrap());
    site.assert_lower_is_unchanged();
    assert!(!host().can_overlay(crate::support::run_id(), &site.at("lower"), &scratch).unwrap());
    let refused =
        |started: Result<_, StartError>| matches!(started, Err(StartError::BadJob(BadJob::Overlay { .. })));
    assert!(refused(host().start(&site.job("true")).map(drop)));
    let inside = Overlay { lower: site.at("workspace/deps"), ..site.overlay() };
    assert!(refused(sandbox().start(&site.dirs.shell("true").with_overlays(vec![inside])).map(drop)));
    let elsewhere = Overlay { root: site.at("upper"), ..site.overlay() };
    assert!(refused(sandbox().start(&site.dirs.shell("true").with_overlays(vec![elsewhere])).map(drop)));
}

#[test]
fn a_home_can_be_one_as_a_whole() {
    let site = Site::new();
    fs::create_dir(site.at("home")).unwrap();
    let overlay = Overlay { root: site.at("home"), place: ".".into(), ..site.overlay() };
    let paths = JobPaths::new(site.dirs.workspace()).with_home(site.at("home"));
    let job = Job { paths, ..site.dirs.shell("cat $HOME/c; echo more > $HOME/more") };
    let told = tell(&sandbox(), &job.with_overlays(vec![overlay]));
    assert_eq!((told.exit.code, told.stdout.as_str()), (Some(0), "top"), "{told:?}");
    assert!(site.at("upper/more").exists());
}
