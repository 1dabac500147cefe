//! The attempts of the probes. Only an error that can mean nothing but a denial counts as one.

mod files;
mod kernel;
mod limits;
mod network;
mod processes;
mod raw_call;

use std::io::{self, ErrorKind};

pub(super) use self::files::{
    container_sockets, kernel_lists, kernel_settings, list, push, reach_socket, read_canary,
    read_only_system, second_wall, write_in, write_mounts,
};
pub(super) use self::kernel::{
    capabilities, environment, filter, host_user, io_uring, keyring, mount, namespace, new_privileges,
    open_files, other_user, outlive, session, user_namespace,
};
pub(super) use self::limits::{exceed_memory, exceed_processes, read_back};
pub(super) use self::network::{
    abstract_socket, connect_loopback, connect_out, datagram, hypervisor, kernel_messages, packets,
    raw_packets, resolve,
};
pub(super) use self::processes::{see, signal, trace, trace_sibling};
pub(super) use self::raw_call::{aio_context, file_lease, socket_filter};

/// The outcome of an attempt.
pub(super) enum ProbeOutcome {
    /// It was denied, with this message.
    Denied(String),
    /// It was not denied, or not clearly.
    NotDenied(String),
    /// A helper program is still running; the closure waits for its outcome.
    Pending(Box<dyn FnOnce() -> ProbeOutcome>),
}

use ProbeOutcome::{Denied, NotDenied};

const ABSENT: &[ErrorKind] = &[ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::NotADirectory];
const FORBIDDEN: &[ErrorKind] = &[ErrorKind::PermissionDenied];

/// Denied if the error kind is one of `refusals`.
fn judge<T>(
    result: io::Result<T>,
    refusals: &[ErrorKind],
    success: impl FnOnce(T) -> String,
) -> ProbeOutcome {
    match result {
        Err(error) if refusals.contains(&error.kind()) => Denied(error.to_string()),
        Err(error) => NotDenied(format!("unclear: {error}")),
        Ok(value) => NotDenied(success(value)),
    }
}

/// The same, where some errno values without a kind also mean denial.
fn judge_numbers<T>(
    result: io::Result<T>,
    refusals: &[ErrorKind],
    numbers: &[i32],
    success: impl FnOnce(T) -> String,
) -> ProbeOutcome {
    match result {
        Err(error) if error.raw_os_error().is_some_and(|number| numbers.contains(&number)) => {
            Denied(error.to_string())
        }
        other => judge(other, refusals, success),
    }
}

/// The first attempt that was not denied, or the last denial.
fn all(attempts: impl Iterator<Item = ProbeOutcome>, none: &str) -> ProbeOutcome {
    let mut last = Denied(none.to_owned());
    for attempt in attempts {
        if matches!(attempt, NotDenied(_)) {
            return attempt;
        }
        last = attempt;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(attempt: &ProbeOutcome) -> bool {
        matches!(attempt, Denied(_))
    }

    #[test]
    fn only_a_clear_denial_counts_as_one() {
        let failed =
            |kind: ErrorKind| judge(Err::<(), _>(kind.into()), network::NO_ROUTE, |()| String::new());
        assert!(denied(&failed(ErrorKind::NetworkUnreachable)));
        for kind in [ErrorKind::TimedOut, ErrorKind::HostUnreachable, ErrorKind::Interrupted] {
            assert!(!denied(&failed(kind)), "{kind}");
        }
        assert!(!denied(&judge(Ok(()), FORBIDDEN, |()| String::new())));
    }

    #[test]
    fn one_success_among_denials_is_a_success() {
        let attempts = [Denied("a".into()), NotDenied("b".into()), Denied("c".into())];
        assert!(!denied(&all(attempts.into_iter(), "")));
    }
}
