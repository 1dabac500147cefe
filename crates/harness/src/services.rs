//! The services that an engine may call: router, egress proxy, and the socket for tool calls and child runs.

use std::collections::BTreeMap;

use herma_core::egress::EgressMode;
use herma_destination::JobPaths;
use herma_evidence::Redactor;
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::egress::{self, EgressResults, RunEgress};
use crate::error::Stop;
use crate::gates::Ready;
use crate::governance::{self, RunGovernance, ToolCallResults};
use crate::journal::StepResult;
use crate::run_router::{self, ModelResults, RunRouter};

/// The services of a run, while they may be called.
#[derive(Default)]
pub(crate) struct Services {
    pub(crate) router: Option<RunRouter>,
    pub(crate) egress: Option<RunEgress>,
    pub(crate) governance: Option<RunGovernance>,
}

/// The services that were started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServicesStarted {
    /// The provider behind each upstream of the run's router.
    pub(crate) providers: BTreeMap<String, String>,
    /// The mode of the egress proxy; none where the run has none.
    pub(crate) egress: Option<EgressMode>,
}

impl StepResult for ServicesStarted {
    const KEY: &'static str = "services";
}

impl Services {
    /// Starts them, one after the other. After an error those before it still run.
    pub(crate) fn start(
        &mut self,
        ctx: &RunContext<'_>,
        ready: &Ready,
        found: &mut Option<ServicesStarted>,
    ) -> Result<(), Stop> {
        // Services take their parent span from the thread that starts them.
        let _entered = ctx.log.run().enter();
        let started = found.insert(ServicesStarted::default());
        if let Some(plan) = &ready.router {
            started.providers = plan.providers();
            self.router = Some(run_router::start(ctx, plan)?);
        }
        self.egress = egress::start(ctx, &ready.egress)?;
        started.egress = self.egress.as_ref().map(|_| ready.egress.mode);
        self.governance = governance::start(ctx)?;
        Ok(())
    }

    /// The paths of the engine's job, and the sockets that it may call.
    pub(crate) fn job_paths(&self, ctx: &RunContext<'_>) -> JobPaths {
        JobPaths {
            workspace: ctx.dirs.workspace(),
            engine_dir: Some(ctx.dirs.engine()),
            home: ctx.contract.terms.environment.as_ref().map(|_| ctx.dirs.home()),
            router: self.router.as_ref().map(|router| router.socket().to_owned()),
            egress: self.egress.as_ref().map(|egress| egress.socket().to_owned()),
            governance: self.governance.as_ref().map(|governance| governance.socket().to_owned()),
        }
    }

    /// Redacts the secrets that the engine gets.
    pub(crate) fn redactor(&self) -> Redactor {
        self.router.as_ref().map_or_else(Redactor::default, RunRouter::redactor)
    }

    /// Ends those that still run, each whatever becomes of the others. No process of the engine may be alive.
    pub(crate) fn end(
        &mut self,
        ctx: &RunContext<'_>,
        own_model_calls: u64,
        (models, egress, tools): (
            &mut Option<ModelResults>,
            &mut Option<EgressResults>,
            &mut Option<ToolCallResults>,
        ),
    ) -> Vec<Stop> {
        let router = self.router.take().map(|router| run_router::end(ctx, router, own_model_calls, models));
        let proxy = self.egress.take().map(|proxy| egress::end(ctx, proxy, egress));
        let governance = self.governance.take().map(|socket| governance::end(ctx, socket, tools));
        [router, proxy, governance].into_iter().flatten().filter_map(Result::err).collect()
    }
}
