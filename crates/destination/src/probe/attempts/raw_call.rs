//! System calls without a safe wrapper in any crate. Each is made by a tiny ELF program, which is assembled here,
//! written to a file and executed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use herma_core::RunId;

use super::ProbeOutcome::{self, Denied, NotDenied, Pending};
use crate::sandbox::layout;

/// The load address of the program, usual for non-relocatable ones.
const BASE: u64 = 0x40_0000;
const FILE_HEADER: u16 = 64;
const PROGRAM_HEADER: u16 = 56;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// One system call with up to three arguments.
struct RawCall {
    number: i64,
    arguments: [i32; 3],
}

/// Takes a lease on a file that no other process has open: the program's own, which is its stdin.
pub(in super::super) fn file_lease(run_id: &RunId) -> ProbeOutcome {
    let call = RawCall { number: libc::SYS_fcntl, arguments: [0, libc::F_SETLEASE, libc::F_RDLCK] };
    call.attempt(&program_at(run_id, "lease"), &[libc::EPERM], "took one")
}

/// Requests an asynchronous I/O context with a null pointer: the kernel answers EFAULT, and nothing is allocated.
pub(in super::super) fn aio_context(run_id: &RunId) -> ProbeOutcome {
    let call = RawCall { number: libc::SYS_io_setup, arguments: [1, 0, 0] };
    call.attempt(&program_at(run_id, "aio"), &[libc::EPERM, libc::ENOSYS], "the kernel took the call")
}

/// Attaches a filter to standard input, which is no socket: without the seccomp filter the kernel answers ENOTSOCK.
pub(in super::super) fn socket_filter(run_id: &RunId) -> ProbeOutcome {
    let call =
        RawCall { number: libc::SYS_setsockopt, arguments: [0, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER] };
    call.attempt(&program_at(run_id, "socket-filter"), &[libc::EPERM], "the kernel took the call")
}

fn program_at(run_id: &RunId, kind: &str) -> PathBuf {
    Path::new(layout::TMP).join(format!(".herma-{kind}-{run_id}"))
}

impl RawCall {
    fn attempt(&self, place: &Path, refusals: &'static [i32], success: &'static str) -> ProbeOutcome {
        let place = place.to_owned();
        match self.start(&place) {
            Ok(child) => Pending(Box::new(move || {
                let ended = outcome(child);
                let _ = fs::remove_file(&place);
                judge(ended, refusals, success)
            })),
            Err(error) => {
                let _ = fs::remove_file(&place);
                NotDenied(format!("unclear: {error}"))
            }
        }
    }

