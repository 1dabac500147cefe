//! Arguments of `herma engines`.

use clap::Subcommand;
use herma_model::engine::EngineName;

/// Commands about engines.
#[derive(Debug, Subcommand)]
pub enum Engines {
    /// List every engine: whether it is on, admitted, and what it has proven
    List,
    /// Switch an engine on; it still needs its admission and its proofs
    Enable {
        /// The engine
        name: EngineName,
    },
    /// Switch an engine off: no run of it starts any more
    Disable {
        /// The engine
        name: EngineName,
    },
}
