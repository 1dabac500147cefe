//! `herma admit engine|model|target|sign`: drafts of admissions, and the approver's signature under them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use herma_api::{AdmissionRef, admission_output, make_last_component};
use herma_core::admission::{
    AbsolutePath, AdmissionDraft, AdmissionId, EngineDraft, ModelDraft, TargetDraft,
};
use herma_core::{Clock as _, Digest};
use herma_engines::Registry;
use herma_harness::Installation;
use herma_trust::{AdmissionError, AdmissionFile, check_draft};

use crate::args::{Admit, AdmitEngine, AdmitModel, AdmitSign, AdmitTarget, Until};
use crate::commands::admissions::{admission_ref, show};
use crate::commands::{Ended, open};
use crate::confirm::{code_for, confirm};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, safe_line};
use crate::unlock::{require_approver, unlock};

pub(crate) fn admit(command: &Admit, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        Admit::Engine(args) => {
            let id = AdmissionId::Engine(args.name.clone());
            draft(&installation, id, &args.until, screen, |draft| match draft {
                AdmissionDraft::Engine(draft) => fill_engine(draft, args, &installation, environment),
                _ => Ok(()),
            })
        }
        Admit::Model(args) => {
            let id = AdmissionId::Model(args.name.clone());
            draft(&installation, id, &args.until, screen, |draft| match draft {
                AdmissionDraft::Model(draft) => {
                    fill_model(draft, args);
                    Ok(())
                }
                _ => Ok(()),
            })
        }
        Admit::Target(args) => {
            let id = AdmissionId::Target(args.name.clone());
            draft(&installation, id, &args.until, screen, |draft| match draft {
                AdmissionDraft::Target(draft) => fill_target(draft, args),
                _ => Ok(()),
            })
        }
        Admit::Sign(args) => sign(args, &installation, environment, screen),
    }
}

/// Reads the draft or begins one, fills in what was given, and writes it.
fn draft(
    installation: &Installation,
    id: AdmissionId,
    until: &Until,
    screen: &Screen,
    fill_in: impl FnOnce(&mut AdmissionDraft) -> Result<(), Failure>,
) -> Ended {
    let admissions = installation.admissions();
    let read = match &until.output {
        Some(file) => AdmissionFile::read(file),
        None => admissions.read(&id),
    };
    let mut draft = match read {
        Ok(read) if read.id == id => read.draft,
        Ok(read) => {
            return Err(Failure::bad_input(format!("the file is about {}, not about {id}", read.id))
                .hint("choose another file with --output FILE"));
        }
        Err(AdmissionError::NoFile(_) | AdmissionError::NotThere(_)) => begin(id.clone()),
        Err(error) => return Err(error.into()),
    };
    fill_in(&mut draft)?;
    let file = match &until.output {
        Some(file) => {
            write_outside(file, &check_draft(&draft)?)?;
            file.clone()
        }
        None => admissions.write_draft(&draft)?,
    };
    let which = if until.output.is_some() { AdmissionRef::File(file) } else { AdmissionRef::Installed(id) };
    let output = admission_output(installation, &which)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        screen.line(format_args!("wrote {}", output.file));
        let state = match &output.lacks {
            Some(lacks) => format!("{}  {}", screen.paint(Tone::Warn, "a draft"), safe_line(lacks)),
            None => format!("{}  every field is there", screen.paint(Tone::Good, "complete")),
        };
        screen.line(state);
        screen.line(format_args!("next: {}", output.next_step));
    }
    Ok(ExitCode::SUCCESS)
}

/// A new draft. Fields without a choice are filled in.
fn begin(id: AdmissionId) -> AdmissionDraft {
    let mut draft = AdmissionDraft::new(id);
    if let AdmissionDraft::Target(draft) = &mut draft {
        draft.operator_outcome_required = Some(true);
        draft.forbidden_paths = Some(Vec::new());
        draft.forbidden_actions = Some(Vec::new());
    }
    draft
}

fn fill_engine(
    draft: &mut EngineDraft,
    args: &AdmitEngine,
    installation: &Installation,
    environment: &Environment,
) -> Result<(), Failure> {
    if let Some(program) = &args.program {
        draft.program = Some(absolute(program)?);
    }
    draft.digest = digest(draft, installation, environment)?;
    replace(&mut draft.source, args.source.as_ref());
    replace(&mut draft.pin, args.pin.as_ref());
    replace(&mut draft.retrieval, args.retrieval.as_ref());
    replace(&mut draft.license, args.license.as_ref());
    replace(&mut draft.license_resolved, args.license_resolved.as_ref());
    replace(&mut draft.identity, args.identity.as_ref());
    replace(&mut draft.review_trigger, args.until.review_trigger.as_ref());
    replace(&mut draft.expires_at, args.until.expires.as_ref());
    Ok(())
}

