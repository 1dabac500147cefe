//! A run on one screen: 24 lines of 80 columns for an ordinary run.

use std::path::Path;

use herma_api::{ModelUse, RunOverview, run_overview};
use herma_core::report::{BaseResult, Report, Verification, VerificationStatus};
use herma_core::usage::Usage;
use herma_core::{Status, Step};
use herma_harness::Installation;
use textwrap::wrap;

use crate::cells::{cost, cut, duration, tokens};
use crate::commands::outcome;
use crate::diff_view::{stat_lines, sum};
use crate::output::{OutcomeRow, OutcomeWordNow};
use crate::screen::{Screen, Tone, safe, safe_line};

/// The columns before a value.
const LABEL: usize = 9;
/// The columns of an output that is no terminal.
const COLUMNS: usize = 80;
/// The lines that are shown of each list.
const MAX_FILES: usize = 5;
const MAX_MESSAGE: usize = 3;
const MAX_BLOCKERS: usize = 3;
const MAX_COMMANDS: usize = 3;
const MAX_DENIALS: usize = 2;
/// A part of a run that took less is not named.
const MIN_PHASE_MILLIS: u64 = 100;

/// Prints the overview of a run.
pub(super) fn show(
    installation: &Installation,
    bundle: &Path,
    report: &Report,
    outcome: Option<&OutcomeRow>,
    screen: &Screen,
) {
    let facts = run_overview(bundle, report);
    let view = View { screen, columns: screen.columns().unwrap_or(COLUMNS) };
    let status = screen.status(report.status);
    let (name, run) = (report.contract_id.as_str(), screen.paint(Tone::Dim, report.run_id.short()));
    screen.line(format_args!("{status}  {}  {run}", screen.paint(Tone::Bold, name)));
    view.why(report);
    if !facts.title.is_empty() && facts.title != name {
        view.line("task", &facts.title);
    }
    let base =
        facts.base_tree.as_ref().map(|tree| format!(", base tree {}", cut(tree, 9).trim_end_matches('…')));
    view.line("target", &format!("{}{}, stage {}", facts.target, base.unwrap_or_default(), report.stage));
    let agent = format!("{} {} in {}", report.engine, report.engine_version, report.destination.as_str());
    let model = report.model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
    view.line("engine", &format!("{agent}{model}"));
    view.changes(report, &facts);
    view.message(&facts);
    view.verification(report);
    view.models(facts.models);
    if let Some(tools) = &report.tools {
        let made = tools.asked + tools.unasked;
        let text =
            format!("{made} made, {} checked by hook (advisory), {} denied", tools.asked, tools.denied);
        view.line("tools", &text);
    }
    for denied in facts.denials.iter().take(MAX_DENIALS) {
        view.cut_line("denied", Some(Tone::Bad), &safe_line(denied));
    }
    view.time(report, &facts);
    if let Some(outcome) = outcome {
        view.line("outcome", &outcome::in_words(outcome));
    }
    view.next(installation, report, outcome);
}

struct View<'a> {
    screen: &'a Screen,
    columns: usize,
}

