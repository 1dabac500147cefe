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
    /// The engine; with --stale all of them otherwise
    #[arg(long, value_name = "NAME", required_unless_present = "stale")]
    pub engine: Option<EngineName>,
    /// One stage, 1 to 6; the stages below it have to be proven
    #[arg(long, value_parser = parse_stage)]
    pub stage: Option<Stage>,
    /// Every stage up to this one, in order; those that are proven and current are not run again
    #[arg(long, value_name = "STAGE", value_parser = parse_stage)]
    pub up_to: Option<Stage>,
    /// Every proof that another version of herma or of an agent made stale
    #[arg(long)]
    pub stale: bool,
    /// Who grants the approvals of the proving runs and speaks their outcomes, from stage 4 on.
    #[command(flatten)]
    pub unlock: UnlockArgs,
    /// Who asks for the approvals, where separation of duties wants another person for that
    #[arg(long, value_name = "NAME")]
    pub asker: Option<ApproverName>,
    /// The file that holds the asker's passphrase
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
