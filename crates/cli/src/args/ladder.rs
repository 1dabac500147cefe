//! Arguments of `herma prove` and `herma ladder`.

use std::path::PathBuf;

use clap::Args;
use herma_model::Stage;
use herma_model::approver::ApproverName;
use herma_model::engine::EngineName;

use crate::unlock::UnlockArgs;

/// Arguments of `herma prove`.
#[derive(Debug, Args)]
pub struct Prove {
    /// The engine
    #[arg(long, value_name = "NAME")]
    pub engine: EngineName,
    /// The stage, 1 to 6; the stages below it have to be proven
    #[arg(long, value_parser = parse_stage)]
    pub stage: Stage,
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