impl View<'_> {
    fn room(&self) -> usize {
        self.columns.saturating_sub(LABEL).max(20)
    }

    /// A label and a text, which is cut to one line.
    fn line(&self, label: &str, text: &str) {
        self.cut_line(label, None, &safe_line(text));
    }

    fn cut_line(&self, label: &str, tone: Option<Tone>, text: &str) {
        let text = cut(text, self.room());
        let text = tone.map_or_else(|| text.clone(), |tone| self.screen.paint(tone, &text));
        let label = self.screen.paint(Tone::Dim, format_args!("{label:LABEL$}"));
        self.screen.line(format_args!("{label}{text}"));
    }

    /// The same over some lines.
    fn wrapped(&self, label: &str, text: &str, most: usize) {
        let lines = wrap(text, self.room());
        for (at, line) in lines.iter().take(most).enumerate() {
            let is_cut = at + 1 == most && lines.len() > most;
            let line = if is_cut { cut(&format!("{line} …"), self.room()) } else { line.to_string() };
            self.cut_line(if at == 0 { label } else { "" }, None, &line);
        }
    }

    fn why(&self, report: &Report) {
        if report.status == Status::Pass {
            self.line("why", "every gate held and every check passed");
        }
        for record in report.blockers.iter().take(MAX_BLOCKERS) {
            let blocker = format!("{}: {}", record.blocker, safe_line(&record.detail));
            self.wrapped("why", &blocker, 3);
            self.wrapped("fix", &safe_line(&record.next_step), 2);
        }
        let more = report.blockers.len().saturating_sub(MAX_BLOCKERS);
        if more > 0 {
            self.line("", &format!("and {more} more: --full"));
        }
    }

    fn changes(&self, report: &Report, facts: &RunOverview) {
        if facts.stat.is_empty() {
            let why = if report.changed_files.is_empty() { "nothing" } else { "the patch was withheld" };
            self.line("changed", why);
            return;
        }
        self.line("changed", &sum(&facts.stat));
        for line in stat_lines(&facts.stat, MAX_FILES, self.screen) {
            self.screen.line(format_args!("{:LABEL$}{}", "", line.trim_start()));
        }
        let tests = report.changed_tests.len();
        if tests > 0 {
            self.cut_line(
                "",
                Some(Tone::Warn),
                &format!("{tests} of them are tests, rewritten by the engine"),
            );
        }
    }

    fn message(&self, facts: &RunOverview) {
        if let Some(message) = &facts.last_message {
            // Lines of an agent are joined: they cannot imitate those of herma.
            let message = safe(message).split_whitespace().collect::<Vec<_>>().join(" ");
            self.wrapped("agent", &format!("\"{message}\""), MAX_MESSAGE);
        }
    }

    fn verification(&self, report: &Report) {
        for check in report.verification.iter().take(MAX_COMMANDS) {
            let before = report.verify_before.iter().find(|base| base.command() == check.command).map(
                |base| match base {
                    BaseResult::Passed { .. } => "passed before, ",
                    BaseResult::Failed { .. } => "failed before, ",
                    BaseResult::Unrunnable { .. } => "could not run before, ",
                },
            );
            let end =
                format!("{}{}, {}", before.unwrap_or_default(), ended(check), duration(check.duration_ms));
            let command =
                cut(&safe_line(&check.command), self.room().saturating_sub(end.chars().count() + 2).max(8));
            self.cut_line("verify", tone(check), &format!("{command}  {end}"));
        }
        let more = report.verification.len().saturating_sub(MAX_COMMANDS);
        if more > 0 {
            self.line("", &format!("and {more} more commands"));
        }
    }

    fn models(&self, models: ModelUse) {
        let used = |usage: &Usage| {
            let (input, output) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
            format!("{} calls, {input} tokens in, {output} out, cost {}", usage.requests, cost(usage))
        };
        if models.engine.requests > 0 {
            self.line("model", &used(&models.engine));
        }
        if models.probes.requests > 0 {
            self.line("probe", &format!("{} (herma's own, before the engine)", used(&models.probes)));
        }
    }

    fn time(&self, report: &Report, facts: &RunOverview) {
        let whole = report.run_finished_at.as_millisecond() - report.run_started_at.as_millisecond();
        let mut parts = vec![duration(u64::try_from(whole).unwrap_or(0))];
        let phases = facts.phases.iter().filter(|phase| phase.millis >= MIN_PHASE_MILLIS);
        parts.extend(phases.map(|phase| format!("{} {}", name(phase.step), duration(phase.millis))));
        self.wrapped("time", &parts.join("  "), 2);
    }

    fn next(&self, installation: &Installation, report: &Report, outcome: Option<&OutcomeRow>) {
        let run = report.run_id.short();
        let mut commands = vec![format!("herma diff {run}"), format!("herma logs {run}")];
        let session =
            installation.engines().get(&report.engine).is_some_and(|engine| !engine.sessions().is_empty());
        if outcome.is_some_and(|outcome| outcome.state == OutcomeWordNow::Pending) {
            commands.push(format!("herma accept {run}"));
            commands.push(format!("herma reject {run} --reason TEXT"));
        } else if report.status == Status::Pass && !report.changed_files.is_empty() && !report.stage.lands() {
            commands.push(format!("herma apply {run}"));
        } else if report.status != Status::Pass && report.engine_started && session {
            commands.push(format!("herma resume {run}"));
        }
        commands.push(format!("herma show {run} --full"));
        self.wrapped("next", &commands.join("   "), 3);
    }
}

fn ended(check: &Verification) -> String {
    match (check.status, check.exit_code) {
        (VerificationStatus::Passed, _) => "passes".to_owned(),
        (_, Some(code)) => format!("fails with exit code {code}"),
        (_, None) => "fails".to_owned(),
    }
}

fn tone(check: &Verification) -> Option<Tone> {
    (check.status != VerificationStatus::Passed).then_some(Tone::Bad)
}

/// A part of a run in one word.
fn name(step: Step) -> &'static str {
    match step {
        Step::Start => "start",
        Step::Gates => "gates",
        Step::Probe => "probes",
        Step::Workspace => "workspace",
        Step::Engine => "engine",
        Step::Collect => "collect",
        Step::Check => "check",
        Step::Verify => "verify",
        Step::Witness => "target",
        Step::Land => "land",
        Step::Report => "report",
        Step::Attest => "sign",
        Step::Close => "close",
    }
}
