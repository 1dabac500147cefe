//! Brings about the conditions of a row: what is wrong around the run, and what people did before it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use herma_core::admission::{
    AdmissionDraft, AdmissionId, CredentialSource, EngineDraft, ModelDraft, NetworkClass, ReviewTrigger,
    RiskClass, TargetDraft,
};
use herma_core::approval::Answer;
use herma_core::decision::Purpose;
use herma_core::engine::EngineName;
use herma_core::proof::Proof;
use herma_core::units::Span;
use herma_core::{Contract, Digest, Stage, Status, VERSION};
use herma_destination::{INSIDE_MARKER, Tool};
use herma_harness::{ApprovalTerms, Installation, Order, ROUTER_FILE, ask_for, rule};
use herma_home::EnabledEngines;
use herma_trust::Approver;
use herma_trust::approvals::Asker;

use super::site::{Site, because};
use crate::failure_matrix::World;
use crate::people::People;
use crate::prove::prove;

/// The name of the admitted repository, as the contracts of the table have it.
const TARGET: &str = "my-repo";
/// A user who owns nothing else.
const STRANGER: u32 = 12_345;
/// The engine whose program is a script.
const STUB: &str = "stub";
/// The program of `stub`: it answers who it is. No row starts it for more.
const STUB_PROGRAM: &str = "#!/bin/sh\necho '{\"engine\":\"stub\",\"version\":\"0.1.0\"}'\n";
/// Where it is, below the home: a program in a temporary directory is not admitted.
const STUB_PLACE: &str = "home/programs/herma-stub";
/// How long an approval is valid that expires: granting it may take longer on a busy machine.
const SHORT_SECONDS: [u64; 4] = [1, 4, 8, 16];

/// A script of the upstream that never gives an answer.
const REASONING: &str = "name: reasoning\nmodels: [m]\nrepeat: true\nturns: [{ think: I wonder. }]\n";

/// An order that people approve.
pub(super) struct RunArguments<'a> {
    pub(super) contract_text: &'a str,
    pub(super) contract_dir: &'a Path,
    pub(super) script: &'a str,
}

