//! Arguments of `herma prove` and `herma ladder`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use herma_core::Stage;
use herma_core::approver::ApproverName;
use herma_core::engine::EngineName;

use crate::unlock::UnlockArgs;

/// Arguments of `herma prove`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["stage", "up_to", "stale"]))]
pub struct Prove {
    /// The engine (default with --stale: all)
    #[arg(long, value_name = "NAME", required_unless_present = "stale")]
    pub engine: Option<EngineName>,
    /// One stage, 1 to 6; the stages below must be proven
    #[arg(long, value_parser = parse_stage)]
    pub stage: Option<Stage>,
    /// Every stage up to this one that is not proven, in order
    #[arg(long, value_name = "STAGE", value_parser = parse_stage)]
    pub up_to: Option<Stage>,
    /// Every proof that a new version of herma or of an agent made stale
    #[arg(long)]
    pub stale: bool,
    /// The approver who grants the approvals of the proving runs and gives their outcomes, from stage 4 on.
    #[command(flatten)]
    pub unlock: UnlockArgs,
    /// The requester of the approvals, with separation of duties
    #[arg(long, value_name = "NAME")]
    pub asker: Option<ApproverName>,
    /// A file with the requester's passphrase
    #[arg(long, value_name = "FILE", requires = "asker")]
    pub asker_passphrase_file: Option<PathBuf>,
}

/// Arguments of `herma ladder`.
#[derive(Debug, Args)]
pub struct Ladder {
    /// Only this engine
    #[arg(long, value_name = "NAME")]
    pub engine: Option<EngineName>,
}

pub(super) fn parse_stage(text: &str) -> Result<Stage, String> {
    text.parse::<u8>().map_err(|e| e.to_string()).and_then(Stage::try_from)
}
