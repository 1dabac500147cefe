//! The site of a proof: repositories, admissions and approvals that are made for one case and removed after it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::admission::{AdmissionDraft, AdmissionId, ReviewTrigger, RiskClass, TargetDraft, TargetName};
use herma_core::approval::Answer;
use herma_core::contract::{Contract, Limits, ModelChoice, Target, Terms};
use herma_core::decision::Purpose;
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::units::Span;
use herma_core::{RunId, Stage, VERSION};
use herma_git::{GitDir, ObjectFormat, make_disposable};
use herma_harness::{ApprovalTerms, Installation, Order, ROUTER_FILE, ask_for, rule};
use herma_home::remove_tree;
use herma_router::probe::PROMPTS;
use herma_trust::approvals::Asker;
use herma_trust::{ApprovalError, import_fixture};
use rustix::fs::{FlockOperation, flock};

use crate::cases::{Case, World};
use crate::error::ProveError;
use crate::people::People;

/// The fixture that every proof works on.
pub(crate) const FIXTURE: &str = "string-slugify";

/// The directory of sites, below the home.
const PROVING: &str = "proving";
/// The limits of a case in which a real agent works, where it is not about them.
const PATIENT: Limits = Limits {
    total: Span(10 * 60_000),
    startup: Span(2 * 60_000),
    idle: Span(3 * 60_000),
    memory: None,
    tokens: None,
    usd: None,
};
/// The prefix of the names of a site's admissions.
const ADMITTED_AS: &str = "proving-";

/// The provider and the model of a proof: a script.
const REHEARSAL: &str = "rehearsal";
const SCRIPT_FILE: &str = "model.yaml";

/// How long the approval of a case is valid: the case runs at once, and an unused approval expires soon.
const PROVING_TERMS: ApprovalTerms =
    ApprovalTerms { purpose: Purpose::Proof, valid_for: Span(10 * 60 * 1000) };

/// The site of one case.
pub(crate) struct ProofSite<'a> {
    installation: &'a Installation,
    /// Whether the engine under proof asks a model. Then a script answers, in the place of anybody's model.
    asks: bool,
    dir: PathBuf,
    admission: Option<AdmissionId>,
}

impl<'a> ProofSite<'a> {
    /// Makes the site of one case: a repository where the stage needs one, admitted where it must be.
    pub(crate) fn make(
        installation: &'a Installation,
        stage: Stage,
        world: World,
        people: &People<'_>,
        asks: bool,
    ) -> Result<Self, ProveError> {
        let mut entropy = [0; 10];
        getrandom::fill(&mut entropy).map_err(|e| ProveError::new("name the site", e))?;
        let name = RunId::new(installation.now(), entropy);
        let dir = installation.home.root().join(PROVING).join(name.to_string());
        fs::create_dir_all(&dir).map_err(|e| ProveError::new("make the site", e))?;
        let mut site = Self { installation, asks, dir, admission: None };
        if matches!(stage, Stage::CopiedRepo | Stage::OwnedRepo) {
            site.make_repository()?;
        }
        if stage == Stage::OwnedRepo {
            site.admit(&format!("{ADMITTED_AS}{name}"), world, people)?;
        }
        match world {
            World::DirtyBefore => fs::write(site.repository().join("README.md"), "not committed\n"),
            World::Unowned => give_away(&site.repository()),
            _ => Ok(()),
        }
        .map_err(|e| ProveError::new("prepare the site", e))?;
        Ok(site)
    }

    /// The repository of the site.
    pub(crate) fn repository(&self) -> PathBuf {
        self.dir.join("repository")
    }

