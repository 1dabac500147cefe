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
use herma_router::service::{Handle, Options, ParentBudget, Refusals, Service};

use super::calls::{ModelResults, take_calls};
use super::plan::RouterPlan;
use crate::context::RunContext;
use crate::error::Stop;

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

    /// Redacts the token in everything that is written.
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
    pub(crate) fn above(&self, run: RunId) -> Option<ParentBudget> {
        self.handle.above(&run.to_string())
    }

    /// Where herma itself calls it.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// The token of herma's own probe: its calls are the run's.
    pub(super) fn token(&self) -> &Secret<String> {
        &self.token
    }
}

/// Starts the router of the run, whose contract names a model.
pub(crate) fn start(ctx: &RunContext<'_>, plan: &RouterPlan) -> Result<RunRouter, Stop> {
    let dir = ctx.dirs.router();
    let sockets = SocketDir::create(&dir)?;
    let limits = &plan.config.limits;
    let run_name = ctx.plan.run_id.to_string();
    let above = above(ctx)?;
    let options = Options {
        limits: limits.clone(),
        upstreams: plan.upstreams().map_err(Stop::internal)?,
        per_day: plan.config.budgets.day,
        per_engine: plan.config.budgets.engines.clone(),
        leases: ctx.installation.store.store().leases(),
        holder: run_name.clone(),
        earlier: BTreeMap::new(),
        clock: Arc::clone(&ctx.installation.clock),
    };
    let handle = Service::start_below(options, above).map_err(Stop::internal)?;
    let token = handle.admit(plan.grant(&run_name, &ctx.plan.engine), &dir).map_err(Stop::internal)?;
    let socket = sockets.path(SOCKET);
    let address = handle.listen(&Address::Unix(sockets.bind_path(SOCKET))).map_err(Stop::internal)?;
    let router = RunRouter { handle, address, token, model: plan.model.clone(), socket, _dir: sockets };
    ctx.events.redact_with(router.redactor());
    Ok(router)
}

/// The run that this one counts against, where it is a child.
fn above<'a>(ctx: &RunContext<'a>) -> Result<Option<&'a ParentBudget>, Stop> {
    let Some(parent) = ctx.occasion.child_of else { return Ok(None) };
    // A child names no model that its parent does not: this is what holds if that should ever change.
    let unbounded =
        || Stop::internal("the run that asked for this one has no router, so that nothing bounds it");
    parent.router.as_ref().map(Some).ok_or_else(unbounded)
}

/// Ends the router of the run: its token is revoked, calls in flight are broken off, and its records go into the bundle. No
/// process of the engine may be alive.
pub(crate) fn end(
    ctx: &RunContext<'_>,
    router: RunRouter,
    own_model_calls: u64,
    found: &mut Option<ModelResults>,
) -> Result<(), Stop> {
    let revoked = router.handle.revoke(&ctx.plan.run_id.to_string());
    let _ = router.handle.drain(DRAIN);
    let (refusals, lost) = match revoked {
        Some(Ok(revoked)) => (revoked.refusals, None),
        // The error itself names the home.
        Some(Err(_)) => (Refusals::default(), Some("a model call could not be recorded")),
        None => (Refusals::default(), Some("the router has lost the run")),
    };
    let lost = lost.map(|why| format!("{}: {why}", layout::MODEL_CALLS));
    let unwritten = match take_calls(ctx, &refusals, own_model_calls, found) {
        Err(Stop::Write(failure)) => Some(failure.to_string()),
        taken => taken.map(|()| None)?,
    };
    // Such a run is never a pass; the result of the engine is judged all the same.
    for failure in lost.into_iter().chain(unwritten) {
        ctx.installation.home.release_reserve();
        found.get_or_insert_default().write_failures.push(failure);
    }
    Ok(())
}
