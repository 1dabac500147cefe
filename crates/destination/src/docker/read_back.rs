//! Reads the kernel's state of a container's init process from outside before its command starts: the options that
//! Docker got are not proof of what it applied.

use std::fs;
use std::io;

use super::{Docker, Restriction};
use crate::cgroup;
use crate::destination::StartError;
use crate::job::Job;

impl Docker {
    /// Checks the limits that Docker enforces and the number of seccomp filters.
    pub(super) fn confirm(&self, keeper: i32, job: &Job) -> Result<(), StartError> {
        let facts = self.facts()?;
        let differs = |error: io::Error| StartError::Isolation {
            program: "Docker".to_owned(),
            said: error.to_string(),
        };
        if self.enabled.has(Restriction::Groups) {
            cgroup::confirm(keeper, &facts.held(&job.limits), facts.swap).map_err(differs)?;
        }
        let filters = self.filters(facts).filter(|_| {
            self.enabled.has(Restriction::Filter) && self.enabled.has(Restriction::NoNewPrivileges)
        });
        filters.map_or(Ok(()), |least| count(keeper, least)).map_err(differs)
    }
}

/// Fewer seccomp filters than this are an error. Kernels before 5.9 do not report the number.
fn count(process: i32, least: usize) -> io::Result<()> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    match filters(&status) {
        Some(seen) if seen < least => Err(io::Error::other(format!(
            "{seen} filters of system calls stand around the container, and {least} were asked for"
        ))),
        _ => Ok(()),
    }
}

fn filters(status: &str) -> Option<usize> {
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_where_the_kernel_says_how_many_there_are() {
        assert_eq!(filters("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\nSpeculation:\t1\n"), Some(3));
        assert_eq!(filters("Name:\tx\nSeccomp:\t2\n"), None);
    }
}
