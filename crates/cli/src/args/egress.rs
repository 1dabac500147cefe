//! Arguments of `herma egress`.

use clap::{Args, Subcommand};
use herma_core::admission::Line;
use herma_core::units::{BadQuantity, Span};

use crate::unlock::UnlockArgs;

/// Commands about what runs may reach besides their model.
#[derive(Debug, Subcommand)]
pub enum Egress {
    /// Show what runs may reach: by the contract, by the installation's list, and by grants
    Show {
        /// The contract's file, or `fixture:NAME` for a built-in one
        #[arg(long, value_name = "FILE")]
        contract: Option<String>,
    },
    /// Say what would be decided about a host, and why; nothing is connected to
    Test(EgressTest),
    /// Show what runs with `--egress learn` reached
    Learned {
        /// The run: its name, the start of it, its last eight digits, or `last`; all of them otherwise
        run: Option<String>,
    },
    /// Take what a run learned into the installation's list, so that every run may reach it
    Adopt(EgressAdopt),
    /// Sign the installation's list as it is written now, where settings.yaml asks for a signature
    Sign(UnlockArgs),
    /// Let every run reach some hosts for a while, as an approver
    Grant(EgressGrant),
    /// Take a grant back before it ends by itself
    Revoke {
        /// The grant: its name, or the start of it
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Arguments of `herma egress test`.
#[derive(Debug, Args)]
pub struct EgressTest {
    /// The host, with a port where it is not the usual one; `http://` before it asks about plain HTTP
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,
    /// The contract's file, or `fixture:NAME` for a built-in one
    #[arg(long, value_name = "FILE")]
    pub contract: Option<String>,
    /// The method of plain HTTP
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Do not resolve the name
    #[arg(long)]
    pub offline: bool,
}

/// Arguments of `herma egress adopt`.
#[derive(Debug, Args)]
pub struct EgressAdopt {
    /// The run: its name, the start of it, its last eight digits, or `last`
    pub run: String,
    /// Only these; all that it learned otherwise
    #[arg(value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// How long a grant lasts. Who writes days has to be told both: how it is written, and how long it may be.
fn lasts(text: &str) -> Result<Span, String> {
    text.parse().map_err(|bad: BadQuantity| format!("{bad}; at most 7 days, which is `168h`"))
}

/// Arguments of `herma egress grant`.
#[derive(Debug, Args)]
pub struct EgressGrant {
    /// The hosts, written as in a contract
    #[arg(value_name = "HOST", required = true)]
    pub hosts: Vec<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// For how long, like `2h`; `168h`, which is 7 days, at most
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    pub lasts: Span,
    /// Who grants it.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}
