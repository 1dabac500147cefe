//! The jobs of a run of the matrix: rows that share an expensive home are one job.

use herma_core::Blocker;
use herma_core::matrix::{MatrixCase, MatrixCaseName, MatrixRow};
use herma_harness::Installation;

use super::row::{run_case, run_row};
use super::site::Site;
use crate::failure_matrix::{FAILURE_MATRIX, Row, Way, World};

/// Rows that are run one after another, in one home.
pub(super) enum Job {
    /// Rows in a home of their own, or in one in which `fake` has proven stages 4 and 5.
    Rows(Vec<&'static Row>),
    /// A case that must pass.
    Case(MatrixCaseName),
}

/// The result of one row or case.
pub(super) enum Done {
    Row(MatrixRow),
    Case(MatrixCase),
}

/// The jobs, those that take longest first.
pub(super) fn jobs(only: &[Blocker]) -> Vec<Job> {
    let chosen = |row: &&Row| only.is_empty() || only.contains(&row.blocker);
    let (proven, single): (Vec<&Row>, Vec<&Row>) =
        FAILURE_MATRIX.iter().filter(chosen).partition(|row| shares(row));
    let mut jobs = Vec::new();
    if !proven.is_empty() {
        jobs.push(Job::Rows(proven));
    }
    if only.is_empty() {
        jobs.extend(MatrixCaseName::ALL.map(Job::Case));
    }
    let (slow, quick): (Vec<&Row>, Vec<&Row>) =
        single.into_iter().partition(|row| world(row) == Some(World::OtherIdentity));
    jobs.extend(slow.into_iter().chain(quick).map(|row| Job::Rows(vec![row])));
    jobs
}

fn world(row: &Row) -> Option<World> {
    match row.way {
        Way::Run(setup) => Some(setup.world),
        Way::NotYet(_) => None,
    }
}

/// Whether the row needs the home with proven stages.
fn shares(row: &Row) -> bool {
    world(row).is_some_and(needs_proofs)
}

/// Whether runs of this world need stage 4 or 5 proven.
pub(super) fn needs_proofs(world: World) -> bool {
    matches!(world, World::Denied | World::ExpiredApproval | World::UsedApproval | World::NoOutcome)
}

impl Job {
    /// How many results it gives.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Case(_) => 1,
        }
    }

    /// Carries it out; each result is handed over as soon as it is there.
    pub(super) fn carry_out(&self, installation: &Installation, hand_over: &dyn Fn(Done)) {
        let mut site = Site::make(installation.settings(), &installation.home.own_digest());
        let rows = match self {
            Self::Case(name) => return hand_over(Done::Case(run_case(*name, site.as_mut()))),
            Self::Rows(rows) => rows,
        };
        for row in rows {
            if installation.cancellation.is_cancelled() {
                return;
            }
            hand_over(Done::Row(run_row(row, site.as_mut())));
        }
    }
}

impl Done {
    /// Its name, and the problems with it.
    pub(super) fn said(&self) -> (&'static str, &[String]) {
        match self {
            Self::Row(row) => (row.blocker.as_str(), &row.problems),
            Self::Case(case) => (case.name.as_str(), &case.problems),
        }
    }
}
