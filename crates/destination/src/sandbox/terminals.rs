//! Counts the pseudo-terminals of a sandbox or container in its own /dev/pts, from outside.
//!
//! The `max` mount option of devpts would be better, but neither bubblewrap nor Docker sets it. A terminal whose
//! master is closed while its other end is open is not listed, though the kernel counts it.

use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, fstatfs, openat, stat};
use rustix::io::Errno;

use super::usage_monitor::UsageCheck;
use crate::limits::LimitName;

/// The file system magic of devpts.
const DEVPTS: u64 = 0x1cd1;

/// Compares the number in the mount namespace of this process with the limit.
pub(super) fn look(process: i32, most: u64) -> UsageCheck {
    match count(process) {
        Ok(count) if count > most => UsageCheck::Over(LimitName::Terminals),
        // A job that has used up the descriptors could hide terminals.
        Err(Errno::MFILE | Errno::NFILE) => UsageCheck::Unknown(LimitName::Terminals),
        // Before its mounts exist and after its exit a process has no terminals.
        Ok(_) | Err(_) => UsageCheck::Within,
    }
}

fn count(process: i32) -> rustix::io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, format!("/proc/{process}/root/dev/pts"), flags, Mode::empty())?;
    let is_devpts = fstatfs(&dir).is_ok_and(|seen| u64::try_from(seen.f_type) == Ok(DEVPTS));
    // Until its own mounts exist, a sandbox shows the host's.
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
    fn terminals_of_the_host_are_not_counted() {
        let _one = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        assert_eq!(count(rustix::process::getpid().as_raw_nonzero().get()), Ok(0));
    }
}
