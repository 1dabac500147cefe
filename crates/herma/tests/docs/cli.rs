//! `docs/cli.md`, made from the command line's own definition.

use clap::{Arg, Command, CommandFactory as _};
use herma_cli::args::Cli;

use crate::generated::{NOTICE, head, row};

/// The whole page.
pub(crate) fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = format!("{NOTICE}# The command line\n\n{}.\n\n", sentence(&root));
    text += "Each command takes `--json` and then prints one JSON value that [one of the schemas](schemas/README.md)\n\
             describes. Output for people goes to standard output; progress and notes go to standard error.\n\
             Each command also takes `-v`, `-vv` and `--log-format` for [log records](logging.md).\n\
             [Exit codes](exit-codes.md) are the same everywhere.\n";
    for command in root.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        section(command, &format!("herma {}", command.get_name()), 2, &mut text);
    }
    text
}

fn section(command: &Command, name: &str, depth: usize, text: &mut String) {
    *text += &format!("\n{} `{name}`\n\n{}.\n", "#".repeat(depth), sentence(command));
    let below: Vec<&Command> = command.get_subcommands().filter(|c| c.get_name() != "help").collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        *text += &format!("\n`{}`\n", usage.trim_start_matches("Usage: "));
    }
    let global = ["help", "version", "json", "verbose", "log_format"];
    let shown = |arg: &&Arg| !arg.is_hide_set() && !global.contains(&arg.get_id().as_str());
    let args: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !args.is_empty() {
        *text += &format!("\n{}", head(&["argument", "default", "meaning"]));
    }
    for arg in args {
        let default: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
        let default = if default.is_empty() { String::new() } else { format!("`{}`", default.join(" ")) };
        *text += &row(&[&format!("`{}`", written(arg)), &default, &meaning(arg)]);
    }
    for command in below {
        section(command, &format!("{name} {}", command.get_name()), depth + 1, text);
    }
}

fn sentence(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default().trim_end_matches('.').to_owned()
}

/// `--limit <LIMIT>`, `-o, --output <FILE>`, `<CONTRACT>`.
fn written(arg: &Arg) -> String {
    let value = || {
        let names: Vec<_> =
            arg.get_value_names().unwrap_or_default().iter().map(|n| format!("<{n}>")).collect();
        names.join(" ")
    };
    let short = arg.get_short().map(|c| format!("-{c}, ")).unwrap_or_default();
    match arg.get_long() {
        None if arg.is_required_set() => value(),
        None => format!("[{}]", value().trim_matches(['<', '>'])),
        Some(long) if arg.get_action().takes_values() => format!("{short}--{long} {}", value()),
        Some(long) => format!("{short}--{long}"),
    }
}

fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let shown = |value: &clap::builder::PossibleValue| match value.get_help() {
        Some(help) => format!("`{}` ({help})", value.get_name()),
        None => format!("`{}`", value.get_name()),
    };
    let values: Vec<String> = arg.get_possible_values().iter().map(shown).collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        text += &format!(". One of: {}", values.join(", "));
    }
    text
}