    /// Writes the program and starts it with its own file as stdin.
    fn start(&self, place: &Path) -> io::Result<Child> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(place)?
            .write_all(&self.program())?;
        let mut command = Command::new(place);
        command.env_clear().stdin(File::open(place)?).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    }

    /// An ELF file that makes the call and exits with the errno, or 0.
    fn program(&self) -> Vec<u8> {
        let code = self.code();
        let headers = u64::from(FILE_HEADER + PROGRAM_HEADER);
        let size = headers + code.len() as u64;
        let mut file = b"\x7fELF\x02\x01\x01".to_vec(); // 64 bits, little-endian, version 1
        file.resize(16, 0);
        file.extend([2_u16, MACHINE].into_iter().flat_map(u16::to_le_bytes)); // an executable
        file.extend(1_u32.to_le_bytes());
        // Entry, program headers, no section headers.
        file.extend([BASE + headers, FILE_HEADER.into(), 0].into_iter().flat_map(u64::to_le_bytes));
        file.extend(0_u32.to_le_bytes());
        let sizes = [FILE_HEADER, PROGRAM_HEADER, 1, 0, 0, 0];
        file.extend(sizes.into_iter().flat_map(u16::to_le_bytes));
        // One segment to load, readable and executable: the whole file.
        file.extend([1_u32, 5].into_iter().flat_map(u32::to_le_bytes));
        file.extend([0, BASE, BASE, size, size, 0x1_0000].into_iter().flat_map(u64::to_le_bytes));
        file.extend(code);
        file
    }

    #[cfg(target_arch = "x86_64")]
    fn code(&self) -> Vec<u8> {
        const EAX: u8 = 0xb8;
        const EDI: u8 = 0xbf;
        const ESI: u8 = 0xbe;
        const EDX: u8 = 0xba;
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        const NEG_EAX: [u8; 2] = [0xf7, 0xd8];
        const MOV_EDI_EAX: [u8; 2] = [0x89, 0xc7];
        let load = |register: u8, value: i32| [&[register][..], &value.to_le_bytes()].concat();
        let number = |number: i64| i32::try_from(number).unwrap_or(-1);
        let [first, second, third] = self.arguments;
        [
            load(EDI, first),
            load(ESI, second),
            load(EDX, third),
            load(EAX, number(self.number)),
            [SYSCALL, NEG_EAX, MOV_EDI_EAX].concat(),
            load(EAX, number(libc::SYS_exit)),
            SYSCALL.to_vec(),
        ]
        .concat()
    }

    #[cfg(target_arch = "aarch64")]
    fn code(&self) -> Vec<u8> {
        const SVC: u32 = 0xd400_0001;
        const NEG_W0: u32 = 0x4b00_03e0;
        // movz wN, #low; movk wN, #high, lsl 16
        let load = |register: u32, value: u32| {
            [0x5280_0000 | (value & 0xffff) << 5 | register, 0x72a0_0000 | (value >> 16) << 5 | register]
        };
        let number = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        let [first, second, third] = self.arguments.map(i32::cast_unsigned);
        let steps = [
            &load(0, first)[..],
            &load(1, second),
            &load(2, third),
            &load(8, number(self.number)),
            &[SVC, NEG_W0],
            &load(8, number(libc::SYS_exit)),
            &[SVC],
        ];
        steps.concat().into_iter().flat_map(u32::to_le_bytes).collect()
    }
}

/// The result of the call.
fn outcome(mut child: Child) -> io::Result<()> {
    let ended = child.wait()?;
    match ended.code() {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error)),
        None => Err(io::Error::other(format!("the program that makes the call ended by {ended}"))),
    }
}

/// EFAULT is no denial: the kernel looked at the arguments.
fn judge(ended: io::Result<()>, refusals: &[i32], success: &str) -> ProbeOutcome {
    match ended {
        Err(error) if error.raw_os_error().is_some_and(|number| refusals.contains(&number)) => {
            Denied(error.to_string())
        }
        Err(error) if error.raw_os_error() != Some(libc::EFAULT) => NotDenied(format!("unclear: {error}")),
        _ => NotDenied(success.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(number: i64, arguments: [i32; 3]) -> io::Result<()> {
        // A child that another test forks meanwhile may hold the new program open for writing until it executes.
        loop {
            let dir = tempfile::tempdir().unwrap();
            match (RawCall { number, arguments }).start(&dir.path().join("program")) {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                started => return outcome(started.unwrap()),
            }
        }
    }

    #[test]
    fn the_program_makes_the_call_with_its_arguments_and_returns_the_errno() {
        assert!(answer(libc::SYS_fcntl, [0, libc::F_GETFD, 0]).is_ok());
        let refused = |number, arguments| answer(number, arguments).unwrap_err().raw_os_error();
        assert_eq!(refused(libc::SYS_fcntl, [99, libc::F_GETFD, 0]), Some(libc::EBADF));
        assert_eq!(refused(libc::SYS_fcntl, [0, libc::F_DUPFD, -1]), Some(libc::EINVAL));
        assert_eq!(refused(libc::SYS_lseek, [0, 0, 99]), Some(libc::EINVAL));
    }

    #[test]
    fn without_a_filter_leases_and_asynchronous_io_work() {
        assert!(answer(libc::SYS_fcntl, [0, libc::F_SETLEASE, libc::F_RDLCK]).is_ok());
        assert!(matches!(judge(answer(libc::SYS_io_setup, [1, 0, 0]), &[libc::ENOSYS], ""), NotDenied(_)));
    }
}
