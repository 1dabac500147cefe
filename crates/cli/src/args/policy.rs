//! Arguments of `herma policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use herma_core::Stage;
use herma_core::engine::EngineName;
use herma_core::tool::ToolAction;

use super::ladder::parse_stage;

/// What `herma policy` does.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Check policies: each rule by the schema, with the line and column of what is wrong
    Check(PolicyCheck),
    /// Decide the cases of a file, and compare each decision with what the case expects
    Test(PolicyTest),
    /// Say how a tool call would be decided, and by which rules
    Explain(PolicyExplain),
}

/// Arguments of `herma policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheck {
    /// Files of policies; those of the installation if none is named
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Arguments of `herma policy test`.
#[derive(Debug, Args)]
pub struct PolicyTest {
    /// The file of cases
    pub file: PathBuf,
    /// A file of policies in place of those of the installation; can be given several times
    #[arg(long = "policy", value_name = "FILE")]
    pub policies: Vec<PathBuf>,
}

/// Arguments of `herma policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplain {
    /// What the tool does: shell, write, read, fetch, mcp, spawn or other
    #[arg(long)]
    pub action: ToolAction,
    /// What the call is about: the command, the path, the address
    #[arg(long, value_name = "TEXT")]
    pub resource: String,
    /// The agent's name of the tool; the action's if nothing is said
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// The engine of a child run, where the action is spawn: the resource is then the name of the child's contract
    #[arg(long, value_name = "ENGINE")]
    pub child: Option<EngineName>,
    /// The engine
    #[arg(long, default_value = "fake")]
    pub engine: EngineName,
    /// The stage, 1 to 6; that of the contract if one is named, else 3
    #[arg(long, value_parser = parse_stage)]
    pub stage: Option<Stage>,
    /// The contract that the run would have: what it forbids and which hosts it names counts
    #[arg(long, value_name = "FILE")]
    pub contract: Option<String>,
    /// A file of policies in place of those of the installation; can be given several times
    #[arg(long = "policy", value_name = "FILE")]
    pub policies: Vec<PathBuf>,
}
