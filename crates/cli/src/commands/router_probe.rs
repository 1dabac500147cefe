//! `herma router probe`: asks a model what it can do, through a router that lives no longer than the question.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use herma_harness::SystemClock;
use herma_router::budget::{InMemory, Limits};
use herma_router::config::{Address, Config, Lookup, UpstreamConfig};
use herma_router::door::Door;
use herma_router::grant::{AdmittedModel, Grant, Link};
use herma_router::probe::{CONVERSING, Capabilities, ProbeBudget, ProbeFailed, Support, probe};
use herma_router::service::{Options, Service};
use herma_router::upstream::Upstream;

use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::RouterProbeOutput;
use crate::screen::{Screen, Tone, safe_line};

/// The most questions at one API: content, stream, tool call, and the last one once more.
const QUESTIONS: u64 = 4;

/// How long the router has to put its records away when all is asked.
const DRAIN: Duration = Duration::from_secs(5);

/// Asks the model `UPSTREAM/MODEL` of a configuration, at one API or at all that the upstream has.
pub(crate) fn router_probe(
    named: &str,
    file: &Path,
    api: Option<Door>,
    look: &dyn Lookup,
    screen: &Screen,
) -> Ended {
    let output = find_out(named, file, api, look)?;
    let code = if output.blocker.is_some() { Failure::BLOCKED } else { 0 };
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        show(&output, screen);
    }
    Ok(ExitCode::from(code))
}

fn find_out(
    named: &str,
    file: &Path,
    api: Option<Door>,
    look: &dyn Lookup,
) -> Result<RouterProbeOutput, Failure> {
    let config = Config::read(file).map_err(|bad| {
        Failure::bad_input(bad).hint("`herma router example` prints a whole configuration to start from")
    })?;
    let (name, model) = named.split_once('/').filter(|(_, model)| !model.is_empty()).ok_or_else(|| {
        Failure::bad_input(format!("`{}` is not UPSTREAM/MODEL", safe_line(named)))
            .hint("name an upstream of the configuration, `/`, and the model as that upstream calls it")
    })?;
    let upstream = config.upstreams.get(name).ok_or_else(|| {
        let known: Vec<&str> = config.upstreams.keys().map(String::as_str).collect();
        Failure::bad_input(format!("the configuration has no upstream `{}`", safe_line(name)))
            .hint(format!("it has: {}", known.join(", ")))
    })?;
    let doors = doors(name, upstream, api)?;
    let asked = ask(&config, name, model, &doors, look)?;
    let (capabilities, blocker) = match asked {
        Ok(found) => {
            let blocker = found.blocker().map(|(blocker, why)| blocker.because(why));
            (Some(found), blocker)
        }
        Err(failed) => (None, Some(failed.blocker().because(failed.to_string()))),
    };
    Ok(RouterProbeOutput {
        schema: "herma.router-probe/v1",
        upstream: name.to_owned(),
        model: model.to_owned(),
        capabilities,
        blocker,
    })
}

/// The APIs to ask at.
fn doors(name: &str, upstream: &UpstreamConfig, api: Option<Door>) -> Result<Vec<Door>, Failure> {
    let has = |door: &Door| upstream.provider.doors().contains(door);
    match api {
        None => Ok(CONVERSING.into_iter().filter(has).collect()),
        Some(door) if has(&door) => Ok(vec![door]),
        Some(_) => {
            let provider = upstream.provider.name();
            Err(Failure::bad_input(format!("`{name}` is of the provider {provider}, which has no such API"))
                .hint("leave --api out to ask at all that it has"))
        }
    }
}

/// Starts a router with nothing in it but this model, and asks it. Budgets that others share do not count here; the
/// number of questions is the bound.
fn ask(
    config: &Config,
    name: &str,
    model: &str,
    doors: &[Door],
    look: &dyn Lookup,
) -> Result<Result<Capabilities, ProbeFailed>, Failure> {
    let mut config = config.clone();
    // Nobody else's secrets are needed, and so they are not read.
    config.upstreams.retain(|known, _| known == name);
    config.clients.clear();
    let secrets = config.secrets(look).map_err(Failure::bad_input)?;
    let limits = config.limits.clone();
    let make =
        |(name, upstream): (&String, &UpstreamConfig)| Upstream::new(name, upstream, &secrets, &limits);
    let upstreams = config.upstreams.iter().map(make).collect::<Result<Vec<_>, _>>();
    let budget = ProbeBudget::default();
    let grant = Grant {
        run: Arc::from("probe"),
        engine: None,
        models: BTreeMap::from([(model.to_owned(), Arc::new(admitted(&config, name, model, budget)))]),
        reaches: Vec::new(),
        limits: Limits { requests: Some(QUESTIONS * doors.len() as u64), ..Limits::default() },
    };
    let handle = Service::start(Options {
        limits,
        upstreams: upstreams.map_err(Failure::bad_input)?,
        per_day: Limits::default(),
        per_engine: BTreeMap::new(),
        leases: Arc::new(InMemory::default()),
        holder: "probe".to_owned(),
        earlier: BTreeMap::new(),
        clock: Arc::new(SystemClock),
    })
    .map_err(Failure::internal)?;
    let scratch = tempfile::tempdir().map_err(Failure::internal)?;
    let socket = Address::Unix(scratch.path().join("router.sock"));
    let address = handle.listen(&socket).map_err(|e| {
        Failure::internal(e).hint("set TMPDIR to a directory with a short path, where sockets can be made")
    })?;
    let token = handle.admit(grant, scratch.path()).map_err(Failure::internal)?;
    let found = probe(&address, &token, model, doors, budget);
    let _ = handle.drain(DRAIN);
    Ok(found)
}

