//! The checks that must hold before an engine starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::BlockerRecord;

/// One check that must hold before the engine starts, in the order in which they are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The contract says everything that its stage needs.
    ContractComplete,
    /// herma has an adapter for the engine, which can do what the contract needs.
    EngineRegistered,
    /// The engine is switched on.
    EngineEnabled,
    /// The engine has proven the stage.
    StageProven,
    /// The run is not nested too deep.
    Depth,
    /// A person has admitted the engine: source pin and digest.
    EngineAdmitted,
    /// A person has admitted the exact model.
    ModelAdmitted,
    /// The model's provider is configured.
    ProviderConfigured,
    /// The destination is there and may be used for this engine.
    DestinationReady,
    /// The target is there and may be worked on.
    TargetAdmitted,
    /// No tracked file of the target has an uncommitted change. Untracked files and `.herma/` are not looked at.
    TargetClean,
    /// A person has approved exactly this run.
    ApprovalPresent,
    /// The engine's program says that it is what was admitted.
    EngineIdentity,
    /// The model answers with content.
    ProviderResponseShape,
    /// Nothing inside the destination reaches what it must not reach.
    Confinement,
    /// The contract's environment is built.
    Environment,
    /// The verification commands can run on the base, with the result that the contract expects.
    Preflight,
}

impl Gate {
    /// Every gate, in order of evaluation.
    pub const ALL: [Self; 17] = [
        Self::ContractComplete,
        Self::EngineRegistered,
        Self::EngineEnabled,
        Self::StageProven,
        Self::Depth,
        Self::EngineAdmitted,
        Self::ModelAdmitted,
        Self::ProviderConfigured,
        Self::DestinationReady,
        Self::TargetAdmitted,
        Self::TargetClean,
        Self::ApprovalPresent,
        Self::EngineIdentity,
        Self::ProviderResponseShape,
        Self::Confinement,
        Self::Environment,
        Self::Preflight,
    ];

    /// Whether evaluating it starts a process inside the destination. Those come last, and only if all others hold.
    #[must_use]
    pub fn has_effects(self) -> bool {
        matches!(
            self,
            Self::EngineIdentity
                | Self::ProviderResponseShape
                | Self::Confinement
                | Self::Environment
                | Self::Preflight
        )
    }

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContractComplete => "contract_complete",
            Self::EngineRegistered => "engine_registered",
            Self::EngineEnabled => "engine_enabled",
            Self::StageProven => "stage_proven",
            Self::Depth => "depth",
            Self::EngineAdmitted => "engine_admitted",
            Self::ModelAdmitted => "model_admitted",
            Self::ProviderConfigured => "provider_configured",
            Self::DestinationReady => "destination_ready",
            Self::TargetAdmitted => "target_admitted",
            Self::TargetClean => "target_clean",
            Self::ApprovalPresent => "approval_present",
            Self::EngineIdentity => "engine_identity",
            Self::ProviderResponseShape => "provider_response_shape",
            Self::Confinement => "confinement",
            Self::Environment => "environment",
            Self::Preflight => "preflight",
        }
    }
}

/// The result of evaluating a gate. A gate that was not evaluated has no finding, and that blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Passed,
    /// It does not apply to this run, for this reason.
    NotApplicable(String),
    /// It does not hold.
    Missing(BlockerRecord),
}
