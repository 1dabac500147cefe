//! `herma logs`: what the engine and the verification commands printed.

use std::collections::BTreeMap;
use std::process::ExitCode;

use herma_evidence::file_reading::read_regular;
use herma_evidence::layout;

use crate::args::{self, LogArg};
use crate::commands::show::warn_if_touched;
use crate::commands::{Ended, find_run, open};
use crate::environment::Environment;
use crate::output::LogsOutput;
use crate::screen::{Screen, Tone, safe};

const LOGS: [(LogArg, &str); 4] = [
    (LogArg::Stdout, layout::ENGINE_STDOUT),
    (LogArg::Stderr, layout::ENGINE_STDERR),
    (LogArg::Test, layout::TEST_LOG),
    (LogArg::Events, layout::EVENTS),
];

pub(crate) fn logs(args: &args::Logs, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let (run, dirs) = find_run(&installation, &args.run)?;
    // The events are many and for programs: they are shown when asked for.
    let wanted = |log| args.only.map_or(log != LogArg::Events, |only| only == log);
    let names: Vec<&str> = LOGS.into_iter().filter(|(log, _)| wanted(*log)).map(|(_, name)| name).collect();
    // Nothing is signed while the run is under way.
    let touched = match run.status {
        Some(_) => warn_if_touched(&installation, &dirs, &run, &names, screen),
        None => Vec::new(),
    };
    let mut logs = BTreeMap::new();
    for name in names {
        if let Ok(bytes) = read_regular(&dirs.bundle().join(name), u64::MAX) {
            logs.insert(name.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    if screen.is_json() {
        screen.value(&LogsOutput { schema: "herma.logs/v1", run_id: run.run_id, logs, touched })?;
        return Ok(ExitCode::SUCCESS);
    }
    if logs.is_empty() && touched.is_empty() {
        screen.note("the run left no such log; `herma show` says why under `not applicable`");
    }
    for (name, text) in logs {
        if args.only.is_none() {
            screen.line(screen.paint(Tone::Bold, format_args!("== {name}")));
        }
        screen.line(safe(text.trim_end()));
    }
    Ok(ExitCode::SUCCESS)
}
