//! Whether something is admitted, and if not, why.

use std::fs;

use herma_core::admission::{
    AdmissionDraft, AdmissionId, AdmissionKind, EngineAdmission, Incomplete, ModelAdmission, ModelRef,
    Review, ReviewFacts, TargetAdmission,
};
use herma_core::contract::ModelChoice;
use herma_core::engine::EngineName;
use herma_core::report::Admission;
use herma_core::{Blocker, Digest, Timestamp};
use herma_evidence::signed;

use super::{AdmissionContext, AdmissionError, AdmissionFile, Admissions, files};

/// Whether something is admitted, and why.
#[derive(Clone, Debug)]
pub struct AdmissionFinding<T> {
    /// The status.
    pub status: Admission,
    /// The blocker that this is; none where it is admitted.
    pub blocker: Option<Blocker>,
    /// The digest of the record's file, where there is one that can be read.
    pub digest: Option<Digest>,
    /// Why, for people. It never holds a target's path.
    pub detail: String,
    /// The record; only where it is admitted.
    pub record: Option<T>,
}

/// Why something is not admitted.
struct Not {
    status: Admission,
    blocker: Option<Blocker>,
    why: String,
}

impl Not {
    fn new(status: Admission, why: impl Into<String>) -> Self {
        Self { status, blocker: None, why: why.into() }
    }
}

impl Admissions {
    /// Whether this engine with this digest is admitted. The caller checks the stage: the record says
    /// whether its license is resolved.
    #[must_use]
    pub fn find_engine(
        &self,
        name: &EngineName,
        digest: Option<Digest>,
        context: &AdmissionContext<'_>,
    ) -> AdmissionFinding<EngineAdmission> {
        let record = |draft: AdmissionDraft| match draft {
            AdmissionDraft::Engine(draft) => draft.complete().ok(),
            _ => None,
        };
        self.look(&AdmissionId::Engine(name.clone()), digest, context).with(record)
    }

    /// Whether the model of a contract is admitted, and every other that the contract lets it use.
    #[must_use]
    pub fn find_model(
        &self,
        choice: &ModelChoice,
        context: &AdmissionContext<'_>,
    ) -> AdmissionFinding<ModelAdmission> {
        let record = |draft: AdmissionDraft| match draft {
            AdmissionDraft::Model(draft) => draft.complete().ok(),
            _ => None,
        };
        let find = |(provider, model): (&str, &str)| {
            let name = format!("{provider}/{model}");
            match name.parse::<ModelRef>() {
                Ok(model) => self.look(&AdmissionId::Model(model), None, context).with(record),
                Err(why) => AdmissionFinding::nothing(
                    AdmissionKind::Model,
                    format!("`{name}` has no admission: {why}"),
                ),
            }
        };
        let main = find((&choice.provider, &choice.model));
        if main.record.is_none() {
            return main;
        }
        let others = choice.fallback.iter().chain(&choice.auxiliary);
        others.map(|model| find(choice.named(model))).find(|found| found.record.is_none()).unwrap_or(main)
    }

    /// Whether the target of this name is admitted.
    #[must_use]
    pub fn find_target(
        &self,
        name: &str,
        context: &AdmissionContext<'_>,
    ) -> AdmissionFinding<TargetAdmission> {
        let record = |draft: AdmissionDraft| match draft {
            AdmissionDraft::Target(draft) => draft.complete().ok(),
            _ => None,
        };
        match name.parse() {
            Ok(name) => self.look(&AdmissionId::Target(name), None, context).with(record),
            Err(why) => {
                AdmissionFinding::nothing(AdmissionKind::Target, format!("there is no such admission: {why}"))
            }
        }
    }

