//! What the kernel says of a container's first process, read from outside before its command starts: what Docker was asked
//! for is not what Docker did.

use std::fs;
use std::io;

use super::{Docker, Piece};
use crate::cgroup;
use crate::destination::StartError;
use crate::job::Job;

impl Docker {
    /// Whether the limits that Docker holds, and the filters of system calls, are what they are said to be.
    pub(super) fn confirm(&self, keeper: i32, job: &Job) -> Result<(), StartError> {
        let facts = self.facts()?;
        let differs =
            |error: io::Error| StartError::Walls { program: "Docker".to_owned(), said: error.to_string() };
        if self.standing.has(Piece::Groups) {
            cgroup::confirm(keeper, &facts.held(&job.limits), facts.swap).map_err(differs)?;
        }
        let filters = self
            .filters(facts)
            .filter(|_| self.standing.has(Piece::Filter) && self.standing.has(Piece::NoNewPrivileges));
        filters.map_or(Ok(()), |least| count(keeper, least)).map_err(differs)
    }
}

/// Fewer filters of system calls than this are an error. Kernels before 5.9 do not say how many there are.
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
