//! The model: its provider, its credential, the upstream in the router's configuration, one small question, and the draft of its
//! admission.

mod candidate;
mod choose;
mod credential;
mod upstream;

use std::fs;
use std::io;
use std::path::PathBuf;

use herma_api::output::{QuickstartState, QuickstartStepName, RouterProbeOutput};
use herma_api::probe_configured;
use herma_core::VERSION;
use herma_core::admission::{
    AdmissionDraft, AdmissionId, CredentialSource, ModelDraft, ModelRef, NetworkClass, ReviewTrigger,
};
use herma_core::model_call::Endpoint;
use herma_core::report::Admission;
use herma_core::secret::Secret;
use herma_harness::{ROUTER_FILE, router_config};
use herma_home::write_durably;
use herma_router::config::{Config, KeySource, UpstreamConfig, UrlSource};
use herma_router::endpoint::path_of;
use herma_router::probe::Support;
use herma_trust::AdmissionFile;

use self::candidate::Candidate;
use self::credential::Found;
use crate::agent::keep;
use crate::choices::Credential;
use crate::error::QuickstartError;
use crate::session::Session;
use crate::shell::word;

const STEP: QuickstartStepName = QuickstartStepName::Model;

/// The chosen model, and the record to be signed if it is not admitted.
pub(crate) struct Chosen {
    pub(crate) model: ModelRef,
    pub(crate) record: Option<AdmissionFile>,
}

/// Chooses a model, writes the upstream, asks the model, and drafts its admission. None for an engine without a model.
pub(crate) fn model(session: &mut Session<'_>) -> Result<Option<Chosen>, QuickstartError> {
    let Some(endpoint) = session.adapter()?.asks() else {
        let detail = vec![format!("{} needs no model", session.engine)];
        session.done(STEP, QuickstartState::Skipped, detail, None);
        return Ok(None);
    };
    let config = router_config(session.installation.home.root())?;
    if let Some(model) = ready(session, config.as_ref(), endpoint)? {
        session.done(STEP, QuickstartState::Current, vec![model.to_string()], None);
        return Ok(Some(Chosen { model, record: None }));
    }
    let candidate = Candidate::make(session, config.as_ref(), endpoint)?;
    let name = choose::choose(session, &candidate)?;
    let model: ModelRef = format!("{}/{name}", candidate.upstream)
        .parse()
        .map_err(|why: String| QuickstartError::bad(why, "name the model with --model NAME"))?;
    let mut detail = vec![model.to_string()];
    if is_set_up(session, &candidate, &model) {
        session.done(STEP, QuickstartState::Current, detail, None);
        return Ok(Some(Chosen { model, record: None }));
    }
    if !session.choices.dry_run {
        session.watch.begun(STEP);
        session.watch.note("asking the model small questions");
        detail.push(probe(session, &candidate, &model, endpoint)?);
        detail.extend(install(session, &candidate)?);
    }
    let record = record(session, &candidate, &model)?;
    let state = if session.choices.dry_run { QuickstartState::Planned } else { QuickstartState::Done };
    let command = command(session, &candidate, &name);
    session.done(STEP, state, detail, Some(command));
    Ok(Some(Chosen { model, record }))
}

/// The model that is set up already, if the flags do not say otherwise: the one of `herma do`, or the only admitted one.
fn ready(
    session: &Session<'_>,
    config: Option<&Config>,
    endpoint: Endpoint,
) -> Result<Option<ModelRef>, QuickstartError> {
    let (choices, installation) = (session.choices, &session.installation);
    let Some(config) = config else { return Ok(None) };
    if choices.url.is_some() || choices.credential.is_some() {
        return Ok(None);
    }
    let admissions = installation.admissions();
    let context = installation.admission_context();
    let is_usable = |model: &ModelRef| {
        let upstream = config.upstreams.get(model.provider.as_str());
        let answers = upstream.is_some_and(|found| found.provider.endpoints().contains(&endpoint));
        let id = AdmissionId::Model(model.clone());
        let is_wanted = choices.model.as_deref().is_none_or(|name| name == model.model.as_str())
            && choices.upstream.as_deref().is_none_or(|name| name == model.provider.as_str())
            && choices.provider.is_none_or(|provider| {
                upstream.is_some_and(|found| found.provider.name() == provider.as_str())
            });
        answers && is_wanted && admissions.look(&id, None, &context).status == Admission::Admitted
    };
    let preferred = installation
        .operator
        .do_
        .model
        .clone()
        .filter(|_| installation.operator.do_.engine.as_ref() == Some(&session.engine));
    if let Some(model) = preferred.filter(|model| is_usable(model)) {
        return Ok(Some(model));
    }
    let mut usable: Vec<ModelRef> = Vec::new();
    for listed in admissions.list()? {
        if let Some(AdmissionId::Model(model)) = listed.id
            && is_usable(&model)
        {
            usable.push(model);
        }
    }
    Ok(match usable.len() {
        1 => usable.pop(),
        _ => None,
    })
}

