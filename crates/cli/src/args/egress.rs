//! Arguments of `herma egress`.

use clap::{Args, Subcommand};
use herma_core::admission::Line;
use herma_core::units::{BadQuantity, Span};

use crate::unlock::UnlockArgs;

/// Commands about what runs may reach besides their model.
#[derive(Debug, Subcommand)]
pub enum Egress {
    /// Show the hosts that runs may reach: by contract, allowlist and grants
    Show {
        /// The contract file, or `fixture:NAME` for a built-in contract
        #[arg(long, value_name = "FILE")]
        contract: Option<String>,
    },
    /// Show the decision for a host, and its reason, without connecting
    Test(EgressTest),
    /// Show the hosts that runs with `--egress learn` reached
    Learned {
        /// The run: its id, a prefix of it, its last eight digits, or `last` (default: all)
        run: Option<String>,
    },
    /// Add the hosts that a run learned to the installation's allowlist
    Adopt(EgressAdopt),
    /// Sign the installation's allowlist, if settings.yaml requires a signature
    Sign(UnlockArgs),
    /// Permit hosts for all runs for a limited time, as an approver
    Grant(EgressGrant),
    /// Revoke a grant
    Revoke {
        /// The grant: its id, or a prefix of it
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Arguments of `herma egress test`.
#[derive(Debug, Args)]
pub struct EgressTest {
    /// The host, with a port if it is not the default; with `http://` for plain HTTP
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,
    /// The contract file, or `fixture:NAME` for a built-in contract
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
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    pub run: String,
    /// Only these hosts (default: all)
    #[arg(value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// The duration of a grant. The error names both the notation and the maximum.
fn lasts(text: &str) -> Result<Span, String> {
    text.parse().map_err(|bad: BadQuantity| format!("{bad}; at most 7 days, which is `168h`"))
}

/// Arguments of `herma egress grant`.
#[derive(Debug, Args)]
pub struct EgressGrant {
    /// The hosts, as in a contract
    #[arg(value_name = "HOST", required = true)]
    pub hosts: Vec<String>,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// Duration, such as `2h`; at most `168h` (7 days)
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    pub lasts: Span,
    /// The approver who grants it.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}
