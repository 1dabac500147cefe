//! `herma contract check|new|digest`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use herma_api::{contract_summary, read_contract};
use herma_core::contract::{RepoRef, Target, template};
use herma_harness::{Installation, Settings, SystemClock};
use herma_home::MARKER;

use crate::args;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::{ContractOutput, WrittenOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn contract(command: &args::Contract, settings: &Settings, screen: &Screen) -> Ended {
    match command {
        args::Contract::Check { file } => check(file, settings, screen),
        args::Contract::Digest { file } => digest(file, settings, screen),
        args::Contract::New { id, output, repo, fixture } => {
            let target = match (repo, fixture) {
                (_, Some(name)) => Target::Fixture(name.clone()),
                (repo, None) => Target::Repo {
                    repo: as_path(repo.as_ref()).parse().map_err(Failure::bad_input)?,
                    base: None,
                },
            };
            let file = output.clone().unwrap_or_else(|| PathBuf::from(format!("{id}.md")));
            write_new(&file, &template(id, &target), "choose another name with --output FILE")?;
            let shown = file.display();
            let next_step = format!(
                "fill it in, check it with `herma contract check {shown}`, then `herma run {shown} --engine NAME`; `herma engines` lists the engines"
            );
            written(&file, next_step, screen)
        }
    }
}

/// A repository's path in a contract: without a slash it would be the name of an admission there.
fn as_path(repo: Option<&RepoRef>) -> String {
    match repo {
        None => ".".to_owned(),
        Some(path) if path.is_path() => path.to_string(),
        Some(word) => format!("./{word}"),
    }
}

/// Says that a contract was written, and what to do with it.
pub(crate) fn written(file: &Path, next_step: String, screen: &Screen) -> Ended {
    let shown = file.display().to_string();
    if screen.is_json() {
        screen.value(&WrittenOutput { schema: "herma.written/v1", file: shown, next_step })?;
    } else {
        screen.line(format_args!("wrote {shown}\nnext: {next_step}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a new file; `otherwise` is the next step if it exists.
pub(crate) fn write_new(file: &Path, text: &str, otherwise: &str) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::bad_input(format!("{} is there already and stays as it is", file.display()))
                .hint(otherwise)
        }
        _ => Failure::bad_input(format!("{} cannot be written: {e}", file.display())),
    };
    let mut new = OpenOptions::new().write(true).create_new(true).open(file).map_err(cannot)?;
    new.write_all(text.as_bytes()).and_then(|()| new.sync_all()).map_err(cannot)
}

fn check(file: &Path, settings: &Settings, screen: &Screen) -> Ended {
    let output = summary(file, settings)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        screen.line(format_args!("{}  {}", screen.paint(Tone::Good, "ok"), safe_line(&output.title)));
        screen.line(format_args!("  id      {}", output.contract_id));
        screen.line(format_args!("  stage   {}", output.stage));
        screen.line(format_args!("  digest  {}", output.contract_digest));
        for warning in &output.warnings {
            screen.line(format_args!(
                "  {}  {}",
                screen.paint(Tone::Warn, "would block"),
                safe_line(warning)
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn digest(file: &Path, settings: &Settings, screen: &Screen) -> Ended {
    let output = summary(file, settings)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        screen.line(output.contract_digest);
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(file: &Path, settings: &Settings) -> Result<ContractOutput, Failure> {
    let named = file.to_string_lossy();
    let read = read_contract(&named, settings)?;
    // A home that is not there yet is not made for a check.
    let home = settings.home.as_ref().filter(|home| home.path().join(MARKER).is_file());
    let installation = home.and_then(|_| Installation::open(settings.clone(), Arc::new(SystemClock)).ok());
    contract_summary(&read, &named, installation.as_ref()).map_err(Failure::internal)
}
