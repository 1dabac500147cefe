//! The repository: its environment and its tests, tried on the base as a run would, and kept as the person's defaults for it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use herma_api::output::{QuickstartState, QuickstartStepName};
use herma_api::{AdHoc, AdHocError, AdHocTask, DEFAULTS_FILE, ad_hoc};
use herma_core::admission::ModelRef;
use herma_core::defaults::WorkDefaults;
use herma_core::egress::EgressMode;
use herma_core::environment::BaseResult;
use herma_core::gate::{Finding, Gate};
use herma_core::visible::visible_line;
use herma_harness::{DryRun, Order, dry_run};

use crate::error::QuickstartError;
use crate::session::Session;
use crate::shell::word;

const STEP: QuickstartStepName = QuickstartStepName::Repository;

/// The task of the contract with which the repository is tried. No engine gets it.
const TASK: &str = "Try the tests of this repository on its base.";

/// Whether `herma do` knows what to verify here.
pub(crate) enum Tried {
    /// It does, or there is no repository.
    Known,
    /// A person has to say it with these flags.
    Unknown(&'static str),
}

/// The top of the repository around a directory.
pub(crate) fn top_of(directory: &Path) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    directory.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned)
}

/// Tries the repository and keeps what works.
pub(crate) fn repository(
    session: &mut Session<'_>,
    model: Option<&ModelRef>,
) -> Result<Tried, QuickstartError> {
    let choices = session.choices;
    let Some(root) = top_of(&choices.directory) else {
        let detail =
            vec!["not in a git repository: `herma do` looks at the one in which it is started".to_owned()];
        session.done(STEP, QuickstartState::Skipped, detail, None);
        return Ok(Tried::Known);
    };
    let kept = session.installation.repository_defaults(&root)?;
    let is_new = kept == WorkDefaults::default() || !choices.verify.is_empty() || !choices.allow.is_empty();
    let is_unwritten = choices.write && !root.join(DEFAULTS_FILE).exists();
    if !is_new && !is_unwritten {
        session.done(STEP, QuickstartState::Current, vec![root.display().to_string()], None);
        return Ok(Tried::Known);
    }
    let command = command(session);
    if choices.dry_run {
        let detail = vec![format!("try the tests of {}", root.display())];
        session.done(STEP, QuickstartState::Planned, detail, Some(command));
        return Ok(Tried::Known);
    }
    session.watch.begun(STEP);
    let flags =
        WorkDefaults { engine: Some(session.engine.clone()), model: model.cloned(), ..named(session) };
    let task = AdHocTask { task: TASK, directory: &root, flags };
    let contract = match ad_hoc(&session.installation, &task) {
        Ok(contract) => contract,
        Err(AdHocError::NoCommands) => {
            return Ok(unknown(session, "no test command was found", " --verify 'COMMAND'"));
        }
        Err(AdHocError::NoPaths) => {
            return Ok(unknown(session, "no directory of source was found", " --allow 'GLOB'"));
        }
        Err(error) => return Err(error.into()),
    };
    let mut detail: Vec<String> = contract.reasons.iter().map(|reason| format!("found {reason}")).collect();
    let defaults = defaults(&contract);
    let before = try_out(session, contract)?;
    detail
        .extend(defaults.verify.iter().flatten().map(|command| format!("verify {}", visible_line(command))));
    detail.extend(before.iter().filter_map(failing));
    let file = session.installation.keep_repository_defaults(&root, &defaults)?;
    detail.push(format!("kept in {}", file.display()));
    if is_unwritten {
        detail.push(format!("wrote {}; commit it", write(&root, &defaults)?.display()));
    }
    session.done(STEP, QuickstartState::Done, detail, Some(command));
    Ok(Tried::Known)
}

/// The paths and commands of the flags.
fn named(session: &Session<'_>) -> WorkDefaults {
    let choices = session.choices;
    WorkDefaults {
        allowed_paths: (!choices.allow.is_empty()).then(|| choices.allow.clone()),
        verify: (!choices.verify.is_empty()).then(|| choices.verify.clone()),
        ..WorkDefaults::default()
    }
}

fn unknown(session: &mut Session<'_>, what: &str, flag: &'static str) -> Tried {
    let detail = vec![
        what.to_owned(),
        format!("herma quickstart {}{flag} keeps one for this repository", session.engine),
    ];
    session.done(STEP, QuickstartState::Skipped, detail, None);
    Tried::Unknown(flag)
}

