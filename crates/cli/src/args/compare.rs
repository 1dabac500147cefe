//! Arguments of `herma compare`.

use std::path::PathBuf;

use clap::Args;
use herma_core::engine::EngineName;

/// Arguments of `herma compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 every lane ran and none falls behind another on a criterion that decides; \
                        1 a lane falls behind or could not run; 3 no lane could run."
)]
pub struct Compare {
    /// A contract file, or `fixture:NAME` for a built-in contract; repeatable
    #[arg(long, value_name = "FILE", required = true)]
    pub contract: Vec<String>,
    /// The engines, one lane each
    #[arg(long, value_name = "NAME,NAME", required = true, value_delimiter = ',')]
    pub engines: Vec<EngineName>,
    /// Runs of each contract on each lane
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Also write the comparison here, as JSON and Markdown
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
