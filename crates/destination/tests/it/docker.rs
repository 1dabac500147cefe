//! Jobs in containers, with a Docker daemon of the test's own.

mod daemon;
mod diagnoses;
mod endings;
mod jobs;
mod restrictions;