    /// The order of a case, with the approval that its stage needs asked for and ruled on.
    pub(crate) fn order(
        &self,
        case: &Case,
        stage: Stage,
        engine: &EngineName,
        people: &People<'_>,
    ) -> Result<Order, ProveError> {
        let fixture = herma_fixtures::find(FIXTURE).ok_or(ProveError::NoFixture)?;
        let Contract { terms, brief } = Contract::parse(fixture.contract.as_bytes())
            .map_err(|e| ProveError::new("read the contract", e))?;
        let mut terms = Terms { stage, target: self.target(stage, terms.target), ..terms };
        terms.destination = Some(DestinationKind::Sandbox);
        // A name of its own, so that its approvals are never taken for those of anybody's work.
        terms.id = case.contract_id(stage)?;
        if self.asks {
            terms.model = Some(self.rehearse(fixture, case.script)?);
            // A real agent takes its time to start, and more of it where others use the machine.
            terms.limits = PATIENT;
        }
        (case.change)(&mut terms);
        let text =
            serde_json::to_string_pretty(&terms).map_err(|e| ProveError::new("write the contract", e))?;
        let text = format!("---\n{text}\n---\n{brief}");
        let order = Order {
            contract: Contract::parse(text.as_bytes())
                .map_err(|e| ProveError::new("read the contract", e))?,
            contract_text: text,
            contract_dir: self.dir.clone(),
            engine: engine.clone(),
            destination: None,
            script: fixture.script(case.script).map(str::to_owned),
            keep_workspace: false,
            egress: herma_core::egress::EgressMode::Strict,
            resumes: None,
            fault: (case.fault)(),
        };
        if stage.needs_approval() {
            self.approve(&order, case, people)?;
        }
        Ok(order)
    }

    /// Puts a router's configuration into the site, by which the fixture's script answers.
    fn rehearse(&self, fixture: &herma_fixtures::Fixture, script: &str) -> Result<ModelChoice, ProveError> {
        let failed = |e: io::Error| ProveError::new("rehearse the model", e);
        let script = fixture.model(script).ok_or_else(|| {
            ProveError::new("rehearse the model", format!("herma has no model script `{script}` for this case; this is a bug in herma, please report it"))
        })?;
        let mut files = vec![(SCRIPT_FILE.to_owned(), script.to_owned())];
        // herma's own requests before the engine starts are not for the case's script, which may never answer. They are
        // matched by their prompts, because not every agent has the brief in its prompt.
        for (number, prompt) in PROMPTS.into_iter().enumerate() {
            let text = format!(
                "name: present-{number}\nmodels: [{REHEARSAL}]\nmatch: {{ marker: {prompt:?} }}\nrepeat: true\n\
                 turns: [say: I am there.]\n"
            );
            files.insert(0, (format!("present-{number}.yaml"), text));
        }
        let names: Vec<String> = files.iter().map(|(name, _)| format!("{name:?}")).collect();
        let router =
            format!("[upstreams.{REHEARSAL}]\nprovider = \"scripted\"\nscripts = [{}]\n", names.join(", "));
        files.push((ROUTER_FILE.to_owned(), router));
        for (name, text) in files {
            fs::write(self.dir.join(name), text).map_err(failed)?;
        }
        Ok(ModelChoice {
            provider: REHEARSAL.to_owned(),
            model: REHEARSAL.to_owned(),
            fallback: Vec::new(),
            auxiliary: Vec::new(),
        })
    }

    fn approve(&self, order: &Order, case: &Case, people: &People<'_>) -> Result<(), ProveError> {
        let approver = people.approver.ok_or(ProveError::NoApprover)?;
        let asker = match people.asker {
            Some(asker) => Asker::Approver(asker),
            None => Asker::User("herma prove".to_owned()),
        };
        let reason = format!("proof of stage {}: {}", order.contract.terms.stage, case.class());
        let approval = match ask_for(self.installation, order, &reason, &asker, &PROVING_TERMS) {
            Ok(approval) => approval,
            // A gate does not hold, so that nothing can be approved. The run is blocked by that gate, and its report names it.
            Err(ApprovalError::NotReady(_)) => return Ok(()),
            Err(error) => return Err(ProveError::Ask(error)),
        };
        let answer = if case.world == World::Denied { Answer::Denied } else { Answer::Granted };
        rule(self.installation, &approval, answer, &reason, approver).map_err(ProveError::Ask)?;
        Ok(())
    }

