//! The failure matrix: one row for each blocker, with the way to bring it about. The tests run every row on the real
//! binary, and `docs/failure-matrix.md` is made from it.

use herma_core::{Blocker, EventType};

/// One row: how a blocker comes about, and which event shows it. Status and exit code follow from the blocker.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The blocker.
    pub blocker: Blocker,
    /// The trigger, for people.
    pub trigger: &'static str,
    /// The event that shows it.
    pub event: EventType,
    /// How to bring it about.
    pub way: Way,
}

/// How to bring a blocker about.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// A run of the fixture `string-slugify`, or of a repository made from it.
    Run(Setup),
    /// It needs something that this version of herma does not have.
    NotYet(&'static str),
}

/// A run of the fixture `string-slugify`, changed in these ways.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The actions of `fake`: the name of one of the fixture's scripts, or a script, in which `{target}` is the path of
    /// the target repository.
    pub script: &'static str,
    /// Keys of the contract's front matter that are replaced or added.
    pub terms: &'static [(&'static str, &'static str)],
    /// The engine.
    pub engine: &'static str,
    /// The fault of the run, as in `HERMA_FAULT`.
    pub fault: Option<&'static str>,
    /// The condition of the environment.
    pub world: World,
}

/// The condition of the environment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Nothing.
    Sound,
    /// The target is a repository, and the run takes place on the host, so that `fake` can reach it.
    Repository,
    /// The target is a repository with an uncommitted change.
    DirtyRepository,
    /// The target is a repository that belongs to another user.
    ForeignRepository,
    /// bubblewrap is not installed.
    NoBubblewrap,
    /// herma's home is inside a directory that is mounted into the sandbox.
    HomeInToolchain,
    /// herma is started inside a run.
    InsideRun,
    /// A person denied the contract.
    Denied,
    /// A person granted the approval, and its time is over.
    ExpiredApproval,
    /// Another run used the approval.
    UsedApproval,
    /// The program of `stub` was changed after its admission.
    OtherProgram,
    /// `stub` was admitted with another identity than its program reports.
    OtherIdentity,
    /// The model `rehearsal/m` is admitted, and a scripted upstream answers for it.
    Model,
    /// The same, and it answers with reasoning and nothing else.
    ReasoningModel,
    /// The run lands in an admitted target, and the time for an outcome passes. The run itself is a pass; that nobody
    /// can lean on it any more is what is blocked.
    NoOutcome,
}

/// The engine fulfils the contract; something else goes wrong.
const FIX: Setup = Setup { script: "fix", terms: &[], engine: "fake", fault: None, world: World::Sound };

const fn script(script: &'static str) -> Way {
    Way::Run(Setup { script, ..FIX })
}

const fn limited(script: &'static str, terms: &'static [(&'static str, &'static str)]) -> Way {
    Way::Run(Setup { script, terms, ..FIX })
}

const fn terms(terms: &'static [(&'static str, &'static str)]) -> Way {
    Way::Run(Setup { terms, ..FIX })
}

const fn fault(fault: &'static str) -> Way {
    Way::Run(Setup { fault: Some(fault), ..FIX })
}

const fn engine(engine: &'static str) -> Way {
    Way::Run(Setup { engine, ..FIX })
}

const fn world(world: World) -> Way {
    Way::Run(Setup { world, ..FIX })
}

const fn asked(world: World) -> Way {
    Way::Run(Setup { terms: &[("stage", "4")], world, ..FIX })
}

const fn stub(stage: &'static [(&'static str, &'static str)], world: World) -> Way {
    Way::Run(Setup { terms: stage, engine: "stub", world, ..FIX })
}

const fn on_target(script: &'static str) -> Way {
    Way::Run(Setup { script, world: World::Repository, ..FIX })
}

const MODEL: &[(&str, &str)] = &[("model", "{ provider: anthropic, model: claude-sonnet-4-5 }")];
const REHEARSED: &[(&str, &str)] = &[("model", "{ provider: rehearsal, model: m }")];
const BOUNDED: &[(&str, &str)] =
    &[("model", "{ provider: rehearsal, model: m }"), ("limits", "{ tokens: 8k }")];
const ADMITTED: &[(&str, &str)] = &[("target", "{ repo: my-repo }"), ("stage", "5")];

/// The engine fixes the bug, and asks for another model than the admitted one.
const ASKS_FOR_ANOTHER: &str = r#"
steps:
  - write:
      path: slugify.sh
      text: |
        slugify() {
            printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
        }
  - ask: { prompt: what do you think, model: another }
"#;

