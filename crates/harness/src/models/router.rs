//! The router of one run: started before its engine, ended after it. Its token dies with the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use herma_core::RunId;
use herma_core::secret::Secret;
use herma_engines::env;
use herma_evidence::{Redactor, layout};
use herma_net::SocketDir;
use herma_router::config::Address;
use herma_router::service::{Handle, Options, Refusals, RunAbove, Service};

use super::plan::RouterPlan;
use super::take_calls;
use crate::error::Stop;
use crate::run::Run;

/// The socket's name in the run's directory of the router.
const SOCKET: &str = "router.sock";
/// How long the router has to give back what it leased when its run is over.
const DRAIN: Duration = Duration::from_secs(5);

/// The router of a run.
pub(crate) struct RunRouter {
    handle: Handle,
    address: Address,
    token: Secret<String>,
    model: String,
    socket: PathBuf,
    /// Keeps the bound path valid.
    _dir: SocketDir,
}

impl RunRouter {
    /// Where the agent's process calls it, seen from outside of its destination.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// What takes the token out of everything that is written.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new([self.token.clone()])
    }

    /// The way there, as the agent's process finds it in its environment; `socket` is where it sees the socket.
    pub(crate) fn variables(&self, socket: &Path) -> Vec<(String, String)> {
        [
            (env::SOCKET_VARIABLE, socket.display().to_string()),
            (env::TOKEN_VARIABLE, self.token.expose().clone()),
            (env::MODEL_VARIABLE, self.model.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The run's token in the variable in which an agent expects the key of its provider.
    pub(crate) fn token_in(&self, name: &str) -> (String, String) {
        (name.to_owned(), self.token.expose().clone())
    }

    /// How many calls have begun so far.
    pub(crate) fn calls_begun(&self, run: RunId) -> u64 {
        self.handle.calls_begun(&run.to_string()).unwrap_or(0)
    }

    /// The run as the routers of its children know it: what they spend counts against its budget.
    pub(crate) fn above(&self, run: RunId) -> Option<RunAbove> {
        self.handle.above(&run.to_string())
    }

    /// Where herma itself calls it.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// What herma's own questions are known by: they are the run's.
    pub(super) fn token(&self) -> &Secret<String> {
        &self.token
    }
}

/// Starts the router of the run, where its contract names a model.
pub(crate) fn start(run: &mut Run<'_>, plan: Option<&RouterPlan>) -> Result<(), Stop> {
    let Some(plan) = plan else { return Ok(()) };
    let dir = run.dirs.router();
    let sockets = SocketDir::create(&dir)?;
    let limits = &plan.config.limits;
    run.facts.providers = plan
        .config
        .upstreams
        .iter()
        .map(|(name, upstream)| (name.clone(), upstream.provider.name().to_owned()))
        .collect();
    let run_name = run.plan.run_id.to_string();
    let above = above(run)?;
    let options = Options {
        limits: limits.clone(),
        upstreams: plan.upstreams().map_err(internal)?,
        per_day: plan.config.budgets.day,
        per_engine: plan.config.budgets.engines.clone(),
        leases: run.installation.leases()?,
        holder: run_name.clone(),
        earlier: BTreeMap::new(),
        clock: Arc::clone(&run.installation.clock),
    };
    let handle = Service::start_below(options, above).map_err(internal)?;
    let token = handle.admit(plan.grant(&run_name, &run.plan.engine), &dir).map_err(internal)?;
    let socket = sockets.path(SOCKET);
    let address = handle.listen(&Address::Unix(sockets.bind_path(SOCKET))).map_err(internal)?;
    let router = RunRouter { handle, address, token, model: plan.model.clone(), socket, _dir: sockets };
    run.events.redact_with(router.redactor());
    run.router = Some(router);
    Ok(())
}

/// The run that this one counts against, where it is a child.
fn above<'a>(run: &Run<'a>) -> Result<Option<&'a RunAbove>, Stop> {
    let Some(parent) = run.occasion.child_of else { return Ok(None) };
    // A child names no model that its parent does not: this is what holds if that should ever change.
    let unbounded = || internal("the run that asked for this one has no router, so that nothing bounds it");
    parent.router.as_ref().map(Some).ok_or_else(unbounded)
}

/// Ends the router of the run, if one is still there: its token is dead, calls under way are broken off, and what it
/// recorded goes into the bundle. Nothing of the engine may be alive.
pub(crate) fn end(run: &mut Run<'_>) -> Result<(), Stop> {
    let Some(router) = run.router.take() else { return Ok(()) };
    let revoked = router.handle.revoke(&run.plan.run_id.to_string());
    let _ = router.handle.drain(DRAIN);
    let (refusals, lost) = match revoked {
        Some(Ok(revoked)) => (revoked.refusals, None),
        // Not its own words: they name the home.
        Some(Err(_)) => (Refusals::default(), Some("a model call could not be recorded")),
        None => (Refusals::default(), Some("the router has lost the run")),
    };
    let lost = lost.map(|why| format!("{}: {why}", layout::MODEL_CALLS));
    let unwritten = match take_calls(run, &refusals) {
        Err(Stop::Write(failure)) => Some(failure),
        taken => taken.map(|()| None)?,
    };
    // Such a run is never a pass; what the engine did is looked at all the same.
    for failure in lost.into_iter().chain(unwritten) {
        run.installation.home.release_reserve();
        run.facts.write_failures.push(failure);
    }
    Ok(())
}

fn internal(error: impl std::fmt::Display) -> Stop {
    Stop::Internal(error.to_string())
}
