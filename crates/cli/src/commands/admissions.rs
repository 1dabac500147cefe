//! `herma admissions list|show|check|revoke`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use herma_core::admission::{AdmissionDraft, AdmissionId, AdmissionKind, Line};
use herma_core::report::Admission;
use herma_core::{Clock as _, Digest};
use herma_evidence::file_reading::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_trust::{AdmissionContext, AdmissionError, AdmissionFile};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{AdmissionOutput, AdmissionRecord, AdmissionRow, AdmissionsOutput};
use crate::screen::{Screen, Tone, safe_line};

/// An admission of this installation, or a file that is nothing but a draft.
pub(crate) enum Which {
    Installed(AdmissionId),
    File(PathBuf),
}

impl Which {
    pub(crate) fn from_words(words: &[String]) -> Result<Self, Failure> {
        match words {
            [kind, name] => {
                let kind: AdmissionKind = kind.parse().map_err(Failure::bad_input)?;
                AdmissionId::parse(kind, name).map(Self::Installed).map_err(Failure::bad_input)
            }
            [file] => Ok(Self::File(PathBuf::from(file))),
            _ => Err(Failure::bad_input("name an admission by KIND and NAME, or a draft by its FILE")),
        }
    }
}

pub(crate) fn admissions(command: &args::Admissions, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        args::Admissions::List => list(&installation, screen).map(|_| ExitCode::SUCCESS),
        args::Admissions::Show { kind, name } => {
            let id = AdmissionId::parse(*kind, name).map_err(Failure::bad_input)?;
            let output = output(&installation, &Which::Installed(id))?;
            print(&output, screen)?;
            Ok(ExitCode::SUCCESS)
        }
        args::Admissions::Check { what } if what.is_empty() => {
            let all_hold = list(&installation, screen)?;
            Ok(ExitCode::from(u8::from(!all_hold)))
        }
        args::Admissions::Check { what } => {
            let which = Which::from_words(what)?;
            let output = output(&installation, &which)?;
            print(&output, screen)?;
            let holds = match which {
                Which::Installed(_) => output.status == Admission::Admitted,
                // A draft outside can at best be signed.
                Which::File(_) => output.lacks.is_none(),
            };
            Ok(ExitCode::from(u8::from(!holds)))
        }
        args::Admissions::Revoke { kind, name, reason } => revoke(&installation, *kind, name, reason, screen),
    }
}

fn revoke(
    installation: &Installation,
    kind: AdmissionKind,
    name: &str,
    reason: &Line,
    screen: &Screen,
) -> Ended {
    let id = AdmissionId::parse(kind, name).map_err(Failure::bad_input)?;
    let revoked = installation.admissions().revoke(&id, reason, herma_harness::SystemClock.now())?;
    if screen.is_json() {
        screen.value(&output(installation, &Which::Installed(id))?)?;
    } else {
        screen.line(format_args!("revoked the admission of {id} on {}", revoked.revoked_at));
        screen.line("its file stays as a draft; runs that need it are blocked from now on");
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists every admission, and says whether all of them hold.
fn list(installation: &Installation, screen: &Screen) -> Result<bool, Failure> {
    let context = next_run(installation);
    let mut rows = Vec::new();
    for listed in installation.admissions().list()? {
        let (name, status, detail) = if let Some(id) = &listed.id {
            let found = installation.admissions().look(id, engine_digest(installation, id), &context);
            (id.name(), found.status, found.detail)
        } else {
            let name = listed.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (name, Admission::InvalidAdmission, format!("no {} has a file of this name", listed.kind))
        };
        let file = listed.file.display().to_string();
        rows.push(AdmissionRow { kind: listed.kind, name, file, status, detail });
    }
    let all_hold = rows.iter().all(|row| row.status == Admission::Admitted);
    if screen.is_json() {
        screen.value(&AdmissionsOutput { schema: "herma.admissions/v1", admissions: rows })?;
        return Ok(all_hold);
    }
    if rows.is_empty() {
        screen.line("no admissions yet; `herma admit` writes a draft");
    }
    for row in rows {
        let pad = " ".repeat(18_usize.saturating_sub(row.status.as_str().len()));
        let status = status(row.status, screen);
        screen.line(format_args!(
            "{:7} {:32} {status}{pad} {}",
            row.kind.as_str(),
            safe_line(&row.name),
            safe_line(&row.detail)
        ));
    }
    Ok(all_hold)
}

/// What there is to say about one admission.
pub(crate) fn output(installation: &Installation, which: &Which) -> Result<AdmissionOutput, Failure> {
    let admissions = installation.admissions();
    let (read, file) = match which {
        Which::Installed(id) => (admissions.read(id)?, admissions.file(id)),
        Which::File(file) => (AdmissionFile::read(file)?, file.clone()),
    };
    let id = &read.id;
    let (kind, name) = (id.kind(), id.name());
    let lacks = read.draft.lacks().map(|lacks| lacks.to_string());
    let shown = file.display().to_string();
    let (status, detail, signed) = match which {
        Which::Installed(id) => {
            let found = admissions.look(id, engine_digest(installation, id), &next_run(installation));
            (found.status, found.detail, admissions.signature(id).ok().flatten().map(|signed| signed.record))
        }
        Which::File(_) => {
            let detail = "a file outside of the installation is a draft, and no run reads it";
            (Admission::NotAdmitted, detail.to_owned(), None)
        }
    };
    let next_step = match (status, &lacks, which) {
        (Admission::Admitted, ..) => {
            format!("`herma admissions revoke {kind} {name} --reason TEXT` takes it back")
        }
        (_, Some(_), _) => {
            format!("fill it in: edit {shown}, or `herma admit {kind} {name}` with more options")
        }
        (_, None, Which::File(_)) => format!("have an approver sign it: `herma admit sign {shown}`"),
        (_, None, Which::Installed(_)) => {
            format!("have an approver sign it: `herma admit sign {kind} {name}`")
        }
    };
    Ok(AdmissionOutput {
        schema: "herma.admission/v1",
        kind,
        name,
        file: shown,
        digest: read.digest(),
        status,
        detail,
        lacks,
        record: record(read.draft),
        signed,
        next_step,
    })
}

fn record(draft: AdmissionDraft) -> AdmissionRecord {
    match draft {
        AdmissionDraft::Engine(draft) => AdmissionRecord::Engine(Box::new(draft)),
        AdmissionDraft::Model(draft) => AdmissionRecord::Model(Box::new(draft)),
        AdmissionDraft::Target(draft) => AdmissionRecord::Target(Box::new(draft)),
    }
}

fn print(output: &AdmissionOutput, screen: &Screen) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.value(output);
    }
    let yaml = read_regular(Path::new(&output.file), MAX_RECORD_BYTES).map_err(Failure::internal)?;
    for line in String::from_utf8_lossy(&yaml).lines() {
        screen.line(format_args!("  {}", safe_line(line)));
    }
    if let Some(signed) = &output.signed {
        screen.line(format_args!("signed  by {} at {}", signed.approver, signed.signed_at));
    }
    show(output, screen);
    Ok(())
}

