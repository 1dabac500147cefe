//! How many pseudo-terminals a sandbox or container has, as its own /dev/pts shows them from outside.
//!
//! A mount option of devpts would be better, and bubblewrap and Docker set none. A terminal whose master is closed while
//! something holds its other end is not shown, though the kernel counts it.

use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, fstatfs, openat, stat};
use rustix::io::Errno;

use super::watch::Found;
use crate::limits::LimitName;

/// Of the file system that holds pseudo-terminals.
const DEVPTS: u64 = 0x1cd1;

/// Compares how many there are in the mount namespace of this process with the limit.
pub(super) fn look(process: i32, most: u64) -> Found {
    match count(process) {
        Ok(count) if count > most => Found::Over(LimitName::Terminals),
        // Whoever has used up the file descriptors could hide terminals.
        Err(Errno::MFILE | Errno::NFILE) => Found::Unseen(LimitName::Terminals),
        // Before its mounts are made and after its end a process has no terminals to show.
        Ok(_) | Err(_) => Found::Within,
    }
}

fn count(process: i32) -> rustix::io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, format!("/proc/{process}/root/dev/pts"), flags, Mode::empty())?;
    let is_devpts = fstatfs(&dir).is_ok_and(|seen| u64::try_from(seen.f_type) == Ok(DEVPTS));
    // Until its own mounts are made, a sandbox has those of the host.
    let device = |seen: rustix::fs::Stat| seen.st_dev;
    if !is_devpts || fstat(&dir).ok().map(device) == stat("/dev/pts").ok().map(device) {
        return Ok(0);
    }
    let is_terminal = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
    let entries = Dir::new(dir)?;
    Ok(entries.flatten().filter(|entry| is_terminal(entry.file_name().to_bytes())).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_host_are_not_counted() {
        let _one = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        assert_eq!(count(rustix::process::getpid().as_raw_nonzero().get()), Ok(0));
    }
}
