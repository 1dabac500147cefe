//! `environment.json`, while a run fills it in.

use herma_core::Digest;
use herma_core::environment::{
    BaseResult, CommandRecord, EnvironmentFailure, EnvironmentRecord, EnvironmentSchema, EnvironmentUse,
    HistoryRecord, InputRecord, LayerBuildRecord, LayerName, PreflightRecord, RebuildRecord, RebuiltUse,
    RegistryDecision, ToolRecord,
};
use herma_environments::EgressRecord;
use herma_environments::build::BuildError;
use herma_environments::key::LayerKey;
use herma_environments::layers::{LayerKind, LayerRecord};
use herma_evidence::layout;
use herma_git::BaseHistory;

use crate::context::{RunContext, pretty};
use crate::error::Stop;
use crate::tree_diff::BaseTree;

/// The parts of the record that are known so far.
#[derive(Clone)]
pub(super) struct RecordDraft {
    definition: Option<(herma_core::environment::EnvironmentDefinition, Digest)>,
    history: Option<HistoryRecord>,
    pub(super) layers: Vec<LayerBuildRecord>,
    failure: Option<EnvironmentFailure>,
    preflight: Option<PreflightRecord>,
    pub(super) rebuilt: Option<RebuildRecord>,
}

impl RecordDraft {
    pub(super) fn new(ctx: &RunContext<'_>, base: &BaseTree) -> Result<Self, Stop> {
        let definition = match &ctx.contract.terms.environment {
            Some(definition) => Some((definition.clone(), definition.digest().map_err(Stop::internal)?)),
            None => None,
        };
        let history = base.history().map(BaseHistory::record);
        Ok(Self { definition, history, layers: Vec::new(), failure: None, preflight: None, rebuilt: None })
    }

    pub(super) fn failed(&mut self, error: &BuildError) {
        self.failure = Some(failure(error));
    }

    pub(super) fn preflight(&mut self, seen: PreflightRecord) {
        self.preflight = Some(seen);
    }

    pub(super) fn results(&self) -> &[BaseResult] {
        self.preflight.as_ref().map_or(&[], |preflight| &preflight.results)
    }

    /// The part that the report repeats.
    pub(super) fn used(&self) -> Option<EnvironmentUse> {
        let definition = self.definition.as_ref()?.1;
        let tree = self.layers.last()?.tree;
        let layers = self.layers.iter().map(|layer| layer.key).collect();
        let rebuilt = self.rebuilt.as_ref().and_then(|rebuilt| {
            let tree = rebuilt.layers.last()?.tree;
            Some(RebuiltUse { layers: rebuilt.layers.iter().map(|layer| layer.key).collect(), tree })
        });
        Some(EnvironmentUse { definition, layers, tree, rebuilt })
    }

    /// Writes the file.
    pub(super) fn write(&self, ctx: &RunContext<'_>) -> Result<(), Stop> {
        let record = EnvironmentRecord {
            schema: EnvironmentSchema::V1,
            definition: self.definition.as_ref().map(|(definition, _)| definition.clone()),
            definition_digest: self.definition.as_ref().map(|(_, digest)| *digest),
            history: self.history.clone(),
            layers: self.layers.clone(),
            failure: self.failure.clone(),
            preflight: self.preflight.clone(),
            rebuilt: self.rebuilt.clone(),
        };
        let redacted = ctx.events.redactor().redact_record(&record).map_err(Stop::internal)?;
        Ok(ctx.bundle.write(layout::ENVIRONMENT, &pretty(&redacted)?)?)
    }
}

/// A failed build as the evidence shows it.
pub(super) fn failure(error: &BuildError) -> EnvironmentFailure {
    let (last_lines, denied, egress) = match error {
        BuildError::Command(failure) => {
            (failure.last_lines.clone(), failure.denied.clone(), decisions(&failure.egress))
        }
        _ => (Vec::new(), Vec::new(), Vec::new()),
    };
    // Errors of git and of files can name paths of this machine.
    let message = match error {
        BuildError::Command(_) | BuildError::TrackedFilesChanged(_) => error.to_string(),
        _ => "herma could not build it; the blocker says why".to_owned(),
    };
    EnvironmentFailure { message, last_lines, denied, egress }
}

/// A layer as the evidence shows it.
pub fn layer(record: &LayerRecord, reused: bool) -> Result<LayerBuildRecord, serde_json::Error> {
    let inputs = record.inputs.iter().map(|input| InputRecord {
        path: input.path.clone(),
        mode: input.mode.clone(),
        digest: input.digest,
    });
    let tools = record.tools.iter().map(|tool| ToolRecord {
        name: tool.name.clone(),
        version: tool.version.clone(),
        digest: tool.digest,
    });
    let commands = record
        .commands
        .iter()
        .map(|ran| CommandRecord { command: ran.command.clone(), duration_ms: ran.duration_ms });
    Ok(LayerBuildRecord {
        kind: match record.kind {
            LayerKind::Fetch => LayerName::Fetch,
            LayerKind::Setup => LayerName::Setup,
        },
        key: digest_of(record.key)?,
        reused,
        inputs: inputs.collect(),
        tools: tools.collect(),
        destination: record.destination.clone(),
        architecture: record.architecture.clone(),
        base_tree: record.base_tree.clone(),
        source_and_network: record.source_and_network,
        commands: commands.collect(),
        egress: decisions(&record.egress),
        left_out: record.left_out.clone(),
        duration_ms: record.duration_ms,
        built_at: record.built_at,
        tree: record.tree.digest,
        bytes: record.tree.bytes,
        files: record.tree.files,
    })
}

fn decisions(egress: &[EgressRecord]) -> Vec<RegistryDecision> {
    let each = egress.iter().map(|decision| RegistryDecision {
        host: decision.host.clone(),
        port: decision.port,
        verdict: decision.verdict.clone(),
        count: decision.count,
    });
    each.collect()
}

fn digest_of(key: LayerKey) -> Result<Digest, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(key)?)
}
