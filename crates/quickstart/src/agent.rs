//! The agent: installed, or taken from a path; and the draft of its admission, complete but for the signature.

use std::fs;
use std::path::{Path, PathBuf};

use herma_api::install_engine;
use herma_api::output::{QuickstartState, QuickstartStepName};
use herma_core::admission::{AbsolutePath, AdmissionDraft, AdmissionId, EngineDraft, Line, ReviewTrigger};
use herma_core::report::Admission;
use herma_engines::{Engine, license_in};
use herma_install::InstallOrder;
use herma_trust::{AdmissionError, AdmissionFile, SYSTEM_TEMP_DIRS, check_draft};

use crate::error::QuickstartError;
use crate::session::Session;
use crate::shell::word;

const STEP: QuickstartStepName = QuickstartStepName::Agent;

/// Installs the agent if that has to be done, and gives the record to be signed; none where it is admitted or built in.
pub(crate) fn agent(session: &mut Session<'_>) -> Result<Option<AdmissionFile>, QuickstartError> {
    let engine = session.adapter()?;
    if engine.built_in() {
        let detail = vec![format!("{} is part of herma", session.engine)];
        session.done(STEP, QuickstartState::Current, detail, None);
        return Ok(None);
    }
    if let Some(what) = engine.unconfigured() {
        return Err(QuickstartError::missing(format!("`{}` is not configured", session.engine), what));
    }
    let id = AdmissionId::Engine(session.engine.clone());
    let admissions = session.installation.admissions();
    let found = admissions.look(&id, engine.digest().ok(), &session.installation.admission_context());
    if found.status == Admission::Admitted {
        let detail = match &found.record {
            Some(AdmissionDraft::Engine(draft)) => describe(session.adapter()?, draft),
            _ => Vec::new(),
        };
        session.done(STEP, QuickstartState::Current, detail, None);
        return Ok(None);
    }
    if admissions.signature(&id)?.is_some() {
        let name = &session.engine;
        let next = format!("look at it, then: herma admissions revoke engine {name} --reason 'set up again'");
        return Err(QuickstartError::missing(found.detail, next));
    }
    let (draft, state, command) = obtain(session, &id)?;
    let record = complete(session, &id, draft)?;
    let AdmissionDraft::Engine(draft) = &record.draft else { return Ok(None) };
    let detail = describe(session.adapter()?, draft);
    session.done(STEP, state, detail, Some(command));
    Ok(Some(record))
}

type Obtained = (EngineDraft, QuickstartState, String);

/// The draft of a program that is there: the named one, the drafted one, or the one that is installed now.
fn obtain(session: &mut Session<'_>, id: &AdmissionId) -> Result<Obtained, QuickstartError> {
    let name = session.engine.clone();
    if let Some(program) = &session.choices.program {
        let draft = given(session, program)?;
        let command = format!("herma admit engine {name} --program {}", word(&program.to_string_lossy()));
        return Ok((draft, QuickstartState::Done, command));
    }
    let install = match &session.choices.pin {
        Some(pin) => format!("herma engines install {name} --pin {}", word(pin)),
        None => format!("herma engines install {name}"),
    };
    let own_network = if session.choices.own_network { " --own-network" } else { "" };
    let install = format!("{install}{own_network}");
    if let Some(draft) = drafted(session, id)?
        && session.adapter()?.digest().is_ok()
        && session
            .choices
            .pin
            .as_ref()
            .is_none_or(|pin| draft.pin.as_ref().is_some_and(|known| known.to_string() == *pin))
    {
        return Ok((draft, QuickstartState::Current, install));
    }
    session.watch.begun(STEP);
    session.watch.note("fetching it from its registry, inside the sandbox");
    let order = InstallOrder {
        engine: name,
        version: session.choices.pin.clone(),
        own_network: session.choices.own_network,
    };
    install_engine(&session.installation, &order)?;
    session.reopen()?;
    let draft = drafted(session, id)?.ok_or_else(|| AdmissionError::NotThere(id.clone()))?;
    Ok((draft, QuickstartState::Done, install))
}

