//! `herma completions`: what a shell needs to complete herma's commands.

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{self, Cli};
use crate::commands::Ended;
use crate::output::CompletionsOutput;
use crate::screen::Screen;

pub(crate) fn completions(args: &args::Completions, screen: &Screen) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "herma", &mut script);
    if screen.is_json() {
        let script = String::from_utf8_lossy(&script).into_owned();
        let shell = args.shell.to_string();
        screen.value(&CompletionsOutput { schema: "herma.completions/v1", shell, script })?;
    } else {
        screen.bytes(&script);
    }
    Ok(ExitCode::SUCCESS)
}
