//! Checks a bundle offline: needs no database, no network, and memory that does not grow with the bundle.

mod agreement;
mod check;
mod children;
mod confinement;
mod content;
mod egress;
mod environment;
mod events;
mod fields;
mod identity;
mod listing;
mod model_calls;
mod outcome;
mod pass;
mod recorded;
mod rendered;
mod seal;
mod steps;
mod test_log;
mod transcript;

use std::path::Path;

use herma_core::approver::ApproverName;
use herma_core::report::{ChangedFile, PathViolation};
use herma_core::{Contract, Report};

pub use check::{Check, CheckList, CheckName, CheckOutcome, Doubt};
pub use confinement::{ConfinementJudge, Probed};
pub use fields::{FIELDS, FieldCheck, Reach};
pub use identity::ExpectedRun;
pub use model_calls::refusal;

use self::check::Good;
use self::pass::BundleContents;
use crate::attest::Attestation;
use crate::keys::PublicKey;
use crate::layout;

/// Why the tree is not checked where no witness was given.
const NOT_AT_HAND: &str = "the target is not at hand";

/// The keys whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The keys. A bundle that none of them signed fails.
    pub keys: Vec<PublicKey>,
    /// The people who may sign an outcome. An outcome that none of them signed in their own name fails.
    pub approvers: Vec<TrustedApprover>,
}

/// A person who may sign an outcome.
#[derive(Clone, Debug)]
pub struct TrustedApprover {
    /// The name; `None` if only the key is known, which may then sign in any name.
    pub name: Option<ApproverName>,
    /// The key.
    pub key: PublicKey,
}

/// Judges changed paths by the contract's rules.
pub trait PathJudge {
    /// Every rule that these changes break, as far as the changes alone show it, or why that cannot be said.
    fn judge(&self, contract: &Contract, changed: &[ChangedFile]) -> Result<Vec<PathViolation>, String>;
}

impl<F: Fn(&Contract, &[ChangedFile]) -> Result<Vec<PathViolation>, String>> PathJudge for F {
    fn judge(&self, contract: &Contract, changed: &[ChangedFile]) -> Result<Vec<PathViolation>, String> {
        self(contract, changed)
    }
}

/// Has the target at hand, so that the patch can be tried on it.
pub trait TreeWitness {
    /// The name of the tree that the patch gives on the report's baseline, or why that cannot be said. Without a
    /// patch it is the baseline's own tree.
    fn result_tree(
        &self,
        contract: &Contract,
        report: &Report,
        patch: Option<&Path>,
    ) -> Result<String, Doubt>;
}

/// The inputs of a verification besides the bundle.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The keys whose signatures count.
    pub trust: &'a Trust,
    /// The rules for changed paths.
    pub paths: &'a dyn PathJudge,
    /// The parser of the probes' record.
    pub confinement: &'a dyn ConfinementJudge,
    /// The target, where it is at hand.
    pub tree: Option<&'a dyn TreeWitness>,
    /// The run whose bundle it has to be, where one was named.
    pub expected: Option<&'a ExpectedRun>,
}

/// Checks the bundle in `dir`. Its author may be malicious: no link is followed, nothing blocks, and files without
/// a trusted signature are read up to a limit.
#[must_use]
pub fn verify(dir: &Path, context: &Context<'_>) -> CheckList {
    judged(dir, &pass::look(dir, context.trust, None), context)
}

/// The same checks of a bundle whose attestation is signed and not written yet.
#[must_use]
pub fn verify_signed(dir: &Path, attestation: &Attestation, context: &Context<'_>) -> CheckList {
    judged(dir, &pass::look(dir, context.trust, Some(attestation)), context)
}

fn judged(dir: &Path, seen: &BundleContents, context: &Context<'_>) -> CheckList {
    let Context { trust, paths, confinement, tree, expected } = *context;
    let mut list = CheckList::default();
    if let Some(why) = seal::unfinished(seen) {
        list.add(CheckName::Files, Err(Doubt::Unchecked(why)));
        return list;
    }
    list.add(CheckName::Files, seal::files(seen));
    list.add(CheckName::Envelope, seal::envelope(seen));
    list.add(CheckName::Signature, seal::signature(seen, trust));
    list.add(CheckName::Subjects, seal::subjects(seen));
    list.add(CheckName::Identity, identity::identity(seen, expected));
    list.add(CheckName::ReportSchema, seen.report().map(|r| Good::Passed(format!("run {}", r.run_id))));
    list.add(CheckName::ReportText, rendered::rendered(seen));
    list.add(CheckName::Artifacts, content::artifacts(seen));
    list.add(CheckName::Chain, events::chain(seen));
    list.add(CheckName::Order, events::order(seen));
    list.add(CheckName::Freshness, events::freshness(seen));
    list.add(CheckName::Contract, content::contract(seen));
    list.add(CheckName::Decision, content::decision(seen));
    list.add(CheckName::Confinement, confinement::confinement(seen, confinement));
    list.add(CheckName::Steps, steps::steps(seen));
    list.add(CheckName::Patch, content::patch(seen));
    list.add(CheckName::Paths, content::paths(seen, paths));
    list.add(CheckName::Agreement, agreement::agreement(seen));
    list.add(CheckName::Secrets, content::secrets(seen));
    let tree = if list.ok() { witnessed_tree(dir, seen, tree) } else { unwitnessed(tree) };
    list.add(CheckName::Tree, tree);
    list.add(CheckName::Outcome, outcome::outcome(seen, trust));
    list
}

/// An invalid bundle is not handed to git, which would have to be trusted with its content.
fn unwitnessed(witness: Option<&dyn TreeWitness>) -> Result<Good, Doubt> {
    match witness {
        None => Ok(Good::NotApplicable(NOT_AT_HAND.to_owned())),
        Some(_) => Err(Doubt::Unchecked("not tried, because another check failed".to_owned())),
    }
}

fn witnessed_tree(
    dir: &Path,
    seen: &BundleContents,
    witness: Option<&dyn TreeWitness>,
) -> Result<Good, Doubt> {
    let report = seen.report()?;
    let Some(witness) = witness else {
        return Ok(Good::NotApplicable(NOT_AT_HAND.to_owned()));
    };
    let Some(recorded) = &report.result_tree else {
        return Ok(Good::NotApplicable("the run recorded no tree".to_owned()));
    };
    let patch = seen.files.contains_key(layout::PATCH).then(|| dir.join(layout::PATCH));
    if patch.is_none() && !report.changed_files.is_empty() {
        let why = report.not_applicable.get(layout::PATCH);
        return Ok(Good::NotApplicable(
            why.map_or_else(|| "the patch is not there".to_owned(), Clone::clone),
        ));
    }
    let found = witness.result_tree(seen.contract()?, report, patch.as_deref())?;
    if found == *recorded {
        Ok(Good::Passed(format!("the patch on the baseline gives {found}")))
    } else {
        Err(Doubt::Broken(format!("the patch on the baseline gives {found}, the report says {recorded}")))
    }
}
