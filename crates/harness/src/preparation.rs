//! The overlap of two steps: the base tree and the workspace are made while the gates with effects are evaluated.

use herma_core::Digest;

use crate::context::{RunContext, joined};
use crate::effectful_gates::{self, ProbeResults};
use crate::environment::{EnvironmentResults, RunEnvironment};
use crate::error::Stop;
use crate::gates::{Findings, Ready};
use crate::services::{Services, ServicesStarted};
use crate::target::wanted_history;
use crate::tree_diff::{BaseTree, base_tree, missing_note};
use crate::workspace::{self, WorkspaceState};

/// The base tree and the workspace of a run. No process uses them before the decision.
pub(crate) struct Preparation<'r> {
    pub(crate) base: BaseTree,
    pub(crate) workspace: WorkspaceState<'r>,
    /// The contract's environment, built.
    pub(crate) environment: Option<RunEnvironment>,
}

/// The results of the gates with effects.
pub(crate) struct ProbeStep<'s> {
    pub(crate) findings: &'s mut Findings,
    pub(crate) services: &'s mut Services,
    pub(crate) started: &'s mut Option<ServicesStarted>,
    pub(crate) probe: &'s mut Option<ProbeResults>,
    pub(crate) environment: &'s mut Option<EnvironmentResults>,
}

impl<'r> Preparation<'r> {
    /// Evaluates the gates with effects, and makes base tree and workspace meanwhile.
    pub(crate) fn beside_gates<'a: 'r>(
        ctx: &RunContext<'a>,
        ready: &'r Ready,
        judged: Option<Digest>,
        step: ProbeStep<'_>,
    ) -> Result<Self, Stop> {
        let ProbeStep { findings, services, started, probe, environment } = step;
        let (made, probed) = std::thread::scope(|scope| {
            // herma's own git directory is read from the target.
            let base = scope.spawn(|| {
                base_tree(ctx.installation, (&ready.target, wanted_history(ctx.contract)), &ctx.dirs)
            });
            let arranged = effectful_gates::arrange(ctx, ready, judged, findings, (&mut *services, started))?;
            let (services, wanted) = (&*services, arranged.is_some());
            let made = scope.spawn(move || {
                let base = joined(base)??;
                if let Some(note) = missing_note(&base.missing) {
                    ctx.note(&note);
                }
                let workspace = if wanted {
                    workspace::make(ctx, services, ready, &base)
                } else {
                    Ok(WorkspaceState::NotNeeded)
                };
                Ok::<_, Stop>((base, workspace))
            });
            let probed =
                arranged.map(|arranged| effectful_gates::probe_destination(ctx, ready, arranged)).transpose();
            Ok::<_, Stop>((joined(made)?, probed))
        })?;
        // A cancelled run, or one whose base cannot be read or copied, asks for nothing and uses nothing up.
        ctx.check_cancelled()?;
        let (base, workspace) = made?;
        let (workspace, failed) = match workspace {
            Ok(workspace) => (workspace, None),
            Err(full @ Stop::Write(_)) => return Err(full),
            Err(failed) => (WorkspaceState::NotNeeded, Some(failed)),
        };
        let environment = match probed? {
            Some(probed) => {
                let outputs = (findings, probe, environment);
                effectful_gates::evaluate(ctx, services, (ready, &base), probed, failed, outputs)?
            }
            None => None,
        };
        ctx.check_cancelled()?;
        Ok(Self { base, workspace, environment })
    }
}
