//! Checks of keys, of the trust chain, of approvers and of admissions.

use herma_core::approval::ApprovalState;
use herma_core::approver::ApproverName;
use herma_core::reference::Reference;
use herma_core::report::Admission;
use herma_core::store::RunSummary;
use herma_core::{Stage, Status};
use herma_evidence::PublicKey;
use herma_evidence::keys::{MAX_KEY_BYTES, PUBLIC_FILE};
use herma_files::read_regular;
use herma_harness::Installation;
use herma_trust::{KnownApprover, OutcomeStatus};

use super::checklist::Checklist;
use crate::records::Records;

/// The private key was read when the installation was opened; it signs, and the published key is its other half.
pub(super) fn installation_key(installation: &Installation, list: &mut Checklist<'_>) {
    let name = "installation_key";
    let probe = b"herma health";
    let key = &installation.key;
    if !key.public().verifies(probe, &key.sign(probe)) {
        return list.failed(name, "the installation's key does not verify its own signature");
    }
    let file = installation.home.keys().join(PUBLIC_FILE);
    let published = read_regular(&file, MAX_KEY_BYTES)
        .map_err(|e| e.to_string())
        .and_then(|pem| String::from_utf8(pem).map_err(|e| e.to_string()))
        .and_then(|pem| PublicKey::from_pem(&pem).map_err(|e| e.to_string()));
    match published {
        Ok(public) if public == key.public() => {
            list.passed(name, "the private key is readable, and the published key belongs to it");
        }
        Ok(_) => list.failed(name, format!("{PUBLIC_FILE} is not the public half of the private key")),
        Err(why) => list.failed(name, format!("{PUBLIC_FILE} cannot be read: {why}")),
    }
}

/// The chain holds, and every bundle and signed admission agrees with it.
pub(super) fn trust_chain(installation: &Installation, list: &mut Checklist<'_>) {
    let name = "trust_chain";
    match installation.trust_log().audit() {
        Ok((chain, 0)) if chain.head().sequence == 0 => {
            list.not_applicable(name, "there is no approver yet, and so no trust chain");
        }
        Ok((chain, count)) => {
            let length = chain.head().sequence;
            list.passed(name, format!("{length} records hold, and {count} bundles and admissions agree"));
        }
        Err(why) => list.failed(name, why.to_string()),
    }
}

/// Every approver's record holds, and nothing that counts depends on a revoked one.
pub(super) fn approvers(records: &Records<'_>, list: &mut Checklist<'_>) {
    let name = "approvers";
    let all = match records.installation.approvers().all() {
        Err(why) => return list.failed(name, why.to_string()),
        Ok(all) if all.is_empty() => {
            return list.not_applicable(name, "there is no approver yet");
        }
        Ok(all) => all,
    };
    let mut problems = Vec::new();
    for known in &all {
        if let Some(revoked) = &known.revoked {
            let depend = depends_on(records, &known.record.name);
            if !depend.is_empty() {
                problems.push(format!(
                    "`{}` was revoked at {}, and these have that signature: {}",
                    known.record.name,
                    revoked.revoked_at,
                    depend.join(", ")
                ));
            }
        } else if let Err(why) = known.trusted() {
            problems.push(why.to_string());
        } else if let Err(why) = known.key() {
            problems.push(format!("the key of `{}`: {why}", known.record.name));
        }
    }
    let trusted = |known: &&KnownApprover| known.trusted().is_ok();
    let count = all.iter().filter(trusted).count();
    if count == 0 {
        problems.push("no approver is trusted, so nothing can be approved".to_owned());
    }
    list.judged(name, &problems, format!("{count} of {} are trusted", all.len()));
}

/// Records of this approver without a later signature: admissions, unused grants, outcomes.
fn depends_on(records: &Records<'_>, name: &ApproverName) -> Vec<String> {
    let installation = records.installation;
    let admissions = installation.admissions();
    let mut found = Vec::new();
    for id in admissions.list().unwrap_or_default().into_iter().filter_map(|listed| listed.id) {
        let signed = admissions.signature(&id).ok().flatten();
        if signed.is_some_and(|signed| signed.record.approver == *name) {
            found.push(Reference::Admission(id).to_string());
        }
    }
    let now = installation.now();
    for approval in records.approvals().unwrap_or_default() {
        let by = approval.ruling.as_ref().map(|ruling| &ruling.record.approver);
        let is_open =
            approval.state_at(now) == ApprovalState::Granted && records.used_by(&approval).is_none();
        if is_open && by == Some(name) {
            found.push(Reference::Approval(approval.request.id).to_string());
        }
    }
    let landed = |run: &RunSummary| run.stage == Stage::OwnedRepo && run.status == Some(Status::Pass);
    for run in records.runs().unwrap_or_default().iter().filter(|run| landed(run)) {
        let Ok(report) = crate::reports::read_report(&installation.home.run(run.run_id).bundle()) else {
            continue;
        };
        if let Some(OutcomeStatus::Void { claims: Some(given), .. }) = records.outcome(&report)
            && given.record.operator == *name
        {
            found.push(format!("the outcome of run {}", run.run_id));
        }
    }
    found
}

/// Every signed admission that was not revoked counts now.
pub(super) fn admissions(records: &Records<'_>, list: &mut Checklist<'_>) {
    let installation = records.installation;
    let listed = match installation.admissions().list() {
        Err(why) => return list.failed("admissions", why.to_string()),
        Ok(listed) => listed,
    };
    let chain = installation.trust_log().read().ok();
    let mut any = false;
    for item in listed {
        let Some(id) = item.id else {
            list.failed(
                "admissions",
                format!("a file of kind {} has a name that no admission has", item.kind),
            );
            continue;
        };
        let is_signed = !matches!(installation.admissions().signature(&id), Ok(None));
        let chained = chain.as_ref().and_then(|chain| chain.admission(id.kind(), &id.name()));
        // A draft, or one that was revoked: nothing depends on it.
        if chained == Some(None) || (!is_signed && chained.is_none()) {
            continue;
        }
        any = true;
        let name = format!("admission:{}/{}", id.kind(), id.name());
        let found = records.admission(&id);
        if found.status == Admission::Admitted {
            list.passed_by(name, found.detail, vec![Reference::Admission(id)]);
        } else {
            list.failed(name, format!("{}: {}", found.status.as_str(), found.detail));
        }
    }
    if !any {
        list.not_applicable("admissions", "nothing is admitted");
    }
}
