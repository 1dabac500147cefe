//! Arguments of `herma policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use herma_core::Stage;
use herma_core::engine::EngineName;
use herma_core::tool::ToolAction;

use super::ladder::parse_stage;

/// The subcommands of `herma policy`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Check policies against the schema; errors have line and column
    Check(PolicyCheck),
    /// Test policies against a file of cases
    Test(PolicyTest),
    /// Explain the decision on a tool call
    Explain(PolicyExplain),
}

/// Arguments of `herma policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheck {
    /// Policy files (default: those of the installation)
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Arguments of `herma policy test`.
#[derive(Debug, Args)]
pub struct PolicyTest {
    /// The file of cases
    pub file: PathBuf,
    /// A policy file instead of those of the installation; repeatable
    #[arg(long = "policy", value_name = "FILE")]
    pub policies: Vec<PathBuf>,
}

/// Arguments of `herma policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplain {
    /// The tool's action: shell, write, read, fetch, mcp, spawn or other
    #[arg(long)]
    pub action: ToolAction,
    /// The subject of the call: command, path or address
    #[arg(long, value_name = "TEXT")]
    pub resource: String,
    /// The agent's name of the tool (default: the action)
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// The engine of a child run, for `spawn`; the resource is then the child's contract
    #[arg(long, value_name = "ENGINE")]
    pub child: Option<EngineName>,
    /// The engine
    #[arg(long, default_value = "fake")]
    pub engine: EngineName,
    /// The stage, 1 to 6 (default: the contract's, else 3)
    #[arg(long, value_parser = parse_stage)]
    pub stage: Option<Stage>,
    /// The contract of the run: its forbidden actions and hosts apply
    #[arg(long, value_name = "FILE")]
    pub contract: Option<String>,
    /// A policy file instead of those of the installation; repeatable
    #[arg(long = "policy", value_name = "FILE")]
    pub policies: Vec<PathBuf>,
}
