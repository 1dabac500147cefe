//! The set-up as a person sees it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use herma_api::output::{QuickstartFinding, QuickstartState, QuickstartStep, QuickstartStepName};
use herma_core::Stage;
use herma_core::engine::EngineName;
use herma_ladder::{ClimbStep, ClimbWatch};
use herma_quickstart::{Page, Watch};
use indicatif::{ProgressBar, ProgressStyle};

use crate::screen::{Screen, Tone, safe_line};

/// Shows a set-up under way; nothing with `--json`.
pub(super) struct Shown<'a> {
    screen: &'a Screen,
    started: Instant,
    /// The line that moves, on a terminal, while a step takes time.
    live: Mutex<Option<ProgressBar>>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(screen: &'a Screen) -> Self {
        Self { screen, started: Instant::now(), live: Mutex::default() }
    }

    fn say(&self, text: &str) {
        let text = safe_line(text);
        if self.screen.is_live() {
            let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.get_or_insert_with(moving_line).set_message(text);
        } else if !self.screen.is_json() {
            let seconds = self.started.elapsed().as_secs_f32();
            self.screen.note(format_args!("{seconds:6.1}s  {text}"));
        }
    }

    /// Nothing moves while a person reads or types.
    fn rest(&self) {
        if let Some(bar) = self.live.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}

fn moving_line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

impl Watch for Shown<'_> {
    fn inspected(&self, engine: &EngineName, findings: &[QuickstartFinding]) {
        if self.screen.is_json() {
            return;
        }
        self.screen.line(format_args!(
            "Setting up {engine} on this machine",
            engine = self.screen.paint(Tone::Bold, engine)
        ));
        self.screen.line("");
        for finding in findings {
            let mark = if finding.found {
                self.screen.paint(Tone::Good, "found  ")
            } else {
                self.screen.paint(Tone::Warn, "missing")
            };
            self.screen.line(format_args!("  {mark}  {:10}  {}", finding.name, safe_line(&finding.detail)));
            if let Some(plan) = &finding.plan {
                self.screen.line(format_args!("           {:10}  -> {}", "", safe_line(plan)));
            }
        }
    }

    fn begun(&self, step: QuickstartStepName) {
        self.say(step.as_str());
    }

    fn note(&self, text: &str) {
        self.say(text);
    }

    fn page(&self, page: &Page) {
        self.rest();
        let screen = self.screen;
        if screen.is_json() {
            return;
        }
        screen.line("");
        screen.line("To be signed. Each record gets a signature of its own and can be revoked alone.");
        for record in page.records() {
            screen.line("");
            for line in String::from_utf8_lossy(&record.bytes).lines() {
                screen.line(format_args!("  {}", safe_line(line)));
            }
        }
        screen.line("");
        screen.line(format_args!("code {}", screen.paint(Tone::Bold, page.code())));
    }

    fn step_done(&self, step: &QuickstartStep) {
        self.rest();
        let screen = self.screen;
        if screen.is_json() {
            return;
        }
        let tone = match step.state {
            QuickstartState::Done | QuickstartState::Current => Tone::Good,
            QuickstartState::Planned | QuickstartState::Skipped => Tone::Warn,
        };
        let (name, state) = (format!("{:10}", step.step.as_str()), format!("{:7}", step.state.as_str()));
        let (name, state) = (screen.paint(Tone::Bold, name), screen.paint(tone, state));
        // A part that was there needs one line.
        let (first, rest) = match (step.state, &step.detail[..]) {
            (QuickstartState::Current, [first, ..]) => (first.as_str(), &[][..]),
            (_, [only]) => (only.as_str(), &[][..]),
            (_, all) => ("", all),
        };
        if step.state != QuickstartState::Current {
            screen.line("");
        }
        screen.line(format_args!("{name} {state} {}", safe_line(first)).to_string().trim_end());
        for line in rest {
            screen.line(format_args!("  {}", safe_line(line)));
        }
        if let Some(command) = &step.command {
            screen.line(screen.paint(Tone::Dim, format_args!("  $ {}", safe_line(command))));
        }
    }
}

/// An error message takes the place of the line.
impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.rest();
    }
}

impl ClimbWatch for Shown<'_> {
    fn stage(&self, engine: &EngineName, stage: Stage) {
        self.say(&format!("prove stage {stage} of {engine}"));
    }

    fn case(&self, number: usize, total: usize, case: &str) {
        // Without a terminal one line for each stage is enough.
        if self.screen.is_live() {
            self.say(&format!("prove: test {number} of {total}: {case}"));
        }
    }

    fn done(&self, _: &ClimbStep) {}
}
