//! The named reasons why a run is not a pass. One table: the tests, `docs/blockers/` and the CLI all read it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::Status;

/// One blocker of a run, with what happened and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockerRecord {
    /// Which of the named reasons.
    pub blocker: Blocker,
    /// The event, and the thing that it happened to.
    pub detail: String,
    /// The next step for a person.
    pub next_step: String,
}

macro_rules! blockers {
    ($($name:ident $text:literal $status:ident $summary:literal $next:literal;)*) => {
        /// A named reason why a run is not a pass.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Blocker {
            $(#[doc = $summary] $name,)*
        }

        impl Blocker {
            /// Every blocker, in the order of the failure matrix.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name as it is written in files and on the screen.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The status that this blocker leads to.
            #[must_use]
            pub fn status(self) -> Status {
                match self { $(Self::$name => Status::$status,)* }
            }

            /// One sentence that says what happened.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $(Self::$name => $summary,)* }
            }

            /// One sentence that says what a person can do next.
            #[must_use]
            pub fn next_step(self) -> &'static str {
                match self { $(Self::$name => $next,)* }
            }
        }
    };
}

blockers! {
    NoDiff "no_diff" Fail
        "The contract requires a change and the engine made none."
        "Read engine/stdout.log in the bundle: did the engine understand the brief? Then run the contract again.";
    DisallowedFile "disallowed_file" Fail
        "The engine changed something outside the allowed paths, or on a forbidden path."
        "Look at the changed files in the report. Widen allowed_paths only if the change belongs to the task.";
    EnvironmentChanged "environment_changed" Fail
        "The engine changed a file that decides what the environment contains, such as a lock file, or replaced a part of it."
        "Keep dependencies out of the task: change manifests and lock files in a commit of your own, and run the contract on that.";
    UnsupportedPath "unsupported_path" Fail
        "The engine left a path that herma or git cannot handle, such as one that is too long."
        "Look at path_violations in the report: the engine has to remove or rename what it lists.";
    VerificationFailed "verification_failed" Fail
        "A verification command did not exit with 0 on the fresh checkout with the patch."
        "Read test.log in the bundle.";
    VerificationChangedFiles "verification_changed_files" Fail
        "A verification command changed tracked files, so the commands did not test the recorded result."
        "Make the command leave tracked files alone: run formatters and generators in check mode, snapshot tests without updates and \
         package managers with a frozen lock file. Build output in files that git does not track is no change.";
    MissingRequiredEvent "missing_required_event" Fail
        "A required event is missing in the log, or out of order."
        "Treat the run as unproven and run the contract again; if it repeats, report it with the bundle.";
    DirtyEndingTree "dirty_ending_tree" Fail
        "The target was clean before the run and is not clean after it."
        "Look at `git status` in the target: something changed it while the run was under way.";
    ArtifactWriteFailure "artifact_write_failure" Fail
        "A file of the evidence bundle could not be written."
        "Free space on the disk that holds herma's home, or make it writable, and run the contract again.";
    EvidenceRefused "evidence_refused" Fail
        "The run would have passed, but herma's verification of its own evidence bundle failed."
        "Run the contract again; if it repeats, report it with the bundle: no run of herma should leave such evidence.";
    AgentProtocolError "agent_protocol_error" Fail
        "The engine ended without the result that its protocol requires, or sent one that cannot be read."
        "Read engine/stdout.log in the bundle.";
    ForbiddenAction "forbidden_action" Fail
        "The engine attempted an action that is forbidden."
        "Look at forbidden_actions_attempted in the report; no built-in action can be permitted.";
    SecretInOutput "secret_in_output" Fail
        "The patch contains a secret and was withheld."
        "Look at the changed files in the report, remove the secret from the task's inputs, and rotate it if it was real.";
    SourceMutated "source_mutated" Fail
        "HEAD, refs, index or work tree of the target differ from what they were before the run."
        "The blocker says what differs. Nothing of the run landed in the target: something else changed it meanwhile.";
    LifecycleTimeout "lifecycle_timeout" Fail
        "A limit stopped the engine. The patch that it left passes verification."
        "Raise the limit, or find out why the engine does not end. A run that a limit stopped before the engine gave its result is never a pass; an engine that lingers after its result is ended by herma, and that is no timeout.";
    EgressDenied "egress_denied" Fail
        "The engine needed a host that was denied."
        "If the host is public, add it to the contract's egress list and have it approved. One with `private_address` or `own_address` is reached by no list and no grant: have the contract do without it.";
    EngineFailed "engine_failed" Fail
        "The engine exited with an error, or reported a failure."
        "Read engine/stderr.log in the bundle.";
    MissingTestCommand "missing_test_command" Blocked
        "A verification command could not be found where verification runs."
        "Install it, name it in `toolchains`, or correct the command in `verify`.";
    ToolMissing "tool_missing" Blocked
        "A tool of the contract's environment is not on this machine, or has another version."
        "Install the version that the contract asks for, or correct `tools` in its `environment`.";
    EnvironmentFailed "environment_failed" Blocked
        "The contract's environment could not be built."
        "Read environment.json in the bundle for the command and its last lines. `herma env build CONTRACT` builds it without a run.";
    VerificationUnrunnable "verification_unrunnable" Blocked
        "A verification command cannot run on the untouched base, or the base does not do what `expect_before` says."
        "Read the reason in environment.json in the bundle; add the missing tool or package to the contract's `environment`, or \
         correct `verify`.";
    ReviewerRejected "reviewer_rejected" Blocked
        "The engine's own reviewer rejected the work."
        "Read engine/stdout.log in the bundle.";
    ApprovalDenied "approval_denied" Blocked
        "A person denied this contract."
        "`herma approvals show` says who denied it, and why. Change the contract, then ask again with \
         `herma approvals request CONTRACT --reason TEXT`.";
    ApprovalExpired "approval_expired" Blocked
        "The approval had expired when the run started."
        "Ask for a new one with `herma approvals request CONTRACT --reason TEXT`.";
    ApprovalAlreadyConsumed "approval_already_consumed" Blocked
        "The approval was already used by another run."
        "Each is good for one run. Ask for a new one with `herma approvals request CONTRACT --reason TEXT`.";
    ApprovalVoid "approval_void" Blocked
        "There is no approval for exactly this contract, engine, target and stage."
        "Ask with `herma approvals request CONTRACT --reason TEXT`; an approver reads it and says yes with \
         `herma approvals grant ID`.";
    TimeoutStartup "timeout_startup" Blocked
        "The engine printed nothing within the startup limit."
        "Raise limits.startup, or look at engine/stderr.log for what it waited for.";
    TimeoutIdle "timeout_idle" Blocked
        "The engine printed nothing for longer than the idle limit."
        "Raise limits.idle, or look at engine/stdout.log for what it waited for.";
    TimeoutTotal "timeout_total" Blocked
        "The run took longer than the total limit."
        "Raise limits.total, or make the task smaller.";
    DirtyStartingTree "dirty_starting_tree" Blocked
        "Tracked files of the target have uncommitted changes, which a run from the base commit would leave out."
        "Commit or stash the changes. If your own `git status` lists none: herma reads no global configuration of git, so settings \
         such as core.autocrlf and filters (`git lfs install --local`) belong into the repository's own.";
    ProviderUnavailable "provider_unavailable" Blocked
        "The model's provider is not configured or does not answer."
        "Check the provider in router.toml: `herma router check` reads it, `herma router probe PROVIDER/MODEL` asks the model.";
    ProviderReasoningOnly "provider_reasoning_only" Blocked
        "The model answered with reasoning and no content."
        "Choose a model that answers with content.";
    ModelNotAdmitted "model_not_admitted" Blocked
        "No person has admitted this exact provider and model."
        "Write its admission with `herma admit model PROVIDER/MODEL` and have it signed with `herma admit sign`, or \
         remove `model` from the contract for an engine that needs none.";
    ModelMismatch "model_mismatch" Blocked
        "The engine asked for another model than the admitted one."
        "Look at model-calls.jsonl in the bundle.";
    EngineNotAdmitted "engine_not_admitted" Blocked
        "The engine is not registered, lacks what the contract needs, or no person has admitted it."
        "Use one that `herma engines list` shows as admitted, or write its admission with `herma admit engine NAME` \
         and have it signed with `herma admit sign engine NAME`.";
    EngineDigestMismatch "engine_digest_mismatch" Blocked
        "The engine's program differs from the admitted one."
        "Restore the admitted program; or take its admission back with `herma admissions revoke engine NAME --reason \
         TEXT`, admit it as it is now with `herma admit engine NAME`, and prove its stages again with `herma prove`.";
    EngineIdentityMismatch "engine_identity_mismatch" Blocked
        "The engine's program reports another identity than the admitted one."
        "`herma admissions show engine NAME` says what was admitted. Restore that program; or take that admission \
         back with `herma admissions revoke engine NAME --reason TEXT` and admit the other one.";
    EngineDisabled "engine_disabled" Blocked
        "The engine is registered and not enabled."
        "Enable it with `herma engines enable NAME`, or use `fake`.";
    StageUnproven "stage_unproven" Blocked
        "The engine has not proven the stage that the contract asks for."
        "`herma ladder` shows what is missing. Prove it with `herma prove --engine NAME --stage STAGE`, or \
         lower the contract's stage.";
    TargetNotAdmitted "target_not_admitted" Blocked
        "The target does not exist, or no person has admitted it."
        "Name a fixture, or a path relative to the contract that is a git repository; a stage 5 contract names a \
         target that `herma admissions list` shows as admitted, and `herma admit target NAME` is the way to that.";
    UnownedRepository "unowned_repository" Blocked
        "The target belongs to another user."
        "Run herma as the owner of the repository, or on a clone of your own.";
    CriticalRepository "critical_repository" Blocked
        "The contract's risk is critical, or the target is of another risk class than low."
        "Narrow the task until less is at stake, or choose a target of low risk: no person can let in a critical one.";
    MissingOutcome "missing_outcome" Blocked
        "No person accepted or rejected the result in time."
        "It can only be rejected: `herma reject RUN --reason TEXT` takes it back. Then run the contract again, \
         and accept it in time with `herma accept RUN`.";
    RecursionDepth "recursion_depth" Blocked
        "herma was started inside a run without a connection to the harness outside, or the run would be nested more than 5 levels deep."
        "Start the run from outside, or do its work in the run that asks for it.";
    DestinationUnready "destination_unready" Blocked
        "The destination is not ready, or cannot be used for this engine."
        "Run `herma doctor`: it says what is missing and how to install it.";
    ConfinementFailed "confinement_failed" Blocked
        "A probe inside the destination reached something that it must not reach."
        "Run `herma probe` to see which probe got through; the bundle of a run has them in confinement.json.";
    BudgetExhausted "budget_exhausted" Blocked
        "The run would have cost more than its limits allow."
        "Raise limits.tokens or limits.usd: each call reserves the most that it can use, and an agent makes several.";
    Interrupted "interrupted" Blocked
        "The run was cancelled; or herma was killed and the next command closed the run; or the destination failed during the run."
        "Run the contract again.";
}

impl Blocker {
    /// The record of this blocker with what happened in this run.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> BlockerRecord {
        BlockerRecord { blocker: self, detail: detail.into(), next_step: self.next_step().to_owned() }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