/// Whether nothing would change: the upstream, its key and the admission are there.
fn is_set_up(session: &Session<'_>, candidate: &Candidate, model: &ModelRef) -> bool {
    let installation = &session.installation;
    let id = AdmissionId::Model(model.clone());
    let found = installation.admissions().look(&id, None, &installation.admission_context());
    let is_kept = match &candidate.credential {
        Found::Kept { secret, file } => is_kept(session, secret, file),
        Found::Later(file) => installation.home.root().join(file).is_file(),
        Found::Variable(_) | Found::File(_) | Found::Keyring { .. } | Found::None => true,
    };
    is_kept && candidate.changed_text.is_none() && found.status == Admission::Admitted
}

fn is_kept(session: &Session<'_>, secret: &Secret<String>, file: &str) -> bool {
    let path = session.installation.home.root().join(file);
    fs::read_to_string(path).is_ok_and(|known| known.trim_end() == secret.expose())
}

/// Asks the model at the engine's API, and says in one line what shape its answers have.
fn probe(
    session: &Session<'_>,
    candidate: &Candidate,
    model: &ModelRef,
    endpoint: Endpoint,
) -> Result<String, QuickstartError> {
    let secrets = &*session.installation.settings().secrets.0;
    let lookup = candidate.lookup(secrets);
    let output = probe_configured(&candidate.config, &model.to_string(), Some(endpoint), &lookup)?;
    if let Some(record) = &output.blocker {
        return Err(QuickstartError::missing(
            format!("{model} does not answer: {}", record.detail),
            candidate.advice(session),
        ));
    }
    Ok(shape(&output, endpoint))
}

fn shape(output: &RouterProbeOutput, endpoint: Endpoint) -> String {
    let Some(found) = &output.capabilities else { return "it was not asked".to_owned() };
    let word = |support: &Support| match support {
        Support::Yes => "yes".to_owned(),
        Support::No(why) => format!("no ({why})"),
        Support::NotAsked => "not asked".to_owned(),
    };
    format!(
        "answers at {}: text {}, streaming {}, tool calls {}; {} tokens used",
        path_of(endpoint),
        word(&found.content),
        word(&found.streaming),
        word(&found.tool_calls),
        found.used.input + found.used.output
    )
}

/// Writes the credential that was typed, and the router's configuration. The credential comes first: a configuration never names
/// a file that is not there.
fn install(session: &Session<'_>, candidate: &Candidate) -> Result<Vec<String>, QuickstartError> {
    let mut detail = Vec::new();
    if let Found::Kept { secret, file } = &candidate.credential {
        let path = session.installation.home.root().join(file);
        if !is_kept(session, secret, file) {
            let text = format!("{}\n", secret.expose());
            write_durably(&path, text.as_bytes()).map_err(failed(&path))?;
        }
        detail.push(format!("key kept in {}, readable by you only", path.display()));
    }
    if let Some(text) = &candidate.changed_text {
        let path = session.installation.home.root().join(ROUTER_FILE);
        write_durably(&path, text.as_bytes()).map_err(failed(&path))?;
        detail.push(format!("wrote {}", path.display()));
    }
    Ok(detail)
}

