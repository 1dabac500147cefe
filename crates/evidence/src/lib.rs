//! The bundle that a run leaves: write, read, redact, scan, attest, verify. Files only: no network, no database, no
//! process.

pub mod approver_key;
pub mod attest;
pub mod bundle;
pub mod chain;
pub mod envelope;
pub mod events;
pub mod keys;
pub mod layout;
pub mod markdown;
pub mod outcome;
pub mod patch;
pub mod redact;
pub mod report;
pub mod sealed;
pub mod secrets;
pub mod signed;
pub mod trace;
pub mod transcript;
pub mod trust_chain;
pub mod verify;

pub use herma_files as file_reading;

mod append;
mod bad_record;
mod lines;

pub use approver_key::{ApproverKey, Unlocked};
pub use attest::{AttestError, Attestation, attest};
pub use bad_record::BadRecord;
pub use bundle::{ArtifactWriter, Bundle, LogWriter, Reopened, WriteError};
pub use events::{EventLog, EventSink, NextUpdate, RunFeed, RunUpdate, RunUpdates};
pub use keys::{InstallationKey, KeyError, PublicKey};
pub use markdown::render_markdown;
pub use redact::Redactor;
pub use report::{freshness, seal, write_report};
pub use secrets::SecretScanner;
pub use signed::{BadSignature, Signer};
pub use trace::Trace;
pub use transcript::TranscriptLog;
pub use trust_chain::{BrokenTrust, TrustChain};
pub use verify::{
    CheckList, Context, ExpectedRun, PathJudge, TreeWitness, Trust, TrustedApprover, verify, verify_signed,
};
