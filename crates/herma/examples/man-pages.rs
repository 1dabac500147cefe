//! Writes the man pages of herma into a directory. It is no part of the product: `scripts/dist` runs it.

use clap::CommandFactory as _;
use herma_cli::args::Cli;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os().nth(1).ok_or("the argument is the directory to write to")?;
    clap_mangen::generate_to(Cli::command(), dir)?;
    Ok(())
}
