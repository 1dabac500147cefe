//! The egress proxy of one run: started before its engine, ended with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::EventType;
use herma_core::contract::Action;
use herma_core::egress::{EgressMode, EgressUse};
use herma_core::event::EgressDecided;
use herma_destination::DestinationCapabilities;
use herma_egress::proxy::{Counts, Handle, Listen, Mode, Options, ProxyTotals, Service};
use herma_evidence::layout;
use herma_net::SocketDir;
use herma_trust::EgressProposal;
use serde::{Deserialize, Serialize};

use super::plan::EgressPlan;
use super::recorder::Recorder;
use crate::context::RunContext;
use crate::error::Stop;
use crate::journal::StepResult;

/// The socket's name in the run's directory of the proxy.
const SOCKET: &str = "egress.sock";
/// The name of the operator's socket beside it. No agent sees it.
const OPERATORS_SOCKET: &str = "metrics.sock";

/// The egress proxy of a run.
pub(crate) struct RunEgress {
    handle: Handle,
    recorder: Arc<Recorder>,
    mode: EgressMode,
    socket: PathBuf,
    /// Keeps the bound path valid.
    _dir: SocketDir,
}

impl RunEgress {
    /// Where the agent's process calls it, seen from outside of its destination.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Starts the proxy of the run, also where nothing is allowed: what is denied is then known. `host` has none, because
/// nothing there would lead to it.
pub(crate) fn start(ctx: &RunContext<'_>, plan: &EgressPlan) -> Result<Option<RunEgress>, Stop> {
    if !DestinationCapabilities::of(ctx.plan.destination).has_network_namespace()
        || !ctx.contract.terms.stage.starts_engine()
    {
        return Ok(None);
    }
    let sockets = SocketDir::create(&ctx.dirs.egress())?;
    let terms = ctx.effective_rules().cloned().collect();
    let recorder = Arc::new(Recorder::new(Arc::clone(&ctx.events), terms));
    let options = Options {
        mode: match plan.mode {
            EgressMode::Strict => Mode::Strict,
            EgressMode::Learn => Mode::Learn,
        },
        ..Options::new(
            plan.allowlist.clone(),
            Arc::clone(&ctx.installation.clock),
            Arc::<Recorder>::clone(&recorder),
        )
    };
    let handle = Service::start(options).map_err(Stop::internal)?;
    let socket = sockets.path(SOCKET);
    handle.listen(&Listen::Unix(sockets.bind_path(SOCKET))).map_err(Stop::internal)?;
    handle.listen_for_operator(&Listen::Unix(sockets.bind_path(OPERATORS_SOCKET))).map_err(Stop::internal)?;
    Ok(Some(RunEgress { handle, recorder, mode: plan.mode, socket, _dir: sockets }))
}

/// The decisions of the run's egress proxy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EgressResults {
    pub(crate) used: EgressUse,
    /// The hosts that it denied, as text.
    pub(crate) denied: Option<String>,
    /// The forbidden actions that denied connections count as.
    pub(crate) attempted: Vec<Action>,
    pub(crate) write_failure: Option<String>,
}

impl StepResult for EgressResults {
    const KEY: &'static str = "egress";
}

/// Ends the proxy of the run: every tunnel is cut, and its decisions are added up. No process of the engine may be alive.
pub(crate) fn end(
    ctx: &RunContext<'_>,
    proxy: RunEgress,
    found: &mut Option<EgressResults>,
) -> Result<(), Stop> {
    let RunEgress { handle, recorder, mode, .. } = proxy;
    let ProxyTotals { counts, learned } = handle.end();
    let noted = recorder.noted();
    let recorded = ctx.events.count(EventType::EgressDecided);
    let used = used(mode, &counts, recorded);
    // Such a run is never a pass; the result of the engine is judged all the same.
    let lost =
        || (recorded < noted.recorded).then(|| format!("{}: a decision of egress is lost", layout::EVENTS));
    let results = found.insert(EgressResults {
        used: used.clone(),
        denied: noted.denied,
        attempted: noted.attempted.into_iter().collect(),
        write_failure: noted.unwritten.or_else(lost),
    });
    if results.write_failure.is_some() {
        ctx.installation.home.release_reserve();
    }
    ctx.journal.append(results)?;
    if !learned.is_empty() {
        let proposal = EgressProposal {
            run_id: ctx.plan.run_id,
            contract_id: ctx.contract.terms.id.clone(),
            made: ctx.installation.clock.now(),
            hosts: learned.into_iter().collect(),
        };
        ctx.installation.egress().propose(&proposal).map_err(Stop::write)?;
    }
    if used.decisions() > 0 {
        ctx.record(EgressDecided::Totals { sums: used })?;
    }
    Ok(())
}

fn used(mode: EgressMode, counts: &Counts, recorded: u64) -> EgressUse {
    let mut used = EgressUse {
        mode,
        allowed: counts.allowed,
        denied: counts.denied.iter().map(|(reason, count)| (reason.code().to_owned(), *count)).collect(),
        failed: counts.failed.iter().map(|(fault, count)| (fault.code().to_owned(), *count)).collect(),
        without_an_event: 0,
        bytes_out: counts.bytes_out,
        bytes_in: counts.bytes_in,
    };
    used.without_an_event = used.decisions().saturating_sub(recorded);
    used
}
