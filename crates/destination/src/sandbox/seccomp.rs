//! The seccomp filter: compiled from the table into the BPF that bubblewrap loads.

mod table;

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use self::table::{ArgCheck, Is, RefusalErrno, SyscallRow, TABLE};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// The number of BPF programs.
pub(crate) const COUNT: usize = 2;

/// Two programs, one per errno; the kernel evaluates both. A system call of a foreign architecture kills the
/// process: its numbers mean other calls, and the table would not match.
pub(super) fn programs() -> io::Result<&'static [Vec<u8>; COUNT]> {
    static MADE: OnceLock<Result<[Vec<u8>; COUNT], BackendError>> = OnceLock::new();
    MADE.get_or_init(make)
        .as_ref()
        .map_err(|error| io::Error::other(format!("the filter of system calls: {error}")))
}

/// Applies the same filter to this process and its children, where bubblewrap does not.
pub(crate) fn enforce() -> io::Result<()> {
    let failed =
        |error: &dyn std::error::Error| io::Error::other(format!("the filter of system calls: {error}"));
    for program in both().map_err(|error| failed(&error))? {
        seccompiler::apply_filter(&program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn make() -> Result<[Vec<u8>; COUNT], BackendError> {
    both().map(|programs| programs.map(|program| bytes(&program)))
}

fn both() -> Result<[BpfProgram; COUNT], BackendError> {
    let mut refusing = compile(RefusalErrno::NotPermitted)?;
    refusing.splice(0..0, refuse_x32());
    Ok([refusing, compile(RefusalErrno::NotThere)?])
}

fn compile(answer: RefusalErrno) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for row in TABLE.iter().filter(|row| row.answer == answer) {
        rules.insert(row.number, chain(row)?);
    }
    let refusal = match answer {
        RefusalErrno::NotPermitted => libc::EPERM,
        RefusalErrno::NotThere => libc::ENOSYS,
    };
    let action = SeccompAction::Errno(refusal.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, action, ARCHITECTURE)?.try_into()
}

fn chain(row: &SyscallRow) -> Result<Vec<SeccompRule>, BackendError> {
    let all = |checks: &&[ArgCheck]| {
        let conditions: Result<_, BackendError> = checks.iter().map(condition).collect();
        SeccompRule::new(conditions?)
    };
    row.when.iter().map(all).collect()
}

fn condition(check: &ArgCheck) -> Result<SeccompCondition, BackendError> {
    let (operator, value) = match check.is {
        Is::Equal(value) => (SeccompCmpOp::Eq, value),
        Is::Not(value) => (SeccompCmpOp::Ne, value),
        Is::Has(mask, value) => (SeccompCmpOp::MaskedEq(mask.into()), value),
    };
    // The kernel truncates these arguments to 32 bits. Comparing all 64 would let a set upper bit pass the filter.
    SeccompCondition::new(check.argument, SeccompCmpArgLen::Dword, operator, value.into())
}

/// On x86-64 the x32 ABI has the same architecture value and differs by one bit of the number.
#[cfg(target_arch = "x86_64")]
fn refuse_x32() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    /// Load the number; if it is below X32, skip the next instruction; kill.
    const STEPS: [(u16, u8, u8, u32); 3] =
        [(0x20, 0, 0, 0), (0x35, 0, 1, X32), (0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS)];
    STEPS.map(|(code, jt, jf, k)| seccompiler::sock_filter { code, jt, jf, k }).to_vec()
}

#[cfg(not(target_arch = "x86_64"))]
fn refuse_x32() -> BpfProgram {
    Vec::new()
}

fn bytes(program: &BpfProgram) -> Vec<u8> {
    let one = |step: &seccompiler::sock_filter| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&step.code.to_ne_bytes());
        bytes[2] = step.jt;
        bytes[3] = step.jf;
        bytes[4..].copy_from_slice(&step.k.to_ne_bytes());
        bytes
    };
    program.iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_is_unique_and_has_a_reason() {
        let numbers: HashSet<i64> = TABLE.iter().map(|row| row.number).collect();
        assert_eq!(numbers.len(), TABLE.len());
        let names: HashSet<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for row in TABLE {
            assert!(row.why.len() > 5, "{}", row.name);
        }
    }

    #[test]
    fn the_programs_are_whole_and_fit_the_kernel() {
        for program in programs().unwrap() {
            assert!(program.len() % 8 == 0 && (8 * 4..8 * 4096).contains(&program.len()));
        }
    }
}