/// What an admission comes to, and what to do next.
pub(crate) fn show(output: &AdmissionOutput, screen: &Screen) {
    screen.line(format_args!("{}  {}", status(output.status, screen), safe_line(&output.detail)));
    screen.line(format_args!("next: {}", safe_line(&output.next_step)));
}

fn status(status: Admission, screen: &Screen) -> String {
    let tone = if status == Admission::Admitted { Tone::Good } else { Tone::Warn };
    screen.paint(tone, status.as_str())
}

/// The engine as it is now.
fn engine_digest(installation: &Installation, id: &AdmissionId) -> Option<Digest> {
    let AdmissionId::Engine(name) = id else { return None };
    installation.engines().get(name)?.digest().ok()
}

/// What would be the case for a run that is started now.
fn next_run(installation: &Installation) -> AdmissionContext<'_> {
    let mut context = installation.admission_context();
    let so_far = context.runs_since;
    context.runs_since = Box::new(move |id, since| so_far(id, since).map(|runs| runs + 1));
    context
}

impl From<AdmissionError> for Failure {
    fn from(error: AdmissionError) -> Self {
        let error = match error {
            AdmissionError::Trust(error) => return error.into(),
            error => error,
        };
        let hint = match &error {
            AdmissionError::Trust(_)
            | AdmissionError::Io { .. }
            | AdmissionError::Record(_)
            | AdmissionError::Clock(_) => {
                return Self::internal(error);
            }
            AdmissionError::Bad { .. } | AdmissionError::Other { .. } => {
                "mend the file; `herma schema` lists the schemas of admissions".to_owned()
            }
            AdmissionError::Refused { .. } => "leave it out: an admission is read by many".to_owned(),
            AdmissionError::NoFile(_) => {
                "name a file, or KIND and NAME of an admission; `herma admissions list` lists them".to_owned()
            }
            AdmissionError::NotThere(id) => format!("begin with `herma admit {} {}`", id.kind(), id.name()),
            AdmissionError::IsSigned(id) => {
                format!("`herma admissions revoke {} {} --reason TEXT`", id.kind(), id.name())
            }
            AdmissionError::NotSigned(_) => {
                "a draft admits nothing; remove its file to be rid of it".to_owned()
            }
            AdmissionError::Incomplete { id, .. } => format!("fill it in with `herma admit {}`", id.kind()),
        };
        Self::bad_input(error).hint(hint)
    }
}