/// The digest of everything that the engine would run with this program.
fn digest(
    draft: &EngineDraft,
    installation: &Installation,
    environment: &Environment,
) -> Result<Option<Digest>, Failure> {
    let programs: BTreeMap<_, _> =
        draft.program.iter().map(|program| (draft.engine.clone(), program.to_path_buf())).collect();
    let engines =
        Registry::new(environment.settings.herma.clone(), None, programs, &installation.operator.acp);
    let name = &draft.engine;
    let engine = engines.get(name).ok_or_else(|| {
        let known: Vec<_> = engines.names().iter().map(ToString::to_string).collect();
        Failure::bad_input(format!("herma has no engine `{name}`; it has: {}", known.join(", ")))
    })?;
    if engine.built_in() {
        return Err(Failure::bad_input(format!("`{name}` is part of herma itself and needs no admission")));
    }
    if let Some(what) = engine.unconfigured() {
        return Err(Failure::bad_input(format!("`{name}` is not configured")).hint(what));
    }
    if draft.program.is_none() {
        return Ok(None);
    }
    let hint = "name the program's file with --program FILE";
    engine.digest().map(Some).map_err(|e| Failure::bad_input(e).hint(hint))
}

fn fill_model(draft: &mut ModelDraft, args: &AdmitModel) {
    replace(&mut draft.runtime_provider, args.runtime_provider.as_ref());
    draft.credential_source = args.credential_source.map(Into::into).or(draft.credential_source);
    draft.network = args.network.map(Into::into).or(draft.network);
    replace(&mut draft.review_trigger, args.until.review_trigger.as_ref());
    replace(&mut draft.expires_at, args.until.expires.as_ref());
}

fn fill_target(draft: &mut TargetDraft, args: &AdmitTarget) -> Result<(), Failure> {
    if let Some(path) = &args.path {
        draft.path = Some(absolute(path)?);
    }
    replace(&mut draft.owner, args.owner.as_ref());
    replace(&mut draft.ownership_evidence, args.ownership_evidence.as_ref());
    draft.risk_class = args.risk_class.map(Into::into).or(draft.risk_class);
    replace(&mut draft.rationale, args.rationale.as_ref());
    if !args.allowed_path.is_empty() {
        draft.allowed_paths = Some(args.allowed_path.clone().try_into().map_err(Failure::bad_input)?);
    }
    if !args.forbidden_path.is_empty() {
        draft.forbidden_paths = Some(args.forbidden_path.clone());
    }
    if !args.forbidden_action.is_empty() {
        draft.forbidden_actions = Some(args.forbidden_action.clone());
    }
    replace(&mut draft.review_trigger, args.until.review_trigger.as_ref());
    replace(&mut draft.expires_at, args.until.expires.as_ref());
    Ok(())
}

fn replace<T: Clone>(field: &mut Option<T>, given: Option<&T>) {
    if given.is_some() {
        *field = given.cloned();
    }
}

/// The absolute path without symbolic links of an existing file, so that the admission keeps its meaning.
fn absolute(path: &Path) -> Result<AbsolutePath, Failure> {
    let shown = path.display();
    let real =
        fs::canonicalize(path).map_err(|e| Failure::bad_input(format!("{shown} cannot be found: {e}")))?;
    let text = real.to_str().ok_or_else(|| Failure::bad_input(format!("{shown} is not UTF-8")))?;
    text.parse().map_err(|e| Failure::bad_input(format!("{shown}: {e}")))
}

fn write_outside(file: &Path, yaml: &str) -> Result<(), Failure> {
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        make_last_component("the directory of --output", dir, 0o777)?;
    }
    fs::write(file, yaml)
        .map_err(|e| Failure::bad_input(format!("{} cannot be written: {e}", file.display())))
}

/// Shows the whole record, has the code repeated, and signs exactly what was shown.
fn sign(args: &AdmitSign, installation: &Installation, environment: &Environment, screen: &Screen) -> Ended {
    let admissions = installation.admissions();
    let read = admission_ref(&args.what)?.read(installation)?;
    if let Some(lacks) = read.draft.lacks() {
        let error = AdmissionError::Incomplete { id: read.id.clone(), lacks };
        return Err(Failure::bad_input(error)
            .hint(format!("fill it in with an editor or with `herma admit {}`", read.id.kind())));
    }
    require_approver(&args.unlock, installation, environment)?;
    let code = code_for(&read.digest());
    if !screen.is_json() {
        screen.line(format_args!("You are about to admit {}:", read.id));
        screen.line("");
        for line in String::from_utf8_lossy(&read.bytes).lines() {
            screen.line(format_args!("  {}", safe_line(line)));
        }
        screen.line("");
        screen.line(format_args!("digest  {}", read.digest()));
        screen.line(format_args!("code    {code}"));
    }
    confirm(&code, args.code.as_deref(), screen)?;
    let approver = unlock(&args.unlock, installation, environment, screen)?;
    let signed = admissions.sign(&read, &approver, herma_harness::SystemClock.now())?;
    let output = admission_output(installation, &AdmissionRef::Installed(read.id.clone()))?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        screen.line(format_args!("signed by {} at {}", signed.record.approver, signed.record.signed_at));
        show(&output, screen);
    }
    Ok(ExitCode::SUCCESS)
}