fn admitted(config: &Config, upstream: &str, model: &str, budget: ProbeBudget) -> AdmittedModel {
    let price = config.prices.get(&format!("{upstream}/{model}")).copied();
    let link = Link { upstream: Arc::from(upstream), model: Arc::from(model), price };
    AdmittedModel { chain: vec![link], default_output: budget.output, ceiling: budget.output }
}

fn show(output: &RouterProbeOutput, screen: &Screen) {
    screen.line(screen.paint(Tone::Bold, safe_line(&format!("{}/{}", output.upstream, output.model))));
    if let Some(found) = &output.capabilities {
        for (what, support) in
            [("content", &found.content), ("streaming", &found.streaming), ("tool calls", &found.tool_calls)]
        {
            screen.line(format_args!("  {what:12} {}", shown(support, screen)));
        }
        let doors: Vec<&str> = found.doors.iter().map(|door| api_name(*door)).collect();
        screen.line(format_args!("  {:12} {}", "answers at", doors.join(", ")));
        for left in &found.left_out {
            screen.line(format_args!("  {:12} {}: {}", "not at", api_name(left.door), safe_line(&left.why)));
        }
        if let Some(model) = &found.model_answered {
            screen.line(format_args!("  {:12} {}", "calls itself", safe_line(model)));
        }
        let used = &found.used;
        screen.line(format_args!(
            "  {:12} {} tokens in, {} out, {} of these to reason",
            "used", used.input, used.output, used.reasoning
        ));
    }
    if let Some(record) = &output.blocker {
        let blocker = screen.paint(Tone::Warn, record.blocker.as_str());
        screen.line(format_args!("blocked: {blocker}: {}", safe_line(&record.detail)));
        screen.line(format_args!("next: {}", safe_line(&record.next_step)));
    }
}

fn shown(support: &Support, screen: &Screen) -> String {
    match support {
        Support::Yes => screen.paint(Tone::Good, "yes"),
        Support::No(why) => format!("{}, {}", screen.paint(Tone::Bad, "no"), safe_line(why)),
        Support::NotAsked => screen.paint(Tone::Dim, "not asked"),
    }
}

fn api_name(door: Door) -> &'static str {
    match door {
        Door::Chat => "chat",
        Door::Responses => "responses",
        Door::Messages => "messages",
        Door::Completions => "completions",
        Door::CountTokens => "count_tokens",
        Door::Embeddings => "embeddings",
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use herma_core::Blocker;
    use tempfile::TempDir;

    use super::*;

    struct Nothing;

    impl Lookup for Nothing {
        fn variable(&self, _: &str) -> Option<OsString> {
            None
        }

        fn keyring(&self, _: &str, _: &str) -> Result<String, String> {
            Err("there is none".to_owned())
        }
    }

    /// A configuration with a script that has this turn, and an upstream whose key is not there.
    fn configured(turn: &str) -> TempDir {
        let dir = TempDir::new().unwrap();
        let config = r#"
            state = "state"
            listen = { address = "127.0.0.1:4000" }
            upstreams.rehearsal = { provider = "scripted", scripts = ["script.yaml"] }
            upstreams.anthropic = { provider = "anthropic", key = { env = "NOT_SET" } }
        "#;
        fs::write(dir.path().join("router.toml"), config).unwrap();
        fs::write(dir.path().join("script.yaml"), format!("name: script\nturns:\n  - {turn}\n")).unwrap();
        dir
    }

    fn found(turn: &str, named: &str, api: Option<Door>) -> Result<RouterProbeOutput, Failure> {
        let dir = configured(turn);
        let output = find_out(named, &dir.path().join("router.toml"), api, &Nothing);
        let files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files.len(), 2, "nothing is left beside the configuration: {files:?}");
        output
    }

    #[test]
    fn a_model_is_asked_at_all_its_apis_or_at_one() {
        let output = found("say: ready", "rehearsal/any", None).unwrap();
        let all = output.capabilities.unwrap();
        assert_eq!((&*all.doors, &all.content, output.blocker), (&CONVERSING[..], &Support::Yes, None));
        assert!(matches!(all.tool_calls, Support::No(_)));
        let one = found("call: { shell: ls }", "rehearsal/any/model", Some(Door::Messages)).unwrap();
        assert_eq!(one.model, "any/model");
        let one = one.capabilities.unwrap();
        assert_eq!((&*one.doors, one.tool_calls), (&[Door::Messages][..], Support::Yes));
    }

    #[test]
    fn what_blocks_is_named() {
        let output = found("think: hm", "rehearsal/any", None).unwrap();
        assert_eq!(output.blocker.unwrap().blocker, Blocker::ProviderReasoningOnly);
        let output = found("error: 503", "rehearsal/any", None).unwrap();
        assert_eq!(output.blocker.unwrap().blocker, Blocker::ProviderUnavailable);
        assert!(output.capabilities.is_none());
    }

    #[test]
    fn bad_input_is_told_before_anything_is_asked() {
        let rows = [
            ("rehearsal", None, "is not UPSTREAM/MODEL"),
            ("rehearsal/", None, "is not UPSTREAM/MODEL"),
            ("openai/gpt", None, "no upstream `openai`"),
            ("anthropic/claude", Some(Door::Chat), "no such API"),
            ("anthropic/claude", None, "NOT_SET"),
        ];
        for (named, api, part) in rows {
            let failure = found("say: ready", named, api).unwrap_err();
            assert_eq!(failure.code, Failure::BAD_INPUT);
            assert!(failure.what.contains(part), "{named}: {}", failure.what);
        }
    }
}
