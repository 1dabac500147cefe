//! The directories that starts are measured in, and the canaries around them.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use herma_core::RunId;
use herma_destination::{Job, JobPaths, Sandbox};

use super::Order;
use crate::error::BenchError;

/// The command, as herma and everybody else starts it.
pub(super) const COMMAND: &str = "/bin/true";

/// The directories of a run.
pub(super) struct Site<'a> {
    pub(super) order: &'a Order<'a>,
    pub(super) workspace: PathBuf,
    /// The home of a user who has nothing; also of programs that keep settings there.
    pub(super) home: PathBuf,
    engine: PathBuf,
    /// Where an egress proxy would listen, or why nobody can. `true` does not call it.
    way_out: Result<(PathBuf, UnixListener), String>,
}

impl<'a> Site<'a> {
    pub(super) fn prepare(order: &'a Order<'a>) -> Result<Self, BenchError> {
        let dir = order.scratch.join("start");
        let [workspace, engine, home] = ["workspace", "engine", "home"].map(|name| dir.join(name));
        for dir in [&workspace, &engine, &home] {
            fs::create_dir_all(dir).map_err(BenchError::io(format!("cannot make {}", dir.display())))?;
        }
        let socket = order.scratch.join("e.sock");
        let way_out = match UnixListener::bind(&socket) {
            Ok(listener) => Ok((socket, listener)),
            Err(error) => Err(format!("nobody can listen on {}: {error}", socket.display())),
        };
        Ok(Self { order, workspace, home, engine, way_out })
    }

    /// A sandbox that has not been asked anything yet, as that of a run.
    pub(super) fn sandbox(&self) -> Sandbox {
        Sandbox::find(self.order.herma.clone(), &self.order.search_path)
    }

    /// The command as a job without a way out, such as a verification.
    pub(super) fn job(&self) -> Result<Job, BenchError> {
        let mut entropy = [0; 10];
        getrandom::fill(&mut entropy)
            .map_err(|error| BenchError::io("cannot name a process")(std::io::Error::other(error)))?;
        let run_id = RunId::new(self.order.clock.now(), entropy);
        let paths = JobPaths::new(self.workspace.clone()).with_engine_dir(self.engine.clone());
        Ok(Job::new(run_id, vec![COMMAND.into()], paths).with_herma())
    }

    /// The same with a way out, as every engine has one.
    pub(super) fn job_with_a_way_out(&self) -> Result<Job, BenchError> {
        let (socket, _) = self.way_out.as_ref().map_err(|why| BenchError::Sandbox(why.clone()))?;
        let mut job = self.job()?;
        job.paths.egress = Some(socket.clone());
        Ok(job)
    }
}