/// The draft in the installation.
fn drafted(session: &Session<'_>, id: &AdmissionId) -> Result<Option<EngineDraft>, QuickstartError> {
    match session.installation.admissions().read(id) {
        Ok(AdmissionFile { draft: AdmissionDraft::Engine(draft), .. }) => Ok(Some(draft)),
        Ok(_) | Err(AdmissionError::NotThere(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The draft of a program, or of an installed package, at a path.
fn given(session: &Session<'_>, program: &Path) -> Result<EngineDraft, QuickstartError> {
    let choices = session.choices;
    let bad =
        |why: String| QuickstartError::bad(why, "name the agent's program, or its tree, with --program PATH");
    let shown = program.display();
    let real = fs::canonicalize(program).map_err(|e| bad(format!("{shown} cannot be found: {e}")))?;
    let home = session.installation.home.root();
    let is_temporary = |dir: &str| real.starts_with(dir) && !real.starts_with(home);
    if let Some(dir) = SYSTEM_TEMP_DIRS.iter().find(|dir| is_temporary(dir)) {
        return Err(bad(format!("{shown} is below {dir}, which does not last: install it elsewhere")));
    }
    if real.is_dir() && !real.starts_with(session.installation.home.installed()) {
        return Err(QuickstartError::bad(
            format!("{shown} is a directory, and a directory runs only where herma installed it"),
            "leave --program out to install the agent, or name its program file",
        ));
    }
    let path: AbsolutePath = real.to_string_lossy().parse().map_err(|e| bad(format!("{shown}: {e}")))?;
    let package = session.adapter()?.source();
    let in_tree = package.as_ref().and_then(|package| package.installed(&real));
    let line = |text: String| -> Result<Line, QuickstartError> { text.parse().map_err(&bad) };
    let needed = |flag: &str, what: &str| {
        QuickstartError::bad(
            format!("{shown} is no package that herma knows: {what} is not known"),
            format!("add {flag}"),
        )
    };
    let pin = in_tree.clone().or_else(|| choices.pin.clone());
    let license = choices.license.clone().or_else(|| package.as_ref()?.license_of(&real));
    let license = license.ok_or_else(|| needed("--license TEXT", "its license"))?;
    let identity = choices.identity.clone().or_else(|| package.as_ref()?.identity_of(pin.as_ref()?));
    let identity = identity.ok_or_else(|| match &package {
        Some(_) => needed("--pin VERSION", "its version"),
        None => needed("--identity TEXT", "what it prints about itself"),
    })?;
    let source = match &package {
        Some(package) if in_tree.is_some() => format!("{} {}", package.origin.name(), package.name),
        _ => "a program of the operator".to_owned(),
    };
    Ok(EngineDraft {
        program: Some(path),
        source: Some(line(source)?),
        pin: Some(line(pin.unwrap_or_else(|| "its digest".to_owned()))?),
        retrieval: Some(line("none: given by its path".to_owned())?),
        license: Some(line(license)?),
        identity: Some(line(identity)?),
        review_trigger: Some(ReviewTrigger::DigestChange),
        ..EngineDraft::new(session.engine.clone())
    })
}

/// The record to be signed. Its license counts as settled, which the person confirms by the code over the page.
fn complete(
    session: &mut Session<'_>,
    id: &AdmissionId,
    mut draft: EngineDraft,
) -> Result<AdmissionFile, QuickstartError> {
    draft.license_resolved = draft.license_resolved.or(Some(true));
    let program = draft.program.as_deref().map(Path::to_path_buf);
    draft.digest = program.map(|program| digest_of(session, program)).transpose()?;
    let as_draft = AdmissionDraft::Engine(draft);
    if let Some(lacks) = as_draft.lacks() {
        let kind = id.kind();
        return Err(QuickstartError::bad(
            format!("the admission of {id} is a draft; {lacks}"),
            format!("fill it in: edit {}, or `herma admit {kind} {}`", file(session, id), session.engine),
        ));
    }
    let record = keep(session, id, as_draft)?;
    if !session.choices.dry_run {
        session.reopen()?;
    }
    Ok(record)
}

fn file(session: &Session<'_>, id: &AdmissionId) -> String {
    session.installation.admissions().file(id).display().to_string()
}

/// The digest of everything that the engine runs with this program.
fn digest_of(session: &Session<'_>, program: PathBuf) -> Result<herma_core::Digest, QuickstartError> {
    let installation = &session.installation;
    let programs = [(session.engine.clone(), program)].into();
    let herma = installation.settings().herma.clone();
    let engines = herma_engines::Registry::new(herma, None, programs, &installation.operator.acp);
    let engine = engines.get(&session.engine).ok_or_else(|| {
        QuickstartError::bad(
            format!("herma has no engine `{}`", session.engine),
            "`herma engines` lists them",
        )
    })?;
    engine
        .digest()
        .map_err(|e| QuickstartError::bad(e.to_string(), "name the program's file with --program FILE"))
}

/// The draft as a record. It is written, unless this is a dry run; the bytes of a file that says the same stay.
pub(crate) fn keep(
    session: &Session<'_>,
    id: &AdmissionId,
    draft: AdmissionDraft,
) -> Result<AdmissionFile, QuickstartError> {
    let admissions = session.installation.admissions();
    if let Ok(read) = admissions.read(id)
        && read.draft == draft
    {
        return Ok(read);
    }
    let bytes = check_draft(&draft)?.into_bytes();
    if !session.choices.dry_run {
        admissions.write_draft(&draft)?;
    }
    Ok(AdmissionFile { id: id.clone(), draft, bytes })
}

/// Facts about the program that a person reads before it runs.
fn describe(engine: &dyn Engine, draft: &EngineDraft) -> Vec<String> {
    let text = |line: &Option<Line>| line.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let mut lines = vec![format!("{}, {}", text(&draft.source), text(&draft.pin))];
    lines.extend(draft.digest.map(|digest| format!("digest {digest}")));
    lines.push(format!("license {}", text(&draft.license)));
    if let Some(program) = draft.program.as_deref() {
        let package = engine.source();
        let in_tree = package.as_ref().and_then(|package| package.license_file(program));
        let found = in_tree.or_else(|| license_in(program.parent()?));
        lines.push(match found {
            Some(file) => format!("license text {}", file.display()),
            None => "no license text came with it".to_owned(),
        });
    }
    lines
}
