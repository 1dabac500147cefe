//! `herma admissions list|show|check|revoke`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use herma_api::{AdmissionRef, admission_output, admission_rows};
use herma_core::Clock as _;
use herma_core::admission::{AdmissionId, AdmissionKind, Line};
use herma_core::report::Admission;
use herma_evidence::file_reading::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_trust::AdmissionError;

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{AdmissionOutput, AdmissionsOutput};
use crate::screen::{Screen, Tone, safe_line};

/// The admission that these arguments name: KIND and NAME, or FILE.
pub(crate) fn admission_ref(words: &[String]) -> Result<AdmissionRef, Failure> {
    match words {
        [kind, name] => {
            let kind: AdmissionKind = kind.parse().map_err(Failure::bad_input)?;
            AdmissionId::parse(kind, name).map(AdmissionRef::Installed).map_err(Failure::bad_input)
        }
        [file] => Ok(AdmissionRef::File(PathBuf::from(file))),
        _ => Err(Failure::bad_input("name an admission by KIND and NAME, or a draft by its FILE")),
    }
}

pub(crate) fn admissions(command: &args::Admissions, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        args::Admissions::List => list(&installation, screen).map(|_| ExitCode::SUCCESS),
        args::Admissions::Show { kind, name } => {
            let id = AdmissionId::parse(*kind, name).map_err(Failure::bad_input)?;
            let output = admission_output(&installation, &AdmissionRef::Installed(id))?;
            print(&output, screen)?;
            Ok(ExitCode::SUCCESS)
        }
        args::Admissions::Check { what } if what.is_empty() => {
            let all_hold = list(&installation, screen)?;
            Ok(ExitCode::from(u8::from(!all_hold)))
        }
        args::Admissions::Check { what } => {
            let which = admission_ref(what)?;
            let output = admission_output(&installation, &which)?;
            print(&output, screen)?;
            let holds = match which {
                AdmissionRef::Installed(_) => output.status == Admission::Admitted,
                // A draft outside can at best be signed.
                AdmissionRef::File(_) => output.lacks.is_none(),
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
        screen.value(&admission_output(installation, &AdmissionRef::Installed(id))?)?;
    } else {
        screen.line(format_args!("revoked the admission of {id} on {}", revoked.revoked_at));
        screen.line("its file stays as a draft; runs that need it are blocked from now on");
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists every admission, and says whether all of them hold.
fn list(installation: &Installation, screen: &Screen) -> Result<bool, Failure> {
    let rows = admission_rows(installation)?;
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

/// Prints the status of an admission and the next step.
pub(crate) fn show(output: &AdmissionOutput, screen: &Screen) {
    screen.line(format_args!("{}  {}", status(output.status, screen), safe_line(&output.detail)));
    screen.line(format_args!("next: {}", safe_line(&output.next_step)));
}

fn status(status: Admission, screen: &Screen) -> String {
    let tone = if status == Admission::Admitted { Tone::Good } else { Tone::Warn };
    screen.paint(tone, status.as_str())
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
                "fix the file; `herma schema` lists the schemas of admissions".to_owned()
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
