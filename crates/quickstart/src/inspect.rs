//! Lists existing and missing parts before anything is done.

use herma_api::output::QuickstartFinding;
use herma_core::Stage;
use herma_core::admission::{AdmissionId, AdmissionKind};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::report::Admission;
use herma_destination::Unready;
use herma_harness::Installation;

use crate::choices::{Choices, DEFAULT_ENGINE, ProviderChoice};
use crate::error::QuickstartError;
use crate::repository::top_of;
use crate::session::Session;

/// The variables in which people keep keys.
const KEYS: [ProviderChoice; 2] = [ProviderChoice::Anthropic, ProviderChoice::OpenAi];

/// The engine: the named one, the one of `herma do`, or the one that the keys of the environment fit.
pub(crate) fn engine(choices: &Choices, installation: &Installation) -> Result<EngineName, QuickstartError> {
    if let Some(named) = choices.engine.clone().or_else(|| installation.operator.do_.engine.clone()) {
        return Ok(named);
    }
    let name = match &keys(installation)[..] {
        [ProviderChoice::OpenAi] => "codex",
        _ => DEFAULT_ENGINE,
    };
    name.parse().map_err(|why: String| QuickstartError::bad(why, "name the engine: herma quickstart ENGINE"))
}

/// The providers whose key is in the environment.
fn keys(installation: &Installation) -> Vec<ProviderChoice> {
    let secrets = &installation.settings().secrets.0;
    let is_set = |provider: &ProviderChoice| {
        let value = provider.variable().and_then(|name| secrets.variable(name));
        value.is_some_and(|value| !value.is_empty())
    };
    KEYS.into_iter().filter(is_set).collect()
}

/// Looks at everything that the steps need, and stops where the machine lacks something.
pub(crate) fn inspect(session: &Session<'_>) -> Result<Vec<QuickstartFinding>, QuickstartError> {
    let installation = &session.installation;
    let sandbox = installation
        .destination(DestinationKind::Sandbox, None)
        .and_then(|destination| destination.rehearse());
    let mut findings = vec![match &sandbox {
        Ok(ready) => found("sandbox", ready.detail.clone()),
        Err(why) => missing("sandbox", why.what.clone(), why.next_step.clone()),
    }];
    findings.push(found("git", installation.git().program().display().to_string()));
    findings.push(agent(session)?);
    findings.push(key(session)?);
    findings.push(approver(session)?);
    findings.push(admitted(session)?);
    findings.push(proven(session)?);
    findings.push(match top_of(&session.choices.directory) {
        Some(top) => found("repository", top.display().to_string()),
        None => missing("repository", "not in a git repository".to_owned(), "left out".to_owned()),
    });
    session.watch.inspected(&session.engine, &findings);
    match sandbox {
        Ok(_) => Ok(findings),
        Err(Unready { what, next_step }) => Err(QuickstartError::missing(what, next_step)),
    }
}

fn found(name: &'static str, detail: String) -> QuickstartFinding {
    QuickstartFinding { name, found: true, detail, plan: None }
}

fn missing(name: &'static str, detail: String, plan: String) -> QuickstartFinding {
    QuickstartFinding { name, found: false, detail, plan: Some(plan) }
}

fn agent(session: &Session<'_>) -> Result<QuickstartFinding, QuickstartError> {
    let engine = session.adapter()?;
    let name = &session.engine;
    if engine.built_in() {
        return Ok(found("agent", format!("{name}, built in")));
    }
    if let Some(program) = &session.choices.program {
        return Ok(found("agent", format!("{name} at {}", program.display())));
    }
    if engine.program().is_some() {
        return Ok(found("agent", format!("{name} {}", engine.version())));
    }
    match engine.source() {
        Some(source) => {
            let version = session.choices.pin.as_deref().unwrap_or(source.version);
            let plan = format!("install {} {version} from {}", source.name, source.origin.name());
            Ok(missing("agent", format!("{name} is not installed"), plan))
        }
        None => Err(QuickstartError::bad(
            format!("`{name}` is installed from no registry"),
            engine.without_source().map_or_else(
                || format!("name its program: herma quickstart {name} --program PATH"),
                str::to_owned,
            ),
        )),
    }
}

fn key(session: &Session<'_>) -> Result<QuickstartFinding, QuickstartError> {
    if session.adapter()?.asks().is_none() {
        return Ok(found("API key", "none is needed".to_owned()));
    }
    if session.choices.credential.is_some() {
        return Ok(found("API key", "from the source that you named".to_owned()));
    }
    let names: Vec<&str> = keys(&session.installation).iter().filter_map(|key| key.variable()).collect();
    if !names.is_empty() {
        return Ok(found("API key", format!("in {}", names.join(" and "))));
    }
    let config = herma_harness::router_config(session.installation.home.root())?;
    if config.is_some_and(|config| !config.upstreams.is_empty()) {
        return Ok(found("API key", "as the router's configuration names it".to_owned()));
    }
    let detail = "not in the environment".to_owned();
    Ok(missing("API key", detail, "ask for it, unless the model is on this machine".to_owned()))
}

fn approver(session: &Session<'_>) -> Result<QuickstartFinding, QuickstartError> {
    let all = session.installation.approvers().all()?;
    let trusted: Vec<&str> =
        all.iter().filter(|known| known.trusted().is_ok()).map(|known| known.record.name.as_str()).collect();
    Ok(match &trusted[..] {
        [] => missing("approver", "none".to_owned(), "create one, with a passphrase".to_owned()),
        names => found("approver", names.join(", ")),
    })
}

/// Whether the engine and a model are admitted.
fn admitted(session: &Session<'_>) -> Result<QuickstartFinding, QuickstartError> {
    let installation = &session.installation;
    let (admissions, context) = (installation.admissions(), installation.admission_context());
    let engine = session.adapter()?;
    let id = AdmissionId::Engine(session.engine.clone());
    let digest = engine.digest().ok();
    let has_engine =
        engine.built_in() || admissions.look(&id, digest, &context).status == Admission::Admitted;
    let listed = admissions.list()?;
    let has_model = engine.asks().is_none()
        || listed.iter().filter(|listed| listed.kind == AdmissionKind::Model).any(|listed| {
            listed
                .id
                .as_ref()
                .is_some_and(|id| admissions.look(id, None, &context).status == Admission::Admitted)
        });
    let lacking: Vec<&str> = [("the engine", has_engine), ("a model", has_model)]
        .into_iter()
        .filter_map(|(name, has)| (!has).then_some(name))
        .collect();
    Ok(match &lacking[..] {
        [] => found("admissions", "engine and model".to_owned()),
        names => missing(
            "admissions",
            format!("not yet of {}", names.join(" and ")),
            "one page, one code, your signature".to_owned(),
        ),
    })
}

fn proven(session: &Session<'_>) -> Result<QuickstartFinding, QuickstartError> {
    let proofs = session.installation.proofs();
    let first = proofs.first_unproven(session.adapter()?, Stage::CopiedRepo);
    Ok(match first {
        None => found("proofs", "stages 1 to 3".to_owned()),
        Some((stage, _)) => {
            missing("proofs", format!("stage {stage} is not proven"), "prove it, without a model".to_owned())
        }
    })
}
