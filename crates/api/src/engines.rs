//! Engines: their rows in lists, their switches, and the installation of agents.

use std::io;
use std::sync::Arc;

use herma_core::engine::{DestinationKind, EngineName};
use herma_core::report::Admission;
use herma_core::{Stage, nearest};
use herma_engines::Engine;
use herma_harness::Installation;
use herma_home::EnabledEngines;
use herma_install::{HostTools, InstallError, InstallOrder, InstalledTree, Installer};

use crate::output::EngineRow;

/// The request is about an engine that herma does not have, or cannot be fulfilled for it.
#[derive(Debug, thiserror::Error)]
pub enum EngineRequestError {
    /// herma has no such engine.
    #[error("herma has no engine `{name}`")]
    Unknown {
        /// The name.
        name: EngineName,
        /// The engines of herma.
        known: Vec<EngineName>,
    },
    /// A built-in engine has no switch.
    #[error("`{0}` is part of herma and always on: it has no switch")]
    BuiltIn(EngineName),
    /// The switch could not be written.
    #[error("the switch of `{name}` could not be written: {source}")]
    Write {
        /// The name.
        name: EngineName,
        /// The error of the system.
        source: io::Error,
    },
}

impl EngineRequestError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Unknown { name, known } => {
                let known: Vec<&str> = known.iter().map(EngineName::as_str).collect();
                let near = nearest(name.as_str(), &known).map(|near| format!("did you mean `{near}`? "));
                format!("{}there are: {}", near.unwrap_or_default(), known.join(", "))
            }
            Self::BuiltIn(_) => "nothing needs to be done: a contract runs with it as it is".to_owned(),
            Self::Write { .. } => "free space or make herma's home writable".to_owned(),
        }
    }
}

/// Finds an engine by its name.
pub fn find_engine<'a>(
    installation: &'a Installation,
    name: &EngineName,
) -> Result<&'a dyn Engine, EngineRequestError> {
    let engines = installation.engines();
    engines
        .get(name)
        .ok_or_else(|| EngineRequestError::Unknown { name: name.clone(), known: engines.names() })
}

/// Lists all engines.
#[must_use]
pub fn engine_rows(installation: &Installation) -> Vec<EngineRow> {
    let engines = installation.engines();
    let names = engines.names();
    names.iter().filter_map(|name| engines.get(name)).map(|e| engine_row(installation, e)).collect()
}

/// Switches an engine on or off.
pub fn switch_engine(
    installation: &Installation,
    name: &EngineName,
    on: bool,
) -> Result<EngineRow, EngineRequestError> {
    let engine = find_engine(installation, name)?;
    if engine.built_in() {
        return Err(EngineRequestError::BuiltIn(name.clone()));
    }
    let switches = EnabledEngines::of(&installation.home);
    let done = if on { switches.enable(name, installation.now()) } else { switches.disable(name) };
    done.map_err(|source| EngineRequestError::Write { name: name.clone(), source })?;
    Ok(engine_row(installation, engine))
}

/// Installs an agent in the sandbox, and drafts its admission.
pub fn install_engine(
    installation: &Installation,
    order: &InstallOrder,
) -> Result<InstalledTree, InstallError> {
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
        cancellation: installation.cancellation.clone(),
    };
    installer.install(order)
}

/// The next step for an engine without a program.
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

/// An engine with its admission, its switch and its proven stage.
#[must_use]
pub fn engine_row(installation: &Installation, engine: &dyn Engine) -> EngineRow {
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

/// The next step towards a run, in the order in which a person takes them.
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
                "`herma admissions check engine {name}` shows what is wrong; then admit it again"
            ));
        }
    }
    let stage = match proven {
        None => Stage::Gated,
        Some(proven) => Stage::ALL.into_iter().find(|stage| *stage > proven)?,
    };
    Some(format!("prove stage {stage} with `herma prove --engine {name} --stage {stage}`"))
}
