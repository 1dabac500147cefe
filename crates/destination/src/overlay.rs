//! Overlays: writable views of directories that stay as they are. The hidden `herma __overlay` mounts them in a user and mount
//! namespace of its own and then executes the program that isolates, so that no mount table of the host ever shows them and the
//! kernel removes them with the last process inside.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__overlay";

/// `userxattr` is what the kernel permits in a user namespace. It implies that no redirect in an extended attribute is followed.
/// `volatile`: a view is never needed after a crash, and without it each unmount would write the whole file system back.
const OPTIONS: &str = "userxattr,volatile,index=off,metacopy=off";

/// The most views of one directory that may have been mounted before.
const MAX_MOUNTS: u32 = 10_000;

/// A directory of the job that shows a lower one, with the changes of the job in an upper one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// A directory that is not changed, and that the job cannot reach.
    pub lower: PathBuf,
    /// The directory of the changes; after the job it has the files that the job made or changed. Not inside of the job's directories.
    pub upper: PathBuf,
    /// A directory on the same file system, for the kernel.
    pub work: PathBuf,
    /// The workspace or the home of the job.
    pub root: PathBuf,
    /// The path of an empty directory below it; `.` is the root itself.
    pub place: PathBuf,
}

/// The arguments of herma that mount these before they execute the command that follows.
pub(crate) fn args(overlays: &[Overlay]) -> Vec<OsString> {
    let one = |Overlay { lower, upper, work, root, place }: &Overlay| {
        ["--mount".into(), lower.into(), upper.into(), work.into(), root.into(), place.into()]
    };
    let mounts = overlays.iter().flat_map(one);
    std::iter::once(SUBCOMMAND.into()).chain(mounts).chain(["--".into()]).collect()
}

/// Mounts what `args` name, which follow `herma __overlay`, and executes the command after them. Returns only on failure.
#[must_use]
pub fn run(args: impl Iterator<Item = OsString>) -> io::Error {
    let parsed = parse(args).map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what));
    let begun = parsed.and_then(|(overlays, command)| {
        isolate()?;
        overlays.iter().try_for_each(|overlay| {
            let failed = |e: io::Error| io::Error::other(format!("{}: {e}", overlay.place.display()));
            mount_one(overlay).map_err(failed)
        })?;
        Ok(command)
    });
    match begun {
        Ok(command) => Command::new(&command[0]).args(&command[1..]).exec(),
        Err(error) => io::Error::new(error.kind(), format!("cannot mount an overlay: {error}")),
    }
}

fn parse(mut args: impl Iterator<Item = OsString>) -> Result<(Vec<Overlay>, Vec<OsString>), &'static str> {
    let mut overlays = Vec::new();
    while let Some(word) = args.next() {
        if word == "--" {
            let command: Vec<OsString> = args.collect();
            return if command.is_empty() { Err("the command is missing") } else { Ok((overlays, command)) };
        }
        let mut path = || args.next().map(PathBuf::from).ok_or("--mount wants five paths");
        if word != "--mount" {
            return Err("unknown word before the command");
        }
        let (lower, upper, work) = (path()?, path()?, path()?);
        overlays.push(Overlay { lower, upper, work, root: path()?, place: path()? });
    }
    Err("expected `--` and the command")
}

/// Enters a user namespace in which this user is itself and holds the capability to mount, and a mount namespace of which the
/// host sees nothing. The capabilities end with the next exec, unless herma runs as root, whose bubblewrap drops them.
fn isolate() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Mounts by descriptors: an earlier command of the same checkout may have put a link in the way, and the mount table inside names
/// no directory of the host.
fn mount_one(overlay: &Overlay) -> io::Result<()> {
    let Overlay { lower, upper, work, root, place } = overlay;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = |path: &Path| open(path, flags | OFlags::NOFOLLOW, Mode::empty());
    let (lower, upper, work, root) = (own(lower)?, own(upper)?, own(work)?, own(root)?);
    let work = fresh_below(&work)?;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let place = openat2(&root, place, flags, Mode::empty(), beneath)?;
    let [lower, upper, work, place] = [&lower, &upper, &work, &place].map(shown);
    let options = format!("{OPTIONS},lowerdir={lower},upperdir={upper},workdir={work}");
    let options = CString::new(options).map_err(io::Error::other)?;
    Ok(mount("overlay", place, "overlay", MountFlags::NOSUID | MountFlags::NODEV, &*options)?)
}

/// A new directory: the kernel refuses one of an earlier volatile mount.
fn fresh_below(work: &OwnedFd) -> io::Result<OwnedFd> {
    for number in 0..MAX_MOUNTS {
        let name = number.to_string();
        match mkdirat(work, &*name, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => {
                made?;
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                return Ok(openat(work, &*name, flags, Mode::empty())?);
            }
        }
    }
    Err(io::Error::other("it was mounted too often"))
}

fn shown(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
