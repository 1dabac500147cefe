//! `herma do`: an ad-hoc contract from flags and defaults, its run, and the ways to take the result.

use std::sync::Arc;

use herma_api::{AdHoc, AdHocError, AdHocTask, ad_hoc};
use herma_core::contract::MAX_BYTES;
use herma_core::defaults::{PartialLimits, WorkDefaults};
use herma_core::egress::EgressMode;
use herma_core::{Report, Status};
use herma_evidence::layout;
use herma_files::read_regular;
use herma_harness::{Finished, Installation, Order, ResumeOptions, resume};
use herma_policy::Policies;

use crate::args;
use crate::commands::dry_run::dry_run;
use crate::commands::resume::start;
use crate::commands::run::{exit_code, govern, tell};
use crate::commands::{Ended, find_finished_run, open};
use crate::diff_view::{show_patch, show_stat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, safe, safe_line};

/// The columns of a terminal that has room for a command and what it does.
const MIN_EXPLAINED: usize = 76;

pub(crate) fn do_task(args: &args::Do, environment: &Environment, screen: &Screen) -> Ended {
    Policies::compile_ahead();
    let installation = Arc::new(open(environment, screen)?);
    let order = match &args.continue_run {
        Some(run) => {
            let (parent, _) = find_finished_run(&installation, run)?;
            let flags = (args.from_workspace, args.from_base);
            let from = start(flags, &installation, parent.run_id, screen)?;
            let options = ResumeOptions { message: Some(&args.task), from, script: None };
            let order = resume(&installation, parent.run_id, options)?;
            Order { fault: environment.fault.clone(), ..order }
        }
        None => new_order(args, environment, &installation, screen)?,
    };
    if args.dry_run {
        return dry_run(&installation, &order, screen);
    }
    let finished = govern(&installation, order, screen)?;
    tell(&installation, &finished, screen)?;
    if !screen.is_json() {
        show_result(&finished, &installation, screen);
    }
    Ok(exit_code(&finished))
}

fn new_order(
    args: &args::Do,
    environment: &Environment,
    installation: &Installation,
    screen: &Screen,
) -> Result<Order, Failure> {
    let script = args.script.as_deref().map(|file| {
        let read = read_regular(file, MAX_BYTES).map_err(|e| format!("--script {}: {e}", file.display()));
        read.and_then(|bytes| String::from_utf8(bytes).map_err(|e| e.to_string())).map_err(Failure::bad_input)
    });
    let task = AdHocTask { task: &args.task, directory: &args.repo, flags: flags(args) };
    let AdHoc { read, engine, destination, reasons } = ad_hoc(installation, &task)?;
    if !screen.is_json() {
        for reason in &reasons {
            screen.note(screen.paint(Tone::Dim, format_args!("found: {}", safe_line(reason))));
        }
        screen.note(screen.paint(Tone::Bold, format_args!("the contract, for the engine {engine}:")));
        for line in read.text.lines() {
            screen.note(format_args!("  {}", safe(line)));
        }
    }
    Ok(Order {
        contract: read.contract,
        contract_text: read.text,
        contract_dir: read.dir,
        engine,
        destination,
        script: script.transpose()?,
        keep_workspace: false,
        egress: EgressMode::Strict,
        resumes: None,
        fault: environment.fault.clone(),
    })
}

fn flags(args: &args::Do) -> WorkDefaults {
    // The last of two equal limits counts.
    let limits = args.limit.iter().fold(PartialLimits::default(), |all, next| next.over(all));
    WorkDefaults {
        allowed_paths: (!args.allow.is_empty()).then(|| args.allow.clone()),
        verify: (!args.verify.is_empty()).then(|| args.verify.clone()),
        environment: None,
        engine: args.engine.clone(),
        model: args.model.clone(),
        destination: args.destination.map(Into::into),
        limits,
    }
}

/// The change, and the ways to take it.
fn show_result(finished: &Finished, installation: &Installation, screen: &Screen) {
    let Finished { report, bundle, .. } = finished;
    if let Ok(patch) = read_regular(&bundle.join(layout::PATCH), u64::MAX)
        && !report.not_applicable.contains_key(layout::PATCH)
    {
        screen.line("");
        show_stat(&patch, screen);
        if screen.is_terminal() {
            screen.line("");
            show_patch(&patch, screen);
        }
    }
    screen.line("");
    for (command, what) in ways(report, installation) {
        // A narrow terminal has room for the commands alone.
        if screen.columns().is_some_and(|columns| columns < MIN_EXPLAINED) {
            screen.line(format_args!("  {command}"));
        } else {
            screen.line(format_args!("  {command:34} {}", screen.paint(Tone::Dim, what)));
        }
    }
}

fn ways(report: &Report, installation: &Installation) -> Vec<(String, &'static str)> {
    let run = report.run_id.short();
    let mut ways = Vec::new();
    if report.status == Status::Pass && !report.changed_files.is_empty() {
        ways.push((format!("herma apply {run}"), "apply the change to your work tree"));
        ways.push((format!("herma apply {run} --branch NAME"), "or make a branch of it"));
    }
    let engine = installation.engines().get(&report.engine);
    // A run that started no engine kept nothing.
    if report.engine_started && engine.is_some_and(|engine| !engine.sessions().is_empty()) {
        ways.push((format!("herma do --continue {run} \"...\""), "tell the agent what to change"));
        ways.push((format!("herma discard {run}"), "delete its workspace and session"));
    }
    ways.push((format!("herma show {run}"), "the result on one screen"));
    ways
}

impl From<AdHocError> for Failure {
    fn from(error: AdHocError) -> Self {
        let next_step = error.next_step();
        Self { next_step, ..Self::bad_input(error) }
    }
}
