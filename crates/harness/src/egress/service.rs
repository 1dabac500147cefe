//! The egress proxy of one run: started before its engine, ended with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::EventType;
use herma_core::egress::{EgressMode, EgressUse};
use herma_core::event::EgressDecided;
use herma_destination::DestinationCapabilities;
use herma_egress::proxy::{Counts, Ended, Handle, Listen, Mode, Options, Service};
use herma_evidence::layout;
use herma_net::SocketDir;
use herma_trust::EgressProposal;

use super::plan::EgressPlan;
use super::recorder::Recorder;
use crate::error::Stop;
use crate::run::Run;

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
pub(crate) fn start(run: &mut Run<'_>, plan: &EgressPlan) -> Result<(), Stop> {
    if !DestinationCapabilities::of(run.plan.destination).has_network_namespace()
        || !run.contract.terms.stage.starts_engine()
    {
        return Ok(());
    }
    let sockets = SocketDir::create(&run.dirs.egress())?;
    let terms = run.every_terms().cloned().collect();
    let recorder = Arc::new(Recorder::new(Arc::clone(&run.events), terms));
    let options = Options {
        mode: match plan.mode {
            EgressMode::Strict => Mode::Strict,
            EgressMode::Learn => Mode::Learn,
        },
        ..Options::new(
            plan.allowlist.clone(),
            Arc::clone(&run.installation.clock),
            Arc::<Recorder>::clone(&recorder),
        )
    };
    let handle = Service::start(options).map_err(internal)?;
    let socket = sockets.path(SOCKET);
    handle.listen(&Listen::Unix(sockets.bind_path(SOCKET))).map_err(internal)?;
    handle.listen_for_operator(&Listen::Unix(sockets.bind_path(OPERATORS_SOCKET))).map_err(internal)?;
    run.facts.egress = Some(EgressUse { mode: plan.mode, ..EgressUse::default() });
    run.egress = Some(RunEgress { handle, recorder, mode: plan.mode, socket, _dir: sockets });
    Ok(())
}

/// Ends the proxy of the run, if one is still there: every tunnel is cut, and what it decided is added up. Nothing of the
/// engine may be alive.
pub(crate) fn end(run: &mut Run<'_>) -> Result<(), Stop> {
    let Some(RunEgress { handle, recorder, mode, .. }) = run.egress.take() else { return Ok(()) };
    let Ended { counts, learned } = handle.end();
    let noted = recorder.noted();
    let recorded = run.events.count(EventType::EgressDecided);
    let used = used(mode, &counts, recorded);
    run.facts.attempted(noted.attempted);
    run.facts.egress_denied = noted.denied;
    run.facts.egress = Some(used.clone());
    // Such a run is never a pass; what the engine did is looked at all the same.
    let lost =
        || (recorded < noted.recorded).then(|| format!("{}: a decision of egress is lost", layout::EVENTS));
    if let Some(failure) = noted.unwritten.or_else(lost) {
        run.installation.home.release_reserve();
        run.facts.write_failures.push(failure);
    }
    run.facts.save(&run.dirs.facts())?;
    if !learned.is_empty() {
        let proposal = EgressProposal {
            run_id: run.plan.run_id,
            contract_id: run.contract.terms.id.clone(),
            made: run.installation.clock.now(),
            hosts: learned.into_iter().collect(),
        };
        run.installation.egress().propose(&proposal).map_err(|e| Stop::Write(e.to_string()))?;
    }
    if used.decisions() > 0 {
        run.record(EgressDecided::Totals { sums: used })?;
    }
    Ok(())
}

fn used(mode: EgressMode, counts: &Counts, recorded: u64) -> EgressUse {
    let mut used = EgressUse {
        mode,
        allowed: counts.allowed,
        denied: counts.denied.iter().map(|(reason, count)| (reason.word().to_owned(), *count)).collect(),
        failed: counts.failed.iter().map(|(fault, count)| (fault.word().to_owned(), *count)).collect(),
        without_an_event: 0,
        bytes_out: counts.bytes_out,
        bytes_in: counts.bytes_in,
    };
    used.without_an_event = used.decisions().saturating_sub(recorded);
    used
}

fn internal(error: impl std::fmt::Display) -> Stop {
    Stop::Internal(error.to_string())
}
