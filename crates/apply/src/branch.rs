//! Makes a new branch with the patch as one commit. HEAD, index and work tree are not touched.

use herma_core::visible::visible_line;
use herma_harness::Installation;

use crate::base_check;
use crate::error::ApplyError;
use crate::journal::{Form, Journal, Record, RecordSchema, State};
use crate::subject::{Subject, not_applied_yet};
use crate::undo;
use crate::work_tree::{exclude_landings, patched};

/// A branch that was made.
#[derive(Clone, Debug)]
pub struct Branched {
    /// Its name.
    pub name: String,
    /// Its commit.
    pub commit: String,
}

/// Makes the branch with one commit, by the person whom git knows in that repository, and the run in its trailers.
pub fn make_branch(
    installation: &Installation,
    subject: &Subject,
    name: &str,
) -> Result<Branched, ApplyError> {
    let run = subject.report.run_id;
    let journal = Journal::open(&installation.home, run).map_err(ApplyError::Record)?;
    let _lock = exclude_landings(installation, subject)?;
    not_applied_yet(undo::recorded(&installation.home, run), run)?;
    let source = base_check::open(installation, &subject.directory)?;
    if !source.is_branch_name(name) {
        return Err(ApplyError::BranchName(name.to_owned()));
    }
    let user_home = &installation.settings().user_home;
    let author = installation.git().identity(&subject.directory, user_home)?;
    let author = author.ok_or_else(|| ApplyError::NoIdentity(subject.directory.clone()))?;
    let scratch = tempfile::tempdir().map_err(ApplyError::Record)?;
    let (git_dir, _, tree) = patched(subject, &source, &scratch.path().join("git"))?;
    let now = installation.now();
    let branch = source.prepare_branch(&git_dir, (name, &tree), (&author, now), &message(subject))?;
    journal.make().map_err(ApplyError::Record)?;
    let mut record = Record {
        schema: RecordSchema::V1,
        run_id: run,
        attestation: subject.attestation,
        directory: subject.directory.clone(),
        base: subject.base.clone(),
        applied_at: now,
        state: State::Applying,
        form: Form::Branch(branch.clone()),
    };
    journal.write(&record).map_err(ApplyError::Record)?;
    if let Err(refused) = source.make_branch(&git_dir, &branch) {
        // A refused branch leaves the repository as it was.
        journal.forget().map_err(ApplyError::Record)?;
        return Err(refused.into());
    }
    record.state = State::Applied;
    journal.write(&record).map_err(ApplyError::Record)?;
    Ok(Branched { name: branch.name().to_owned(), commit: branch.commit().to_owned() })
}

/// The title on one line, so that no part of it is a trailer, and the trailers.
fn message(subject: &Subject) -> String {
    let terms = &subject.contract.terms;
    let title = visible_line(&terms.title);
    let title = if title.trim().is_empty() { "the result of a run" } else { title.trim() };
    let (run, id, digest) = (subject.report.run_id, &terms.id, subject.report.contract_digest);
    format!(
        "{title}\n\nHerma-Run: {run}\nHerma-Contract: {id} {digest}\nHerma-Bundle: {}\n",
        subject.attestation
    )
}