    fn target(&self, stage: Stage, fixture: Target) -> Target {
        let named = |repo: &str| repo.parse().map(|repo| Target::Repo { repo, base: None });
        match (stage, &self.admission) {
            (Stage::CopiedRepo, _) => named("./repository").unwrap_or(fixture),
            (Stage::OwnedRepo, Some(id)) => named(&id.name()).unwrap_or(fixture),
            _ => fixture,
        }
    }

    fn make_repository(&self) -> Result<(), ProveError> {
        let fixture = herma_fixtures::find(FIXTURE).ok_or(ProveError::NoFixture)?;
        let git = self.installation.git();
        let scratch = self.dir.join("git");
        let make = || {
            let git_dir = GitDir::create(git, &scratch, ObjectFormat::Sha1, None)?;
            let baseline = import_fixture(&git_dir, fixture)?;
            make_disposable(git, &self.repository(), &git_dir, &baseline)
        };
        make().map_err(|e| ProveError::new("make a repository", e))?;
        remove_tree(&scratch).map_err(|e| ProveError::new("make a repository", e))
    }

    /// Admits the repository by the approver's signature, for as long as the proof takes.
    fn admit(&mut self, name: &str, world: World, people: &People<'_>) -> Result<(), ProveError> {
        let approver = people.approver.ok_or(ProveError::NoApprover)?;
        let now = self.installation.now();
        let bad = |e: String| ProveError::new("admit the site", e);
        let line = |text: &str| text.parse().map(Some).map_err(bad);
        let mut path = self.repository();
        if world == World::Unowned && !rustix::process::geteuid().is_root() {
            // Only root can change the owner of a repository; this one has another owner from the start.
            path = PathBuf::from("/usr");
        }
        let name: TargetName = name.parse().map_err(bad)?;
        let draft = AdmissionDraft::Target(TargetDraft {
            path: path.to_string_lossy().parse().map(Some).map_err(bad)?,
            owner: line("herma prove")?,
            ownership_evidence: line("herma made it for this proof")?,
            risk_class: Some(RiskClass::LowRiskNoncritical),
            rationale: line("the ground of a proof; it is removed after it")?,
            allowed_paths: Some(
                vec!["**".parse().map_err(bad)?].try_into().map_err(|e: &str| bad(e.to_owned()))?,
            ),
            forbidden_paths: Some(Vec::new()),
            forbidden_actions: Some(Vec::new()),
            review_trigger: Some(ReviewTrigger::HermaVersion(VERSION.to_owned())),
            operator_outcome_required: Some(true),
            ..TargetDraft::new(name)
        });
        let id = draft.id();
        let admissions = self.installation.admissions();
        let sign = || {
            admissions.write_draft(&draft)?;
            admissions.sign(&admissions.read(&id)?, approver, now)
        };
        sign().map_err(|e| ProveError::new("admit the site", e))?;
        self.admission = Some(id);
        Ok(())
    }
}

/// Waits until no other proof runs, and removes the files that a killed one left.
pub(crate) fn lock_and_sweep(installation: &Installation) -> Result<fs::File, ProveError> {
    let failed = |e: io::Error| ProveError::new("clear the sites", e);
    let all = installation.home.root().join(PROVING);
    fs::create_dir_all(&all).map_err(failed)?;
    let lock = fs::File::open(&all).map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
    for entry in fs::read_dir(&all).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = format!("{ADMITTED_AS}{}", entry.file_name().to_string_lossy()).parse() {
            let _ = installation.admissions().forget(&AdmissionId::Target(name), installation.now());
        }
        remove_tree(&entry.path()).map_err(failed)?;
    }
    Ok(lock)
}

impl Drop for ProofSite<'_> {
    fn drop(&mut self) {
        // A leftover site admits nothing: without its directory its admission is void.
        if let Some(id) = &self.admission {
            let _ = self.installation.admissions().forget(id, self.installation.now());
        }
        let _ = remove_tree(&self.dir);
    }
}

/// Gives the repository to another user, where that is possible.
fn give_away(repository: &Path) -> io::Result<()> {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for path in [repository.to_owned(), repository.join(".git")] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}