/// The engine fixes the bug, and asks its model more than it may.
const ASKS_TOO_MUCH: &str = r#"
steps:
  - write:
      path: slugify.sh
      text: |
        slugify() {
            printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
        }
  - repeat: { times: 30, steps: [{ ask: { prompt: what do you think } }] }
"#;

/// Every row of the failure matrix, in the order of [`Blocker::ALL`].
#[rustfmt::skip]
pub const FAILURE_MATRIX: &[Row] = {
    use Blocker as B;
    use EventType as E;
    &[
        Row { blocker: B::NoDiff, trigger: "the engine changes nothing", event: E::DiffChecked, way: script("no-diff") },
        Row { blocker: B::DisallowedFile, trigger: "the engine changes a file outside the allowed paths", event: E::DiffChecked, way: script("disallowed-file") },
        Row { blocker: B::EnvironmentChanged, trigger: "the engine changes an input of the environment", event: E::PatchApplied, way: terms(&[("environment", "{ inputs: [slugify.sh] }")]) },
        Row { blocker: B::UnsupportedPath, trigger: "the engine leaves a symbolic link of a name that git refuses", event: E::DiffChecked, way: script("refused-by-git") },
        Row { blocker: B::VerificationFailed, trigger: "the engine's patch does not pass the test", event: E::VerificationCompleted, way: script("breaks-test") },
        Row { blocker: B::VerificationChangedFiles, trigger: "a verification command rewrites a tracked file", event: E::VerificationCompleted, way: terms(&[("verify", "[\"sh tests/slugify_test.sh && echo '# formatted' >> slugify.sh\"]")]) },
        Row { blocker: B::MissingRequiredEvent, trigger: "an event is lost", event: E::RunCompleted, way: fault("drop-event:diff.checked") },
        Row { blocker: B::DirtyEndingTree, trigger: "a file of the target is changed while the run is under way", event: E::RunCompleted, way: on_target("steps: [{ shell: \"echo changed >> '{target}/README.md'\" }]") },
        Row { blocker: B::ArtifactWriteFailure, trigger: "a file of the bundle cannot be written", event: E::RunCompleted, way: fault("fail-write:patch.diff") },
        Row { blocker: B::EvidenceRefused, trigger: "a file of the bundle is recorded as written before the run", event: E::RunCompleted, way: fault("backdate:report.md") },
        Row { blocker: B::AgentProtocolError, trigger: "the engine ends without a result", event: E::RunCompleted, way: script("protocol-error") },
        Row { blocker: B::ForbiddenAction, trigger: "the engine reports `git push`", event: E::ToolEvaluated, way: script("forbidden-action") },
        Row { blocker: B::SecretInOutput, trigger: "the engine writes a key into an allowed file", event: E::DiffChecked, way: script("secret") },
        Row { blocker: B::SourceMutated, trigger: "a branch appears in the target while the run is under way", event: E::RunCompleted, way: on_target("steps: [{ shell: \"git -C '{target}' branch new\" }]") },
        Row { blocker: B::LifecycleTimeout, trigger: "the engine fixes the bug and then hangs", event: E::VerificationCompleted, way: limited("fixes-then-hangs", &[("limits", "{ idle: 1s }")]) },
        Row { blocker: B::EgressDenied, trigger: "the engine needs a host that is not allowed", event: E::EgressDecided, way: script("needs-a-host") },
        Row { blocker: B::EngineFailed, trigger: "the engine exits with 3", event: E::RunCompleted, way: script("engine-fails") },
        Row { blocker: B::MissingTestCommand, trigger: "the verification command is not installed", event: E::VerificationCompleted, way: terms(&[("verify", "[no-such-command]")]) },
        Row { blocker: B::ToolMissing, trigger: "the environment asks for a version of a tool that nobody has", event: E::EngineGateBlocked, way: terms(&[("environment", "{ tools: [python@2.0] }")]) },
        Row { blocker: B::EnvironmentFailed, trigger: "a command that sets the environment up fails", event: E::EngineGateBlocked, way: terms(&[("environment", "{ setup: [\"false\"] }")]) },
        Row { blocker: B::VerificationUnrunnable, trigger: "the verification command is not in the environment", event: E::EngineGateBlocked, way: terms(&[("environment", "{}"), ("verify", "[no-such-command]")]) },
        Row { blocker: B::ReviewerRejected, trigger: "the engine's own reviewer rejects the work", event: E::RunCompleted, way: script("rejected") },
        Row { blocker: B::ApprovalDenied, trigger: "a person denies the contract", event: E::ApprovalDenied, way: asked(World::Denied) },
        Row { blocker: B::ApprovalExpired, trigger: "the approval expires before the run starts", event: E::EngineGateBlocked, way: asked(World::ExpiredApproval) },
        Row { blocker: B::ApprovalAlreadyConsumed, trigger: "another run used the approval", event: E::EngineGateBlocked, way: asked(World::UsedApproval) },
        Row { blocker: B::ApprovalVoid, trigger: "stage 4 without an approval", event: E::EngineGateBlocked, way: terms(&[("stage", "4")]) },
        Row { blocker: B::TimeoutStartup, trigger: "the engine says nothing at the start", event: E::RunCompleted, way: limited("slow-start", &[("limits", "{ startup: 300ms }")]) },
        Row { blocker: B::TimeoutIdle, trigger: "the engine falls silent", event: E::RunCompleted, way: limited("goes-idle", &[("limits", "{ idle: 300ms }")]) },
        Row { blocker: B::TimeoutTotal, trigger: "the engine never ends", event: E::RunCompleted, way: limited("never-ends", &[("limits", "{ total: 1s }")]) },
        Row { blocker: B::DirtyStartingTree, trigger: "the target has an uncommitted change", event: E::EngineGateBlocked, way: world(World::DirtyRepository) },
        Row { blocker: B::ProviderUnavailable, trigger: "the contract names a model and no provider is configured", event: E::EngineGateBlocked, way: terms(MODEL) },
        Row { blocker: B::ProviderReasoningOnly, trigger: "the model answers with reasoning only", event: E::EngineGateBlocked, way: Way::Run(Setup { terms: REHEARSED, world: World::ReasoningModel, ..FIX }) },
        Row { blocker: B::ModelNotAdmitted, trigger: "the contract names a model that nobody admitted", event: E::EngineGateBlocked, way: terms(MODEL) },
        Row { blocker: B::ModelMismatch, trigger: "the engine asks for another model", event: E::ModelCalled, way: Way::Run(Setup { script: ASKS_FOR_ANOTHER, terms: REHEARSED, world: World::Model, ..FIX }) },
        Row { blocker: B::EngineNotAdmitted, trigger: "an engine is named that nobody admitted", event: E::EngineGateBlocked, way: engine("codex") },
        Row { blocker: B::EngineDigestMismatch, trigger: "the engine's program is not the admitted one", event: E::EngineGateBlocked, way: stub(&[], World::OtherProgram) },
        Row { blocker: B::EngineIdentityMismatch, trigger: "the engine's program says it is something else", event: E::EngineGateBlocked, way: stub(&[("stage", "1")], World::OtherIdentity) },
        Row { blocker: B::EngineDisabled, trigger: "an engine is named that is not enabled", event: E::EngineGateBlocked, way: engine("codex") },
        Row { blocker: B::StageUnproven, trigger: "an engine is named that has proven nothing", event: E::EngineGateBlocked, way: engine("codex") },
        Row { blocker: B::TargetNotAdmitted, trigger: "the target is a name that nobody admitted", event: E::EngineGateBlocked, way: terms(&[("target", "{ repo: payments }")]) },
        Row { blocker: B::UnownedRepository, trigger: "the target belongs to another user", event: E::EngineGateBlocked, way: world(World::ForeignRepository) },
        Row { blocker: B::CriticalRepository, trigger: "the contract's risk is critical", event: E::EngineGateBlocked, way: terms(&[("risk", "critical")]) },
        Row { blocker: B::MissingOutcome, trigger: "no person accepts or rejects a stage 5 run in time", event: E::RunCompleted, way: Way::Run(Setup { terms: ADMITTED, world: World::NoOutcome, ..FIX }) },
        Row { blocker: B::RecursionDepth, trigger: "herma is started inside a run", event: E::EngineGateBlocked, way: world(World::InsideRun) },
        Row { blocker: B::DestinationUnready, trigger: "bubblewrap is not installed", event: E::EngineGateBlocked, way: world(World::NoBubblewrap) },
        Row { blocker: B::ConfinementFailed, trigger: "herma's home can be read from inside the sandbox", event: E::EngineGateBlocked, way: world(World::HomeInToolchain) },
        Row { blocker: B::BudgetExhausted, trigger: "the run would cost more than its limits", event: E::ModelCalled, way: Way::Run(Setup { script: ASKS_TOO_MUCH, terms: BOUNDED, world: World::Model, ..FIX }) },
        Row { blocker: B::Interrupted, trigger: "herma is killed while the engine works", event: E::RunCompleted, way: fault("kill:engine") },
    ]
};
