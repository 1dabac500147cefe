//! `herma apply`: a person takes the verified patch of a run into their own repository, and back.

use std::io::{IsTerminal as _, stdin};
use std::path::Path;
use std::process::ExitCode;

use herma_apply::{
    ApplyError, Form, Record, Subject, Undone, apply as apply_patch, make_branch, recorded, undo,
};
use herma_core::report::ChangedFile;
use herma_core::visible::visible_line;
use herma_harness::Installation;

use crate::args;
use crate::commands::{Ended, find_finished_run, open};
use crate::confirm::{at_terminal, code_for};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{ApplyAction, ApplyOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn apply(args: &args::Apply, environment: &Environment, screen: &Screen) -> Ended {
    if !stdin().is_terminal() {
        return Err(Failure::bad_input("there is no terminal: only a person at a terminal applies a patch")
            .hint("run it in a terminal; `herma diff` prints the patch"));
    }
    let installation = open(environment, screen)?;
    if args.undo { take_back(args, &installation, screen) } else { take(args, &installation, screen) }
}

/// Applies the patch, or makes a branch of it.
fn take(args: &args::Apply, installation: &Installation, screen: &Screen) -> Ended {
    let (run, _) = find_finished_run(installation, &args.run)?;
    let inside = args.repo.as_deref().unwrap_or(Path::new("."));
    let subject = Subject::find(installation, &run, inside)?;
    show(&subject, args.branch.as_deref(), screen);
    at_terminal(&code_for(&subject.attestation), screen)?;
    let files = subject.report.changed_files.iter().map(|change| change.path.clone()).collect();
    let mut output = ApplyOutput {
        schema: "herma.apply/v1",
        run_id: run.run_id,
        action: ApplyAction::Applied,
        repository: subject.directory.clone(),
        bundle: subject.attestation,
        files,
        branch: None,
        commit: None,
    };
    if let Some(name) = &args.branch {
        let made = make_branch(installation, &subject, name)?;
        output.action = ApplyAction::Branched;
        (output.branch, output.commit) = (Some(made.name), Some(made.commit));
    } else {
        apply_patch(installation, &subject)?;
    }
    tell(&output, screen)
}

/// Takes back what was applied.
fn take_back(args: &args::Apply, installation: &Installation, screen: &Screen) -> Ended {
    let run = herma_api::find_run(installation, &args.run)?;
    let record = recorded(&installation.home, run.run_id)?;
    show_record(&record, screen);
    at_terminal(&code_for(&record.attestation), screen)?;
    let Undone { directory, files, branch } = undo(installation, run.run_id)?;
    tell(
        &ApplyOutput {
            schema: "herma.apply/v1",
            run_id: run.run_id,
            action: ApplyAction::Undone,
            repository: directory,
            bundle: record.attestation,
            files,
            branch,
            commit: None,
        },
        screen,
    )
}

/// Shows the subject of the code.
fn show(subject: &Subject, branch: Option<&str>, screen: &Screen) {
    let Subject { report, contract, directory, base, .. } = subject;
    screen.note(format_args!("run         {}  verified pass", report.run_id));
    screen.note(format_args!("contract    {}  {}", report.contract_id, visible_line(&contract.terms.title)));
    screen.note(format_args!("repository  {}", safe_line(&directory.display().to_string())));
    screen.note(format_args!("base        {base}"));
    match branch {
        Some(name) => screen.note(format_args!("branch      {}, new, with one commit", safe_line(name))),
        None => screen.note("work tree   the files below are changed; HEAD and index stay"),
    }
    for change in &report.changed_files {
        let test = if report.changed_tests.contains(&change.path) {
            screen.paint(Tone::Warn, "  a test, rewritten by the engine")
        } else if report.changed_verification_files.contains(&change.path) {
            screen.paint(Tone::Warn, "  decides what verification does")
        } else {
            String::new()
        };
        let path = safe_line(&change.path.to_string());
        screen.note(format_args!("  {:8} {path}{test}", kind(change)));
    }
}

fn kind(change: &ChangedFile) -> &'static str {
    match (&change.old, &change.new) {
        (None, _) => "added",
        (_, None) => "deleted",
        _ => "changed",
    }
}

fn show_record(record: &Record, screen: &Screen) {
    screen.note(format_args!("take back   run {}, applied on {:.0}", record.run_id, record.applied_at));
    screen.note(format_args!("repository  {}", safe_line(&record.directory.display().to_string())));
    match &record.form {
        Form::Branch(branch) => screen.note(format_args!("branch      {}", safe_line(branch.name()))),
        Form::Files { files, .. } => {
            for file in files {
                screen.note(format_args!("  {}", safe_line(&file.path.to_string())));
            }
        }
    }
}

fn tell(output: &ApplyOutput, screen: &Screen) -> Ended {
    if screen.is_json() {
        screen.value(output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (run, files) = (output.run_id.short(), output.files.len());
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    match (output.action, &output.branch, &output.commit) {
        (ApplyAction::Undone, Some(branch), _) => {
            screen.line(format_args!("taken back: the branch {} is deleted", safe_line(branch)));
        }
        (ApplyAction::Undone, None, _) => {
            screen.line(format_args!("taken back: {files} as before"));
        }
        (_, Some(branch), Some(commit)) => {
            screen.line(format_args!("the branch {} is at {commit}", safe_line(branch)));
        }
        _ => screen.line(format_args!("applied: {files} changed, nothing staged or committed")),
    }
    if output.action != ApplyAction::Undone {
        screen.line(format_args!(
            "{} `herma apply --undo {run}` takes it back",
            screen.paint(Tone::Bold, "next:")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let next_step = error.next_step();
        let failure = if error.is_bad_input() {
            Self::bad_input(error)
        } else if error.is_internal() {
            Self::internal(error)
        } else {
            Self::blocked(error)
        };
        failure.hint(next_step)
    }
}
