//! `herma engines list|install|enable|disable`: which engines there are, and which are switched on.

use std::process::ExitCode;
use std::sync::Arc;

use herma_core::admission::Incomplete;
use herma_core::capability::{Capabilities, Capability, Support};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::report::Admission;
use herma_core::{Clock as _, Digest, Stage};
use herma_engines::Engine;
use herma_harness::Installation;
use herma_home::EnabledEngines;
use herma_install::{HostTools, InstallError, InstallOrder, InstalledTree, Installer};

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
        args::Engines::List => {
            let known = installation.engines();
            known.names().iter().filter_map(|name| known.get(name)).map(|e| look(&installation, e)).collect()
        }
        args::Engines::Enable { name } => vec![switch(&installation, name, true)?],
        args::Engines::Disable { name } => vec![switch(&installation, name, false)?],
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
    find(installation, &args.name)?;
    let order =
        InstallOrder { engine: args.name.clone(), version: args.pin.clone(), own_network: args.own_network };
    let installed = run_installer(installation, &order).map_err(|error| {
        let hint = error.next_step();
        match error {
            InstallError::NoPackage { .. } | InstallError::NotExact(_) | InstallError::Registry { .. } => {
                Failure::bad_input(error).hint(hint)
            }
            InstallError::Admission(_) => Failure::blocked(error).hint(hint),
            error => Failure::internal(error).hint(hint),
        }
    })?;
    let name = &installed.engine;
    let next_step = match &installed.lacks {
        Some(lacks) => complete(name, lacks),
        None => format!("have an approver sign it: `herma admit sign engine {name}`"),
    };
    let output = InstalledOutput {
        schema: "herma.installed/v1",
        engine: name.clone(),
        version: installed.version,
        digest: installed.digest,
        tree: installed.tree.display().to_string(),
        draft: installed.draft.display().to_string(),
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
        if let Some(lacks) = &output.lacks {
            screen.line(format_args!("          {}", safe_line(lacks)));
        }
        screen.line(format_args!("{} {}", screen.paint(Tone::Bold, "next:"), output.next_step));
    }
    Ok(ExitCode::SUCCESS)
}

fn run_installer(installation: &Installation, order: &InstallOrder) -> Result<InstalledTree, InstallError> {
    let sandbox = installation
        .destination(DestinationKind::Sandbox, None)
        .map_err(|unready| InstallError::Start(unready.into()))?;
    let settings = installation.settings();
    let installer = Installer {
        home: &installation.home,
        engines: installation.engines(),
        admissions: installation.admissions(),
        sandbox: &*sandbox,
        host: HostTools { search_path: settings.search_path.clone(), user_home: settings.user_home.clone() },
        clock: Arc::clone(installation.clock()),
    };
    installer.install(order)
}

/// How the draft of an admission is completed: with what a person has to judge, and with what only they can say of an agent
/// that herma does not know.
fn complete(name: &EngineName, lacks: &Incomplete) -> String {
    let options = [
        ("license", " --license TEXT"),
        ("identity", " --identity 'WHAT IT SAYS OF ITSELF'"),
        ("license_resolved", " --license-resolved"),
    ];
    let missing = options.iter().filter(|(field, _)| lacks.missing.contains(field));
    let options: String = missing.map(|(_, option)| *option).collect();
    format!("read its license, then `herma admit engine {name}{options}`")
}

/// Switches an engine on or off, and says what it comes to then.
fn switch(installation: &Installation, name: &EngineName, on: bool) -> Result<EngineRow, Failure> {
    let engine = find(installation, name)?;
    if engine.built_in() {
        return Err(Failure::bad_input(format!("`{name}` is part of herma and always on: it has no switch"))
            .hint("nothing needs to be done: a contract runs with it as it is"));
    }
    let switches = EnabledEngines::of(&installation.home);
    let done =
        if on { switches.enable(name, herma_harness::SystemClock.now()) } else { switches.disable(name) };
    done.map_err(|e| {
        Failure::internal(format!("the switch of `{name}` could not be written: {e}"))
            .hint("free space or make herma's home writable")
    })?;
    Ok(look(installation, engine))
}

/// An engine of this herma by its name.
pub(crate) fn find<'a>(installation: &'a Installation, name: &EngineName) -> Result<&'a dyn Engine, Failure> {
    installation.engines().get(name).ok_or_else(|| {
        let known: Vec<_> = installation.engines().names().iter().map(ToString::to_string).collect();
        Failure::bad_input(format!("herma has no engine `{name}`"))
            .hint(format!("there are: {}", known.join(", ")))
    })
}

/// What to do about an engine of which there is nothing to run yet.
fn to_install(engine: &dyn Engine) -> Option<String> {
    if engine.built_in() || engine.program().is_some() {
        return None;
    }
    if engine.source().is_some() {
        return Some(format!("install it with `herma engines install {}`", engine.name()));
    }
    let what = engine.without_source().map(str::to_owned);
    Some(what.unwrap_or_else(|| to_admit(&engine.name())))
}

fn to_admit(name: &EngineName) -> String {
    format!("write its admission with `herma admit engine {name} --program FILE`")
}

/// What there is to say about an engine.
pub(crate) fn look(installation: &Installation, engine: &dyn Engine) -> EngineRow {
    let (name, built_in) = (engine.name(), engine.built_in());
    let digest = engine.digest().ok();
    let (admission, admission_detail) = if built_in {
        (Admission::BuiltIn, None)
    } else {
        let found = installation.admissions().find_engine(&name, digest, &installation.admission_context());
        (found.status, Some(found.detail))
    };
    let enabled = built_in || EnabledEngines::of(&installation.home).is_on(&name);
    let proofs = installation.proofs();
    let proven_stage =
        Stage::ALL.into_iter().take_while(|stage| proofs.status(engine, *stage).holds()).last();
    let next_step = to_install(engine)
        .filter(|_| engine.unconfigured().is_some() || admission == Admission::MissingAdmission)
        .or_else(|| next_step(&name, enabled, admission, proven_stage));
    EngineRow {
        engine: name,
        version: engine.version().to_owned(),
        built_in,
        enabled,
        digest,
        admission,
        admission_detail,
        proven_stage,
        capabilities: engine.capabilities(),
        next_step,
    }
}

/// The first thing that is missing, in the order of the gates that a person opens.
fn next_step(
    name: &EngineName,
    enabled: bool,
    admission: Admission,
    proven: Option<Stage>,
) -> Option<String> {
    if !enabled {
        return Some(format!("switch it on with `herma engines enable {name}`"));
    }
    match admission {
        Admission::Admitted | Admission::BuiltIn | Admission::NotApplicable => {}
        Admission::MissingAdmission => return Some(to_admit(name)),
        Admission::NotAdmitted => {
            return Some(format!(
                "complete its admission with `herma admit engine {name}`, then have an approver sign it with \
                 `herma admit sign engine {name}`"
            ));
        }
        Admission::Mismatch | Admission::InvalidAdmission | Admission::Expired => {
            return Some(format!(
                "`herma admissions check engine {name}` says what is wrong; then admit it again"
            ));
        }
    }
    let stage = match proven {
        None => Stage::Gated,
        Some(proven) => Stage::ALL.into_iter().find(|stage| *stage > proven)?,
    };
    Some(format!("prove stage {stage} with `herma prove --engine {name} --stage {stage}`"))
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

/// Enough of a digest to tell two apart.
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
