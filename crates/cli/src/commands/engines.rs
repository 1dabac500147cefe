//! `herma engines list|install|enable|disable`: which engines there are, and which are switched on.

use std::process::ExitCode;

use herma_api::{engine_rows, find_engine, install_engine, switch_engine};
use herma_core::admission::Incomplete;
use herma_core::capability::{Capabilities, Capability, Support};
use herma_core::engine::EngineName;
use herma_core::report::Admission;
use herma_core::{Digest, Stage};
use herma_harness::Installation;
use herma_install::{InstallError, InstallOrder};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{EngineRow, EnginesOutput, InstalledOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn engines(args: &args::EnginesArgs, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let command = args.command.as_ref().unwrap_or(&args::Engines::List);
    let rows = match command {
        args::Engines::Install(args) => return install(&installation, args, screen),
        args::Engines::List => engine_rows(&installation),
        args::Engines::Enable { name } => vec![switch_engine(&installation, name, true)?],
        args::Engines::Disable { name } => vec![switch_engine(&installation, name, false)?],
    };
    if screen.is_json() {
        screen.value(&EnginesOutput { schema: "herma.engines/v1", engines: rows })?;
    } else if matches!(command, args::Engines::List) {
        list(&rows, screen);
    } else {
        for row in &rows {
            switched(row, screen);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs an agent, and says what a person has to do before it can run.
fn install(installation: &Installation, args: &args::InstallEngine, screen: &Screen) -> Ended {
    find_engine(installation, &args.name)?;
    let order =
        InstallOrder { engine: args.name.clone(), version: args.pin.clone(), own_network: args.own_network };
    let installed = install_engine(installation, &order)?;
    let name = &installed.engine;
    let license_file = installed.license_file.as_ref().map(|file| file.display().to_string());
    let next_step = match &installed.lacks {
        Some(lacks) => complete(name, lacks, license_file.as_deref()),
        None => format!("have an approver sign it: `herma admit sign engine {name}`"),
    };
    let output = InstalledOutput {
        schema: "herma.installed/v1",
        engine: name.clone(),
        version: installed.version,
        digest: installed.digest,
        tree: installed.tree.display().to_string(),
        draft: installed.draft.display().to_string(),
        license_file,
        lacks: installed.lacks.map(|lacks| lacks.to_string()),
        next_step,
    };
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        screen.line(format_args!("installed {} {}", output.engine, output.version));
        screen.line(format_args!("  digest  {}", output.digest));
        screen.line(format_args!("  tree    {}", output.tree));
        screen.line(format_args!("  draft   {}", output.draft));
        if let Some(file) = &output.license_file {
            screen.line(format_args!("  license {}", safe_line(file)));
        }
        if let Some(lacks) = &output.lacks {
            screen.line(format_args!("          {}", safe_line(lacks)));
        }
        screen.line(format_args!("{} {}", screen.paint(Tone::Bold, "next:"), output.next_step));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let hint = error.next_step();
        match error {
            InstallError::NoPackage { .. } | InstallError::NotExact(_) | InstallError::Registry { .. } => {
                Self::bad_input(error).hint(hint)
            }
            InstallError::Admission(_) | InstallError::Cancelled => Self::blocked(error).hint(hint),
            error => Self::internal(error).hint(hint),
        }
    }
}

/// How the draft of an admission is completed: with what a person has to judge, and with what only they can say of an agent
/// that herma does not know.
fn complete(name: &EngineName, lacks: &Incomplete, license_file: Option<&str>) -> String {
    let options = [
        ("license", " --license TEXT"),
        ("identity", " --identity 'WHAT IT SAYS OF ITSELF'"),
        ("license_resolved", " --license-resolved"),
    ];
    let missing = options.iter().filter(|(field, _)| lacks.missing.contains(field));
    let options: String = missing.map(|(_, option)| *option).collect();
    let at = license_file.map(|file| format!(" in {}", safe_line(file))).unwrap_or_default();
    format!("read its license{at}, then `herma admit engine {name}{options}`")
}

fn list(rows: &[EngineRow], screen: &Screen) {
    for row in rows {
        let switch = if row.enabled {
            screen.paint(Tone::Good, "enabled ")
        } else {
            screen.paint(Tone::Dim, "disabled")
        };
        screen.line(format_args!(
            "{:12} {:13} {:9} {switch}  {:20}  {:18} {}",
            row.engine.as_str(),
            safe_line(&row.version),
            if row.built_in { "built in" } else { "external" },
            short(row.digest),
            row.admission.as_str(),
            stages(row.proven_stage)
        ));
        screen.line(format_args!("        {}", capabilities(row.capabilities)));
        if let Some(next) = &row.next_step {
            screen.line(format_args!("        {} {next}", screen.paint(Tone::Bold, "next:")));
        }
    }
}

fn switched(row: &EngineRow, screen: &Screen) {
    let switch = if row.enabled { "enabled" } else { "disabled: no run of it starts any more" };
    screen.line(format_args!("`{}` is {switch}", row.engine));
    let open = row.enabled && row.admission != Admission::Admitted;
    if let Some(detail) = row.admission_detail.as_ref().filter(|_| open) {
        screen.line(format_args!("  {}", safe_line(detail)));
    }
    if let Some(next) = row.next_step.as_ref().filter(|_| row.enabled) {
        screen.line(format_args!("{} {next}", screen.paint(Tone::Bold, "next:")));
    }
}

/// Every capability below its support, in one line.
fn capabilities(declared: Capabilities) -> String {
    let each = Support::ALL.into_iter().filter_map(|support| {
        let names: Vec<&str> = declared.that_are(support).map(Capability::as_str).collect();
        (!names.is_empty()).then(|| format!("{}: {}", support.as_str(), names.join(", ")))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The first digits of a digest.
fn short(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "no program".to_owned(), |digest| format!("sha256:{}", &digest.hex()[..12]))
}

fn stages(proven: Option<Stage>) -> String {
    match proven {
        None => "no stage proven".to_owned(),
        Some(Stage::Gated) => "stage 1".to_owned(),
        Some(stage) => format!("stages 1 to {stage}"),
    }
}
