//! The status of a run on a terminal: phase, elapsed time, model calls, tokens and cost so far, and the last tool call, in the
//! columns that there are.

use std::io;
use std::time::{Duration, Instant};

use herma_api::UsageSoFar;
use herma_core::usage::Usage;

use crate::cells::{cost, cut, duration, tokens};

/// The pause between two looks at the calls.
const USAGE_INTERVAL: Duration = Duration::from_millis(500);
/// The columns of the spinner and the blank after it.
const INDENT: usize = 2;
const MIN_COLUMNS: usize = 20;

/// The facts of the status.
pub(crate) struct LiveStatus {
    started: Instant,
    pub(crate) phase: &'static str,
    /// A sentence about work that takes a while, or the last tool call.
    pub(crate) last: String,
    pub(crate) calls: Option<UsageSoFar>,
    usage: Usage,
    looked: Option<Instant>,
}

impl LiveStatus {
    pub(crate) fn new() -> Self {
        let (last, calls) = (String::new(), None);
        Self { started: Instant::now(), phase: "", last, calls, usage: Usage::NONE, looked: None }
    }

    /// The lines of the status for the terminal on standard error.
    pub(crate) fn text(&mut self) -> String {
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col));
        self.look();
        let elapsed = duration(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        lines(&elapsed, self.phase, &self.usage, &self.last, columns).join("\n")
    }

    fn look(&mut self) {
        let is_due = self.looked.is_none_or(|last| last.elapsed() >= USAGE_INTERVAL);
        if let Some(calls) = self.calls.as_mut().filter(|_| is_due) {
            self.usage = calls.read();
            self.looked = Some(Instant::now());
        }
    }

    /// The usage now, in words; none without a call.
    pub(crate) fn usage(&mut self) -> Option<String> {
        self.usage = self.calls.as_mut().map_or(Usage::NONE, UsageSoFar::read);
        (self.usage.requests > 0).then(|| parts(&self.usage).join(", "))
    }
}

fn parts(usage: &Usage) -> Vec<String> {
    let all = usage.input_tokens.saturating_add(usage.output_tokens);
    let plural = if usage.requests == 1 { "call" } else { "calls" };
    let cost = match &*cost(usage) {
        "unknown" => "cost unknown".to_owned(),
        cost => cost.to_owned(),
    };
    vec![format!("{} model {plural}", usage.requests), format!("{} tokens", tokens(all)), cost]
}

/// The parts, as many on a line as fit, and the last call on a line of its own.
fn lines(elapsed: &str, phase: &str, usage: &Usage, last: &str, columns: usize) -> Vec<String> {
    // A full last column would wrap.
    let room = columns.saturating_sub(INDENT + 1).max(MIN_COLUMNS);
    let mut all = vec![format!("{elapsed:>6}  {phase}")];
    if usage.requests > 0 {
        all.extend(parts(usage));
    }
    let mut lines: Vec<String> = Vec::new();
    for part in all {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + part.chars().count() <= room => {
                line.push_str("  ");
                line.push_str(&part);
            }
            _ => lines.push(cut(&part, room)),
        }
    }
    if !last.is_empty() {
        lines.push(cut(last, room));
    }
    let indented = |(at, line): (usize, String)| if at == 0 { line } else { format!("{:INDENT$}{line}", "") };
    lines.into_iter().enumerate().map(indented).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_fits_wide_and_narrow_terminals() {
        let usage = Usage {
            requests: 12,
            input_tokens: 45_678,
            output_tokens: 900,
            charged_tokens: 46_578,
            ..Usage::NONE
        };
        let last = format!("Bash  {}", "npm test ".repeat(30));
        for (columns, most) in [(80, 2), (40, 4), (10, 6)] {
            let lines = lines("4m05s", "the engine works", &usage, &last, columns);
            assert!(lines.len() <= most, "{lines:#?}");
            let widest = columns.max(MIN_COLUMNS + INDENT);
            assert!(lines.iter().all(|line| line.chars().count() <= widest), "{lines:#?}");
            let all = lines.join(" ");
            for part in
                ["4m05s  the engine", "12 model calls", "46.5k tokens", "cost unknown", "Bash  npm test"]
            {
                assert!(all.contains(part) || columns == 10, "{part}: {lines:#?}");
            }
        }
    }
}