fn failed(path: &std::path::Path) -> impl FnOnce(io::Error) -> QuickstartError {
    let path: PathBuf = path.to_owned();
    move |source| QuickstartError::Io { path, doing: "written", source }
}

/// The record to be signed; none where the model is admitted. A draft that a person wrote is taken as it is.
fn record(
    session: &Session<'_>,
    candidate: &Candidate,
    model: &ModelRef,
) -> Result<Option<AdmissionFile>, QuickstartError> {
    let id = AdmissionId::Model(model.clone());
    let admissions = session.installation.admissions();
    let found = admissions.look(&id, None, &session.installation.admission_context());
    if found.status == Admission::Admitted {
        return Ok(None);
    }
    if admissions.signature(&id)?.is_some() {
        let next = format!("look at it, then: herma admissions revoke model {model} --reason 'set up again'");
        return Err(QuickstartError::missing(found.detail, next));
    }
    if let Ok(read) = admissions.read(&id)
        && read.draft.lacks().is_none()
    {
        return Ok(Some(read));
    }
    let upstream = candidate.upstream_config();
    let mut draft = ModelDraft::new(model.clone());
    draft.credential_source = Some(match &candidate.credential {
        // The candidate reads it from memory; every run reads it from the file.
        Found::Kept { .. } | Found::Later(_) => CredentialSource::File,
        _ => upstream.map_or(CredentialSource::None, credential_source),
    });
    // An upstream whose name is not its provider's serves the model for another.
    let provider = upstream.map(|found| found.provider.name());
    let provider = provider.filter(|name| *name != candidate.upstream).map(str::parse).transpose();
    draft.runtime_provider = provider
        .map_err(|why: String| QuickstartError::bad(why, "choose another name with --upstream NAME"))?;
    draft.network = Some(upstream.map_or(NetworkClass::Public, network));
    draft.review_trigger = Some(ReviewTrigger::HermaVersion(release()));
    keep(session, &id, AdmissionDraft::Model(draft)).map(Some)
}

/// The first two numbers of herma's version: a model is looked at again with the next one.
fn release() -> String {
    VERSION.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn credential_source(upstream: &UpstreamConfig) -> CredentialSource {
    match upstream.provider.http().and_then(|http| http.key.as_ref()) {
        None => CredentialSource::None,
        Some(KeySource::Environment(_)) => CredentialSource::Environment,
        Some(KeySource::File(_)) => CredentialSource::File,
        Some(KeySource::Keyring { .. }) => CredentialSource::Keychain,
    }
}

/// By the host of the address; the provider's own address is public.
fn network(upstream: &UpstreamConfig) -> NetworkClass {
    match &upstream.provider {
        herma_router::config::ProviderConfig::Scripted { .. } => NetworkClass::Loopback,
        provider => match provider.http().and_then(|http| http.url.as_ref()) {
            Some(UrlSource::Literal(url)) => upstream::network_of(url.expose()),
            Some(_) | None => NetworkClass::Public,
        },
    }
}

/// The same command with every choice as a flag.
fn command(session: &Session<'_>, candidate: &Candidate, model: &str) -> String {
    let choices = session.choices;
    let mut text = format!("herma quickstart {}", session.engine);
    let mut put = |flag: &str, value: &str| {
        text.extend([" --", flag, " ", &*word(value)]);
    };
    if let Some(provider) = choices.provider.or(candidate.provider) {
        put("provider", provider.as_str());
    }
    if let Some(upstream) = &choices.upstream {
        put("upstream", upstream);
    }
    if let Some(url) = &choices.url {
        put("url", url);
    }
    match &choices.credential {
        Some(Credential::Variable(name)) => put("key-env", name),
        Some(Credential::File(file)) => put("key-file", &file.to_string_lossy()),
        Some(Credential::Command(command)) => put("key-command", command),
        Some(Credential::Keyring { service, user }) => put("key-keyring", &format!("{service}:{user}")),
        Some(Credential::Typed | Credential::None) | None => {}
    }
    put("model", model);
    match choices.credential {
        Some(Credential::Typed) => text.push_str(" --ask-key"),
        Some(Credential::None) => text.push_str(" --no-key"),
        _ => {}
    }
    text
}