    /// Whether something is admitted. The digest is that of an engine as it is now.
    #[must_use]
    pub fn look(
        &self,
        id: &AdmissionId,
        digest: Option<Digest>,
        context: &AdmissionContext<'_>,
    ) -> AdmissionFinding<AdmissionDraft> {
        let mut file_digest = None;
        match self.judge(id, digest, context, &mut file_digest) {
            Ok(draft) => AdmissionFinding {
                status: Admission::Admitted,
                blocker: None,
                digest: file_digest,
                detail: format!("{id} is admitted"),
                record: Some(draft),
            },
            Err(Not { status, blocker, why }) => AdmissionFinding {
                status,
                blocker: Some(blocker.unwrap_or_else(|| usual_blocker(id.kind(), status))),
                digest: file_digest,
                detail: match status {
                    Admission::MissingAdmission => format!("{id} has not been admitted"),
                    _ => format!("the admission of {id} is not valid: {why}"),
                },
                record: None,
            },
        }
    }

    fn judge(
        &self,
        id: &AdmissionId,
        digest: Option<Digest>,
        context: &AdmissionContext<'_>,
        file_digest: &mut Option<Digest>,
    ) -> Result<AdmissionDraft, Not> {
        let invalid = |why: String| Not::new(Admission::InvalidAdmission, why);
        // Errors name files and may quote them, and so could show a target's path.
        let unreadable = |what: &str| {
            let (kind, name) = (id.kind(), id.name());
            invalid(format!("{what} cannot be read; `herma admissions check {kind} {name}` says why"))
        };
        let bytes = files::read_regular(&self.files.record(id))
            .map_err(|_| unreadable("its file"))?
            .ok_or_else(|| Not::new(Admission::MissingAdmission, "there is none"))?;
        *file_digest = Some(Digest::of(&bytes));
        let read = AdmissionFile::parse(bytes).map_err(|_| unreadable("its file"))?;
        if read.id != *id {
            return Err(Not::new(Admission::Mismatch, "its file is about something else"));
        }
        let (review, signed_at) = match (review_of(&read.draft), self.signed_at(&read, context, &unreadable))
        {
            (Ok(review), Ok(signed_at)) => (review, signed_at),
            // A file that was changed is not a draft.
            (_, Err(not)) if not.status == Admission::InvalidAdmission => return Err(not),
            (Err(not), _) | (_, Err(not)) => return Err(not),
        };
        is_what_was_admitted(&read.draft, digest, context)?;
        let facts = ReviewFacts {
            now: context.now,
            herma_version: context.herma_version,
            runs: &|| (context.runs_since)(id, signed_at),
        };
        match review.due(&facts) {
            Some(why) => Err(Not::new(Admission::Expired, why)),
            None => Ok(read.draft),
        }
    }

    /// When a person who may do so signed exactly this file and did not take it back.
    fn signed_at(
        &self,
        read: &AdmissionFile,
        context: &AdmissionContext<'_>,
        unreadable: &dyn Fn(&str) -> Not,
    ) -> Result<Timestamp, Not> {
        let invalid = |why: String| Not::new(Admission::InvalidAdmission, why);
        let id = &read.id;
        let revoked = self.files.revocation(id).map_err(|_| unreadable("its revocation"))?;
        let signed = self.files.signature(id).map_err(|_: AdmissionError| unreadable("its signature"))?;
        let not_admitted = |why: String| Not::new(Admission::NotAdmitted, why);
        let taken_back = revoked
            .as_ref()
            .filter(|revoked| signed.as_ref().is_none_or(|s| s.record.signed_at <= revoked.revoked_at));
        if let Some(revoked) = taken_back {
            // Not the reason: a person wrote it and may have named the path.
            return Err(not_admitted(format!("it was revoked on {}", revoked.revoked_at)));
        }
        let Some(signed) = signed else {
            return Err(not_admitted("it is a draft that no approver has signed".to_owned()));
        };
        let record = &signed.record;
        if record.kind != id.kind() || record.name != id.name() {
            return Err(invalid("its signature is for something else".to_owned()));
        }
        if record.digest != read.digest() {
            return Err(invalid("its file was changed after it was signed".to_owned()));
        }
        context.approvers.check(&signed, &record.approver).map_err(|e| invalid(e.to_string()))?;
        if record.signed_at > context.now {
            return Err(invalid(format!("it was signed at {}, which is still to come", record.signed_at)));
        }
        let chain = context.approvers.chain_of(record.trust_head).map_err(|e| invalid(e.to_string()))?;
        match chain.admission(id.kind(), &id.name()) {
            Some(Some(current)) if signed::digest(record).is_ok_and(|digest| digest == current) => {
                Ok(record.signed_at)
            }
            Some(None) => Err(not_admitted("it was revoked, as the trust chain says".to_owned())),
            Some(Some(_)) => Err(invalid("a later signature replaced this one".to_owned())),
            None => Err(invalid("the trust chain does not name its signature".to_owned())),
        }
    }
}

