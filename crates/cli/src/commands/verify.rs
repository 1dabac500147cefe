//! `herma verify`: proves or refutes a bundle, offline.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use herma_api::expected_run;
use herma_evidence::file_reading::read_named;
use herma_evidence::keys::MAX_KEY_BYTES;
use herma_evidence::verify::{CheckList, CheckOutcome, ExpectedRun};
use herma_evidence::{PublicKey, Trust, TrustedApprover, layout};
use herma_git::Git;
use herma_home::{HomePlace, check_home};
use herma_trust::{Approvers, TrustLog, verify_bundle, verify_run};

use crate::args;
use crate::commands::{Ended, find_finished_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::VerifyOutput;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn verify(args: &args::Verify, environment: &Environment, screen: &Screen) -> Ended {
    let (bundle, expected) = find_bundle(&args.bundle, environment, screen)?;
    let trust = trust(args, environment, screen)?;
    let git = Git::find(&environment.settings.search_path).ok();
    if let Some(repo) = &args.repo {
        let git = git.as_ref().ok_or_else(|| {
            Failure::bad_input("--repo needs git").hint("install git, for example with `apt install git`")
        })?;
        git.common_dir(repo).map_err(|e| {
            Failure::bad_input(format!("{}: {e}", repo.display()))
                .hint("name the repository that the contract is about with --repo DIR")
        })?;
    }
    let (git, repo) = (git.as_ref(), args.repo.as_deref());
    let checks = match &expected {
        Some(expected) => verify_run(&bundle, expected, &trust, git, repo),
        None => verify_bundle(&bundle, &trust, git, repo),
    };
    let ok = checks.ok();
    if screen.is_json() {
        screen.value(&VerifyOutput { schema: "herma.verify/v1", ok, checks: checks.checks })?;
    } else {
        show_checks(&checks, screen);
        if trust.keys.is_empty() {
            screen.note("no key is known on this machine: give the signer's public key with --key FILE");
        }
    }
    Ok(ExitCode::from(u8::from(!ok)))
}

/// Prints each check.
pub(crate) fn show_checks(checks: &CheckList, screen: &Screen) {
    for check in &checks.checks {
        let mark = match check.outcome {
            CheckOutcome::Passed => screen.paint(Tone::Good, "ok"),
            CheckOutcome::Failed => screen.paint(Tone::Bad, "BROKEN"),
            CheckOutcome::Unchecked => screen.paint(Tone::Warn, "NOT CHECKED"),
            CheckOutcome::NotApplicable => screen.paint(Tone::Dim, "-"),
        };
        screen.line(format_args!("  {:14} {mark}  {}", check.name.as_str(), safe_line(&check.detail)));
    }
    let verdict = if checks.ok() {
        screen.paint(Tone::Good, "The bundle holds.")
    } else if checks.failed().all(|check| check.outcome == CheckOutcome::Unchecked) {
        screen.paint(
            Tone::Warn,
            "The bundle is NOT verified: nothing is broken, but not everything could be checked.",
        )
    } else {
        screen.paint(Tone::Bad, "The bundle does NOT hold.")
    };
    screen.line(verdict);
}

/// A directory, or a run of this installation, whose bundle has to be that run's own.
fn find_bundle(
    named: &str,
    environment: &Environment,
    screen: &Screen,
) -> Result<(PathBuf, Option<ExpectedRun>), Failure> {
    let path = Path::new(named);
    if path.is_dir() && looks_like_a_bundle(path) {
        return Ok((path.to_owned(), None));
    }
    if path.exists() || named.contains('/') {
        let below = path.join("bundle");
        let hint = if looks_like_a_bundle(&below) {
            format!("did you mean {}?", below.display())
        } else {
            "name the directory that holds report.json and attestation.json".to_owned()
        };
        return Err(Failure::bad_input(format!("{named}: is not a bundle's directory")).hint(hint));
    }
    let installation = open(environment, screen)?;
    let (run, dirs) = find_finished_run(&installation, named)?;
    Ok((dirs.bundle(), Some(expected_run(&run))))
}

/// Whether any file of a bundle exists; the checks report missing ones.
fn looks_like_a_bundle(dir: &Path) -> bool {
    [layout::REPORT, layout::ATTESTATION, layout::EVENTS, layout::CONTRACT]
        .iter()
        .any(|name| dir.join(name).exists())
}

/// The keys that were given, for evidence and outcomes alike; else this installation's own and those of its approvers.
/// A machine without keys trusts no signer.
fn trust(args: &args::Verify, environment: &Environment, screen: &Screen) -> Result<Trust, Failure> {
    if !args.key.is_empty() {
        let keys = read_keys(&args.key)?;
        // Their owners are unknown.
        let approvers = keys.iter().map(|key| TrustedApprover { name: None, key: key.clone() }).collect();
        return Ok(Trust { keys, approvers });
    }
    let Some(home) = environment.settings.home.as_ref().map(HomePlace::path) else {
        return Ok(Trust::default());
    };
    let own = home.join("keys");
    check_home(home).map_err(|error| Failure::from(&error))?;
    let installation = own.join("installation.pub");
    let keys = if installation.exists() { read_keys(&[installation])? } else { Vec::new() };
    let trusted = |key: &PublicKey| Approvers::open(TrustLog::open(home, key.clone(), None)).trusted();
    let approvers = keys.first().map_or_else(|| Ok(Vec::new()), trusted).unwrap_or_else(|error| {
        screen.note(format_args!("no approver is trusted: {error}"));
        Vec::new()
    });
    Ok(Trust { keys, approvers })
}

fn read_keys(files: &[PathBuf]) -> Result<Vec<PublicKey>, Failure> {
    files
        .iter()
        .map(|file| {
            let pem = read_named(file, MAX_KEY_BYTES)
                .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
                .map_err(|e| Failure::bad_input(format!("{}: cannot be read: {e}", file.display())))?;
            PublicKey::from_pem(&pem).map_err(|e| Failure::bad_input(format!("{}: {e}", file.display())))
        })
        .collect()
}
