//! A run while it is under way: a status on a terminal, plain lines otherwise.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use herma_api::UsageSoFar;
use herma_core::{EventType, RunId, Step};
use herma_harness::{Installation, Progress};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::cells::cut;
use crate::live_status::LiveStatus;
use crate::screen::{Screen, safe};

/// The longest tool call of a plain line.
const MAX_CALL_CHARS: usize = 100;

/// The name of a step in progress lines.
fn phase(step: Step) -> &'static str {
    match step {
        Step::Start => "starting",
        Step::Gates => "checking the gates",
        Step::Probe => "probing the confinement",
        Step::Workspace => "making the workspace",
        Step::Engine => "the engine works",
        Step::Collect => "collecting the result",
        Step::Check => "judging paths and actions",
        Step::Verify => "verifying on a fresh checkout",
        Step::Witness => "comparing the target",
        Step::Land => "landing the result",
        Step::Report => "writing the report",
        Step::Attest => "signing",
        Step::Close => "closing",
    }
}

/// A status that is updated in place, for a person.
pub(crate) struct Live<'a> {
    bar: ProgressBar,
    status: Arc<Mutex<LiveStatus>>,
    installation: Option<&'a Installation>,
}

/// Plain lines, for a log.
pub(crate) struct Plain<'a> {
    screen: &'a Screen,
    started: Instant,
    status: Mutex<LiveStatus>,
    installation: Option<&'a Installation>,
}

/// The watcher that fits the screen; with an installation it shows the usage of models too.
pub(crate) fn watcher<'a>(
    screen: &'a Screen,
    installation: Option<&'a Installation>,
) -> Box<dyn Progress + 'a> {
    if screen.is_live() {
        return Box::new(Live::new(installation));
    }
    let status = Mutex::new(LiveStatus::new());
    Box::new(Plain { screen, started: Instant::now(), status, installation })
}

fn locked(status: &Mutex<LiveStatus>) -> MutexGuard<'_, LiveStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One visible line of a text that an agent may have written.
fn one_line(text: &str) -> String {
    safe(text).chars().map(|c| if c == '\n' { ' ' } else { c }).collect()
}

impl<'a> Live<'a> {
    fn new(installation: Option<&'a Installation>) -> Self {
        let bar = ProgressBar::new_spinner();
        let status = Arc::new(Mutex::new(LiveStatus::new()));
        let drawn = Arc::clone(&status);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {status}") {
            bar.set_style(style.with_key("status", move |_: &ProgressState, out: &mut dyn fmt::Write| {
                // Writing to the line of a bar cannot fail.
                _ = out.write_str(&locked(&drawn).text());
            }));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, status, installation }
    }
}

impl Progress for Live<'_> {
    fn started(&self, run_id: RunId) {
        locked(&self.status).calls = self.installation.map(|home| UsageSoFar::of(home, run_id));
    }

    fn step(&self, step: Step) {
        let mut status = locked(&self.status);
        status.phase = phase(step);
        status.last = String::new();
    }

    fn note(&self, text: &str) {
        locked(&self.status).last = one_line(text);
    }

    fn event(&self, kind: EventType, note: &str) {
        if matches!(kind, EventType::EngineMessage | EventType::ToolEvaluated) {
            locked(&self.status).last = one_line(note);
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Plain<'_> {
    fn line(&self, indent: &str, text: &str) {
        if !self.screen.is_json() {
            let elapsed = self.started.elapsed().as_secs_f32();
            self.screen.note(format_args!("{elapsed:6.2}s  {indent}{text}"));
        }
    }
}

impl Progress for Plain<'_> {
    fn started(&self, run_id: RunId) {
        locked(&self.status).calls = self.installation.map(|home| UsageSoFar::of(home, run_id));
        if !self.screen.is_json() {
            self.screen.note(format_args!("run {run_id}"));
        }
    }

    fn step(&self, step: Step) {
        // The engine's step has just ended.
        if step == Step::Collect
            && let Some(usage) = locked(&self.status).usage()
        {
            self.line("  ", &usage);
        }
        self.line("", phase(step));
    }

    fn note(&self, text: &str) {
        self.line("  ", &one_line(text));
    }

    fn event(&self, kind: EventType, note: &str) {
        if kind == EventType::ToolEvaluated {
            self.line("  ", &cut(&one_line(note), MAX_CALL_CHARS));
        }
    }
}