/// When the record has to be looked at again; a draft that is not complete admits nothing.
fn review_of(draft: &AdmissionDraft) -> Result<Review, Not> {
    let incomplete = |lacks: Incomplete| {
        let is = |field| lacks.missing.contains(&field);
        let blocker = match draft {
            AdmissionDraft::Target(_)
                if lacks.refused.iter().any(|refusal| refusal.field == "risk_class") =>
            {
                Some(Blocker::CriticalRepository)
            }
            AdmissionDraft::Target(_) if is("owner") || is("ownership_evidence") => {
                Some(Blocker::UnownedRepository)
            }
            _ => None,
        };
        Not { status: Admission::NotAdmitted, blocker, why: format!("it is a draft; {lacks}") }
    };
    match draft {
        AdmissionDraft::Engine(draft) => draft.complete().map(|record| record.review).map_err(incomplete),
        AdmissionDraft::Model(draft) => draft.complete().map(|record| record.review).map_err(incomplete),
        AdmissionDraft::Target(draft) => draft.complete().map(|record| record.review).map_err(incomplete),
    }
}

/// For an engine: the program is the admitted one, and is not in a temporary directory.
fn is_what_was_admitted(
    draft: &AdmissionDraft,
    digest: Option<Digest>,
    context: &AdmissionContext<'_>,
) -> Result<(), Not> {
    let AdmissionDraft::Engine(draft) = draft else { return Ok(()) };
    let program = draft.program.as_deref();
    let really = program.and_then(|program| fs::canonicalize(program).ok());
    let lasts = |path: &std::path::Path| {
        path.starts_with(&context.home) || !context.temp_dirs.iter().any(|dir| path.starts_with(dir))
    };
    if !program.is_some_and(lasts) || really.is_some_and(|path| !lasts(&path)) {
        return Err(Not::new(
            Admission::NotAdmitted,
            "its program is in a temporary directory: that is discovery, not admission",
        ));
    }
    match (digest, draft.digest) {
        (Some(now), Some(admitted)) if now == admitted => Ok(()),
        (Some(now), Some(admitted)) => Err(Not::new(
            Admission::Mismatch,
            format!("the program has the digest {now}, admitted is {admitted}; review is due"),
        )),
        _ => Err(Not::new(Admission::Mismatch, "the digest of the program could not be taken")),
    }
}

/// The blocker of a kind and a status, where no other is set.
fn usual_blocker(kind: AdmissionKind, status: Admission) -> Blocker {
    match (kind, status) {
        (AdmissionKind::Engine, Admission::Mismatch) => Blocker::EngineDigestMismatch,
        (AdmissionKind::Engine, _) => Blocker::EngineNotAdmitted,
        (AdmissionKind::Model, _) => Blocker::ModelNotAdmitted,
        (AdmissionKind::Target, _) => Blocker::TargetNotAdmitted,
    }
}

impl<T> AdmissionFinding<T> {
    fn nothing(kind: AdmissionKind, detail: String) -> Self {
        let status = Admission::MissingAdmission;
        Self { status, blocker: Some(usual_blocker(kind, status)), digest: None, detail, record: None }
    }

    fn with<U>(self, record: impl FnOnce(T) -> Option<U>) -> AdmissionFinding<U> {
        AdmissionFinding {
            status: self.status,
            blocker: self.blocker,
            digest: self.digest,
            detail: self.detail,
            record: self.record.and_then(record),
        }
    }
}