/// Prepares the site for runs of this world. It gives the terms that the world adds to the contract.
pub(super) fn prepare(site: &mut Site, world: World) -> Result<Vec<(&'static str, String)>, String> {
    let plain = |terms: &[(&'static str, &str)]| {
        terms.iter().map(|(key, value)| (*key, (*value).to_owned())).collect::<Vec<_>>()
    };
    let on_repository = plain(&[("target", "{ repo: ../repo }"), ("stage", "3")]);
    match world {
        World::Sound => Ok(Vec::new()),
        World::Denied | World::ExpiredApproval | World::UsedApproval => {
            prove_up_to(site, Stage::DisposableRepo).map(|()| Vec::new())
        }
        World::NoOutcome => {
            prove_up_to(site, Stage::OwnedRepo)?;
            let installation = site.open()?;
            let repository = site.repository(&installation)?;
            admit_target(site, &installation, &repository)?;
            let settings = installation.home.settings();
            fs::write(settings, "outcome_within: 1ms\n").map_err(because("write the settings"))?;
            Ok(Vec::new())
        }
        World::Repository => {
            site.repository(&site.open()?)?;
            Ok([on_repository, plain(&[("destination", "host")])].concat())
        }
        World::DirtyRepository => {
            let repository = site.repository(&site.open()?)?;
            fs::write(repository.join("README.md"), "not committed\n").map_err(because("change a file"))?;
            Ok(on_repository)
        }
        World::ForeignRepository => foreign_repository(site),
        World::NoBubblewrap => without_bubblewrap(site).map(|()| Vec::new()),
        World::HomeInToolchain => {
            home_in_toolchain(site)?;
            Ok(plain(&[("toolchains", "[rust]")]))
        }
        World::InsideRun => inside_a_run(site).map(|()| Vec::new()),
        World::OtherProgram => other_program(site).map(|()| Vec::new()),
        World::OtherIdentity => other_identity(site).map(|()| Vec::new()),
        World::Model => model(site, &long_answers(), "rehearsal", None).map(|()| Vec::new()),
        World::ReasoningModel => model(site, REASONING, "rehearsal", None).map(|()| Vec::new()),
    }
}

/// Has people act on the order.
pub(super) fn act(site: &mut Site, world: World, asked: &RunArguments<'_>) -> Result<(), String> {
    match world {
        World::Denied => answer(site, asked, Answer::Denied, Span(10 * 60_000)).map(drop),
        World::UsedApproval | World::NoOutcome => {
            answer(site, asked, Answer::Granted, Span(10 * 60_000)).map(drop)
        }
        World::ExpiredApproval => expired(site, asked),
        _ => Ok(()),
    }
}

/// Asks for an approval of the order and answers.
fn answer(site: &mut Site, asked: &RunArguments<'_>, answer: Answer, valid_for: Span) -> Result<(), String> {
    let installation = site.open()?;
    let approver = site.approver(&installation)?;
    let order = Order {
        contract: Contract::parse(asked.contract_text.as_bytes()).map_err(because("read the contract"))?,
        contract_text: asked.contract_text.to_owned(),
        contract_dir: asked.contract_dir.to_owned(),
        engine: EngineName::fake(),
        destination: None,
        script: Some(asked.script.to_owned()),
        keep_workspace: false,
        egress: herma_core::egress::EgressMode::Strict,
        resumes: None,
        fault: None,
    };
    let terms = ApprovalTerms { purpose: Purpose::Work, valid_for };
    let requester = Asker::User("herma matrix".to_owned());
    let approval = ask_for(&installation, &order, "a row of the failure matrix", &requester, &terms);
    let approval = approval.map_err(because("ask for an approval"))?;
    let ruled = rule(&installation, &approval, answer, "a row of the failure matrix", &approver);
    ruled.map(drop).map_err(because("answer the request for an approval"))
}

/// Has the order granted, and waits until the approval has expired.
fn expired(site: &mut Site, asked: &RunArguments<'_>) -> Result<(), String> {
    let mut last = String::new();
    for seconds in SHORT_SECONDS {
        match answer(site, asked, Answer::Granted, Span(seconds * 1_000)) {
            Ok(()) => {
                thread::sleep(Duration::from_secs(seconds));
                return Ok(());
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// Proves the stages from 4 on that are not proven yet.
fn prove_up_to(site: &mut Site, stage: Stage) -> Result<(), String> {
    let installation = site.open()?;
    let approver = site.approver(&installation)?;
    let fake = EngineName::fake();
    let engine = installation.engines().get(&fake).ok_or("herma has no engine `fake`")?;
    for rung in [Stage::DisposableRepo, Stage::OwnedRepo].into_iter().filter(|rung| *rung <= stage) {
        if !installation.proofs().status(engine, rung).holds() {
            proven(&installation, &fake, rung, Some(&approver))?;
        }
    }
    Ok(())
}

fn proven(
    installation: &Installation,
    engine: &EngineName,
    stage: Stage,
    approver: Option<&Approver>,
) -> Result<(), String> {
    let people = People { approver, asker: None };
    let proof = prove(installation, engine, stage, &people, &|_, _, _| {});
    match proof.map_err(because("prove a stage"))? {
        Proof { status: Status::Pass, .. } => Ok(()),
        Proof { reasons, .. } => {
            Err(format!("stage {stage} of `{engine}` could not be proven: {}", reasons.join("; ")))
        }
    }
}

/// A repository of another user. Only root can make one; others are pointed to a directory of root.
fn foreign_repository(site: &mut Site) -> Result<Vec<(&'static str, String)>, String> {
    let stage = ("stage", "3".to_owned());
    if rustix::process::geteuid().is_root() {
        let repository = site.repository(&site.open()?)?;
        for path in [repository.join(".git"), repository] {
            let given = std::os::unix::fs::chown(path, Some(STRANGER), Some(STRANGER));
            given.map_err(because("give the repository to another user"))?;
        }
        return Ok(vec![("target", "{ repo: ../repo }".to_owned()), stage]);
    }
    let above = site.at("contracts").canonicalize().map_err(because("find the contract's directory"))?;
    let up = "../".repeat(above.components().count().saturating_sub(1));
    Ok(vec![("target", format!("{{ repo: {up}usr }}")), stage])
}

fn without_bubblewrap(site: &mut Site) -> Result<(), String> {
    let git = Tool::find("git", site.search_path()).map_err(because("find git"))?;
    let tools = site.at("tools");
    fs::create_dir(&tools).map_err(because("make a directory"))?;
    symlink(git.path(), tools.join("git")).map_err(because("link git"))?;
    site.set_search_path(tools.into_os_string());
    Ok(())
}

/// A `rustc` whose sysroot holds herma's home.
fn home_in_toolchain(site: &mut Site) -> Result<(), String> {
    let sysroot = site.at("sysroot");
    site.program("sysroot/bin/rustc", &format!("#!/bin/sh\nprintf %s '{}'\n", sysroot.display()))?;
    let mut path = sysroot.join("bin").into_os_string();
    path.push(":");
    path.push(site.search_path());
    site.set_search_path(path);
    site.set_home(sysroot.join("home"));
    Ok(())
}

/// Puts bubblewrap around herma, with the marker that the inside of a run has.
fn inside_a_run(site: &mut Site) -> Result<(), String> {
    let bwrap = Tool::find("bwrap", site.search_path()).map_err(because("find bubblewrap"))?;
    let mut words: Vec<OsString> = vec![bwrap.path().into(), "--tmpfs".into(), "/".into()];
    for entry in fs::read_dir("/").map_err(because("read the root directory"))? {
        let path: PathBuf = entry.map_err(because("read the root directory"))?.path();
        words.extend(["--dev-bind".into(), path.clone().into(), path.into()]);
    }
    words.extend(["--ro-bind", "/dev/null", INSIDE_MARKER, "--"].map(OsString::from));
    site.wrap(words);
    Ok(())
}

/// The program of `stub` is one byte longer than the admitted one.
fn other_program(site: &mut Site) -> Result<(), String> {
    admit_stub(site, "stub 0.1.0")?;
    site.program(STUB_PLACE, &format!("{STUB_PROGRAM}\n")).map(drop)
}

/// `stub` has proven stage 1, and is then admitted under another identity.
fn other_identity(site: &mut Site) -> Result<(), String> {
    admit_stub(site, "stub 0.1.0")?;
    let installation = site.open()?;
    let stub: EngineName = STUB.parse().map_err(because("name the engine"))?;
    proven(&installation, &stub, Stage::Gated, None)?;
    let reason = "another identity is admitted".parse().map_err(because("revoke the admission"))?;
    let revoked = installation.admissions().revoke(&AdmissionId::Engine(stub), &reason, installation.now());
    revoked.map_err(because("revoke the admission"))?;
    admit_stub(site, "stub 9.9")
}

/// Installs, admits and enables `stub`.
fn admit_stub(site: &mut Site, identity: &str) -> Result<(), String> {
    let installation = site.open()?;
    let program = site.program(STUB_PLACE, STUB_PROGRAM)?;
    let digest = Digest::of(STUB_PROGRAM.as_bytes());
    let stub: EngineName = STUB.parse().map_err(because("name the engine"))?;
    let line = |text: &str| text.parse().map(Some).map_err(because("fill the admission"));
    let path = program.to_string_lossy().parse().map_err(because("fill the admission"))?;
    let draft = AdmissionDraft::Engine(EngineDraft {
        program: Some(path),
        source: line("https://example.org/owner/stub")?,
        pin: line("0.1.0")?,
        retrieval: line("written by herma matrix")?,
        license: line("Apache-2.0")?,
        license_resolved: Some(true),
        digest: Some(digest),
        identity: line(identity)?,
        review_trigger: Some(ReviewTrigger::DigestChange),
        ..EngineDraft::new(stub.clone())
    });
    sign(site, &installation, &draft)?;
    let enabled = EnabledEngines::of(&installation.home).enable(&stub, installation.now());
    enabled.map_err(because("enable the engine"))
}

fn admit_target(site: &mut Site, installation: &Installation, repository: &Path) -> Result<(), String> {
    let line = |text: &str| text.parse().map(Some).map_err(because("fill the admission"));
    let everything = vec!["**".parse().map_err(because("fill the admission"))?];
    let draft = AdmissionDraft::Target(TargetDraft {
        path: Some(repository.to_string_lossy().parse().map_err(because("fill the admission"))?),
        owner: line("herma matrix")?,
        ownership_evidence: line("herma made it for this row")?,
        risk_class: Some(RiskClass::LowRiskNoncritical),
        rationale: line("the target of a row of the failure matrix")?,
        allowed_paths: Some(everything.try_into().map_err(because("fill the admission"))?),
        forbidden_paths: Some(Vec::new()),
        forbidden_actions: Some(Vec::new()),
        review_trigger: Some(ReviewTrigger::HermaVersion(VERSION.to_owned())),
        operator_outcome_required: Some(true),
        ..TargetDraft::new(TARGET.parse().map_err(because("name the target"))?)
    });
    sign(site, installation, &draft)
}

/// Configures a router whose upstream answers by this script, and admits its model.
pub(super) fn model(
    site: &mut Site,
    script: &str,
    upstream: &str,
    bridge: Option<&str>,
) -> Result<(), String> {
    let installation = site.open()?;
    let router = format!(
        "[upstreams.{upstream}]\nprovider = \"scripted\"\nscripts = [\"answers.yaml\"]\n\n\
         [models.m]\nchain = [\"{upstream}/m\"]\n\n\
         [prices]\n\"{upstream}/m\" = {{ input = \"1.00\", output = \"2.00\", cached_input = \"0.10\" }}\n"
    );
    for (name, text) in [(ROUTER_FILE, router.as_str()), ("answers.yaml", script)] {
        let file = installation.home.root().join(name);
        fs::write(file, text).map_err(because("configure the router"))?;
    }
    let reference = format!("{upstream}/m").parse().map_err(because("name the model"))?;
    let runtime_provider = bridge.map(str::parse).transpose().map_err(because("name the bridge"))?;
    let draft = AdmissionDraft::Model(ModelDraft {
        runtime_provider,
        credential_source: Some(CredentialSource::None),
        network: Some(NetworkClass::Loopback),
        review_trigger: Some(ReviewTrigger::HermaVersion(VERSION.to_owned())),
        ..ModelDraft::new(reference)
    });
    sign(site, &installation, &draft)
}

fn sign(site: &mut Site, installation: &Installation, draft: &AdmissionDraft) -> Result<(), String> {
    let approver = site.approver(installation)?;
    let admissions = installation.admissions();
    let signed = || {
        admissions.write_draft(draft)?;
        admissions.sign(&admissions.read(&draft.id())?, &approver, installation.now())
    };
    signed().map(drop).map_err(because("sign an admission"))
}

/// A script of the upstream whose answers are about a thousand tokens long.
fn long_answers() -> String {
    let answer = "word ".repeat(1_000);
    format!("name: long\nrepeat: true\nmodels: [m]\nturns:\n  - say: \"{answer}\"\n")
}