/// The values that were tried. Engine and model are the person's for every repository.
fn defaults(contract: &AdHoc) -> WorkDefaults {
    let terms = &contract.read.contract.terms;
    WorkDefaults {
        allowed_paths: Some(terms.allowed_paths.as_slice().to_vec()),
        verify: Some(terms.verify.clone()),
        environment: terms.environment.clone(),
        ..WorkDefaults::default()
    }
}

/// A command that fails on the base may be the task; a person who mistyped it finds out here, before a model is asked.
fn failing(result: &BaseResult) -> Option<String> {
    match result {
        BaseResult::Failed { command, exit_code } => {
            let code = exit_code.map_or_else(String::new, |code| format!(" with exit code {code}"));
            Some(format!(
                "NOTE: {} fails on the base{code}; --verify names another command",
                visible_line(command)
            ))
        }
        BaseResult::Passed { .. } | BaseResult::Unrunnable { .. } => None,
    }
}

/// Builds the environment and runs the commands on the base.
fn try_out(session: &Session<'_>, contract: AdHoc) -> Result<Vec<BaseResult>, QuickstartError> {
    let order = Order {
        contract: contract.read.contract,
        contract_text: contract.read.text,
        contract_dir: contract.read.dir,
        engine: contract.engine,
        destination: contract.destination,
        script: None,
        keep_workspace: false,
        egress: EgressMode::Strict,
        resumes: None,
        fault: None,
    };
    let note = |text: &str| session.watch.note(text);
    let tried = dry_run(&session.installation, &order, &note)?;
    session.check_cancelled()?;
    match first_missing(&tried) {
        None => Ok(tried.verify_before),
        Some((what, next_step)) => Err(QuickstartError::missing(what, next_step)),
    }
}

fn first_missing(tried: &DryRun) -> Option<(String, String)> {
    tried.gates.iter().find_map(|(gate, finding)| match finding {
        Some(Finding::Missing(record)) => {
            let mut what = record.detail.clone();
            // They are of the command that failed on the base.
            for line in tried.last_lines.iter().filter(|_| *gate == Gate::Preflight) {
                what.push_str("\n  ");
                what.push_str(line);
            }
            Some((what, record.next_step.clone()))
        }
        _ => None,
    })
}

/// Writes the defaults into the repository, for everybody who works on it. An existing file stays.
fn write(root: &Path, defaults: &WorkDefaults) -> Result<PathBuf, QuickstartError> {
    let file = root.join(DEFAULTS_FILE);
    let failed = |source| QuickstartError::Io { path: file.clone(), doing: "written", source };
    let text = |value: serde_json::Result<String>| value.map_err(|e| failed(e.into()));
    let mut lines = vec!["# Defaults of `herma do` in this repository; docs/settings.md".to_owned()];
    if let Some(paths) = &defaults.allowed_paths {
        lines.push(format!("allowed_paths: {}", text(serde_json::to_string(paths))?));
    }
    if let Some(verify) = &defaults.verify {
        lines.push(format!("verify: {}", text(serde_json::to_string(verify))?));
    }
    if let Some(environment) = &defaults.environment {
        lines.push(format!("environment: {}", text(serde_json::to_string(environment))?));
    }
    let dir = root.join(".herma");
    if dir.is_symlink() {
        return Err(QuickstartError::bad(
            format!("{} is a symbolic link", dir.display()),
            "remove it: herma writes inside the repository only",
        ));
    }
    herma_api::make_last_component("the directory", &dir, 0o777)
        .map_err(|error| QuickstartError::bad(error.to_string(), "make it yourself"))?;
    let mut new = fs::File::create_new(&file).map_err(failed)?;
    new.write_all(format!("{}\n", lines.join("\n")).as_bytes()).map_err(failed)?;
    Ok(file)
}

fn command(session: &Session<'_>) -> String {
    let choices = session.choices;
    let allow = choices.allow.iter().map(|path| format!(" --allow {}", word(path.as_str())));
    let verify = choices.verify.iter().map(|command| format!(" --verify {}", word(command)));
    let flags: String = allow.chain(verify).collect();
    format!("herma do {} --dry-run{flags}", word("say what to change"))
}
