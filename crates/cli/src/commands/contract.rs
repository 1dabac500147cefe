//! `herma contract check|new|digest`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use herma_api::{ReadContract, read_contract};
use herma_core::Stage;
use herma_core::contract::{RepoRef, Risk, Target, template};

use crate::args;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::{ContractOutput, WrittenOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn contract(command: &args::Contract, screen: &Screen) -> Ended {
    match command {
        args::Contract::Check { file } => check(file, screen),
        args::Contract::Digest { file } => digest(file, screen),
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
            let commit = match target {
                Target::Repo { .. } => "commit it if it lies in its target, which has to be clean, ",
                Target::Fixture(_) => "",
            };
            written(&file, commit, screen)
        }
    }
}

/// A repository's path as a contract says it: a word alone would be the name of an admission there.
fn as_path(repo: Option<&RepoRef>) -> String {
    match repo {
        None => ".".to_owned(),
        Some(path) if path.is_path() => path.to_string(),
        Some(word) => format!("./{word}"),
    }
}

/// Says that a contract was written, and what to do with it; `commit` says whether it has to be committed.
pub(crate) fn written(file: &Path, commit: &str, screen: &Screen) -> Ended {
    let shown = file.display().to_string();
    let next_step = format!(
        "fill it in, check it with `herma contract check {shown}`, {commit}then `herma run {shown} --engine NAME`; `herma engines` lists the engines"
    );
    if screen.is_json() {
        screen.value(&WrittenOutput { schema: "herma.written/v1", file: shown, next_step })?;
    } else {
        screen.line(format_args!("wrote {shown}\nnext: {next_step}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that is not there yet; `otherwise` says what to do where it is.
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

fn check(file: &Path, screen: &Screen) -> Ended {
    let output = summary(file)?;
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

fn digest(file: &Path, screen: &Screen) -> Ended {
    let output = summary(file)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        screen.line(output.contract_digest);
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(file: &Path) -> Result<ContractOutput, Failure> {
    let ReadContract { contract, .. } = read_contract(&file.to_string_lossy())?;
    let terms = &contract.terms;
    let mut warnings = Vec::new();
    if terms.verify.is_empty() {
        warnings.push("missing_test_command: `verify` names no command".to_owned());
    }
    if let Some(kind) = terms.destination.filter(|kind| !herma_destination::is_available(*kind)) {
        let name = kind.as_str();
        warnings.push(format!("destination_unready: this version of herma has no destination `{name}`"));
    }
    if let Target::Fixture(name) = &terms.target
        && herma_fixtures::find(name.as_str()).is_none()
    {
        warnings
            .push(format!("target_not_admitted: there is no fixture `{name}`; docs/fixtures.md lists them"));
    }
    if terms.risk == Risk::Critical {
        warnings.push("critical_repository: no contract with `risk: critical` runs".to_owned());
    }
    let stage = terms.stage;
    if stage == Stage::CandidateDefault {
        warnings.push(format!("stage_unproven: stage {stage} compares evidence; no contract runs there"));
    }
    if stage.needs_approval() {
        warnings.push(format!(
            "stage_unproven: unless the engine has proven every stage up to {stage}; see `herma ladder`"
        ));
        warnings.push(format!(
            "approval_void: unless a person approves it; ask with `herma approvals request {} --reason TEXT`",
            file.display()
        ));
    }
    for need in &terms.needs {
        warnings.push(format!("engine_not_admitted: unless the engine has `{need}`; see `herma engines`"));
    }
    if let Some(choice) = &terms.model {
        let name = format!("{}/{}", choice.provider, choice.model);
        warnings.push(format!("model_not_admitted: unless `{name}` is admitted; see `herma admissions`"));
        warnings
            .push("provider_unavailable: unless its provider is configured; see `herma models`".to_owned());
    }
    Ok(ContractOutput {
        schema: "herma.contract-check/v1",
        contract_id: terms.id.to_string(),
        contract_digest: contract.digest().map_err(Failure::internal)?,
        title: terms.title.clone(),
        stage: terms.stage.into(),
        warnings,
    })
}
