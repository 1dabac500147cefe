//! The cost of herma around a real agent: the same agent with the same twenty turns, governed and bare, side by side.

#![allow(clippy::disallowed_types, reason = "the bare run is the one that herma has no part in")]
#![allow(clippy::disallowed_macros, reason = "it prints what it measured")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use herma_core::Contract;
use herma_destination::View;
use herma_engines::{Assignment, Package, Registry, claude, codex};

use super::home::installed;
use super::rows;
use crate::kit::{HERMA, Herma, Repository, environment, run_tool, until};

/// How often each is measured, in turn.
const ROUNDS: usize = 5;
/// How often the model speaks.
const TURNS: usize = 20;
/// How long it takes to: a fraction of what the fastest models take.
const PACE: &str = "100ms";
/// The permitted cost of herma.
const MOST: f64 = 1.15;

/// Beside it is shown what it comes to where the model takes no time at all: there the agents are done within a second or
/// two, and what herma does once for a run (its gates, probes, verification and signature) is a good part of that.
#[test]
fn every_turn_costs_little_more_under_herma() {
    let mut ratios = Vec::new();
    for (engine, package) in [(codex::NAME, codex::PACKAGE), (claude::NAME, claude::PACKAGE)] {
        measure(engine, &package, None);
        ratios.push((engine, measure(engine, &package, Some(PACE))));
    }
    assert!(ratios.iter().all(|(_, ratio)| *ratio <= MOST), "{ratios:?}");
}

/// How much longer the agent takes under herma, with a model that takes this long for each turn.
fn measure(engine: &str, package: &Package, pace: Option<&str>) -> f64 {
    let herma = Herma::with_agent(engine, package);
    for stage in ["1", "2"] {
        let proven = herma.run_patiently(&["prove", "--engine", engine, "--stage", stage, "--json"]);
        assert_eq!(proven.code, Some(0), "{proven:#?}");
    }
    herma.with_rehearsal();
    let script = script(pace);
    fs::write(herma.home().join("case.yaml"), &script).unwrap();
    let contract =
        herma.contract(&[("model", "{ provider: rehearsal, model: m }"), ("limits", rows::LIMITS)]);
    let bare = Bare::new(&herma, engine, package, &contract, &script);

    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    let args = ["run", contract.to_str().unwrap(), "--engine", engine, "--json"];
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let ended = herma.run_patiently(&args);
        times[0].push(began.elapsed());
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        times[1].push(bare.run());
    }
    let [governed, bare] = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    });
    let ratio = governed.as_secs_f64() / bare.as_secs_f64();
    let pace = pace.unwrap_or("no time");
    println!("{engine}, {pace} for each turn: governed {governed:?}, bare {bare:?}: {ratio:.3}x");
    ratio
}

/// Twenty turns: one that fixes the bug, eighteen that run a command, and the last word.
fn script(pace: Option<&str>) -> String {
    let delay = pace.map_or_else(String::new, |pace| format!("\n    delay: {pace}"));
    let fix = r#"printf '%s\n' 'slugify() {' 'printf "%s" "$1" | tr A-Z a-z | tr -cs a-z0-9 - | sed "s/^-//; s/-$//"' '}' > slugify.sh"#;
    let mut turns = format!("  - call: {{ shell: {} }}{delay}\n", serde_json::Value::from(fix));
    for turn in 2..TURNS {
        let _ = writeln!(turns, "  - call: {{ shell: echo turn {turn} }}{delay}");
    }
    format!(
        "name: twenty\nmodels: [m]\nmatch: {{ marker: slugify keeps outer and repeated whitespace }}\nturns:\n{turns}  - say: It is done.{delay}\n"
    )
}

/// Takes the hooks away again: nobody asks a bare agent to ask, and nobody speaks with one that only reads its prompt.
fn without_hooks(engine_dir: &Path, argv: &mut Vec<PathBuf>) {
    let _ = fs::remove_file(engine_dir.join("codex/hooks.json"));
    if let Some(at) = argv.iter().position(|word| word == Path::new("--input-format")) {
        argv.drain(at..at + 2);
    }
}

/// The agent by itself, with the settings that its engine gives it, and a router that serves it the same script.
struct Bare {
    repository: Repository,
    /// Where its settings lie as they are at first, and where it finds them in each run.
    pristine: PathBuf,
    engine_dir: PathBuf,
    argv: Vec<PathBuf>,
    env: Vec<(String, String)>,
    stdin: PathBuf,
    home: PathBuf,
    _router: crate::kit::Started,
}

impl Bare {
    fn new(herma: &Herma, engine: &str, package: &Package, contract: &Path, script: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let token = "0123456789abcdef0123456789abcdef";
        herma.file("bare/twenty.yaml", script);
        let present = fs::read(herma.home().join("present.yaml")).unwrap();
        herma.file("bare/present.yaml", present);
        let secret = herma.file("bare/token", token);
        fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let config = herma.file(
            "bare/router.toml",
            format!(
                "[listen]\naddress = \"127.0.0.1:{port}\"\n[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = \
                 [\"twenty.yaml\", \"present.yaml\"]\n[models.m]\nchain = [\"rehearsal/m\"]\n[clients.bare]\ntoken = {{ \
                 file = \"token\" }}\nmodels = [\"m\"]\n"
            ),
        );
        let router = herma.start(&["router", "--config", config.to_str().unwrap()]);
        until("the router listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());

        let tree = installed(engine, package);
        let name: herma_core::engine::EngineName = engine.parse().unwrap();
        let registry = Registry::new(
            HERMA.into(),
            None,
            BTreeMap::from([(name.clone(), tree.clone())]),
            &BTreeMap::new(),
        );
        let adapter = registry.get(&name).unwrap();
        let repository = Repository::of_fixture(herma, "string-slugify");
        let engine_dir = herma.at("bare/engine");
        fs::create_dir_all(&engine_dir).unwrap();
        let view = View {
            workspace: repository.dir.clone(),
            engine_dir: Some(engine_dir.clone()),
            router: None,
            router_port: Some(port),
            egress_port: None,
            certificates: None,
            governance: Some("/nobody/is/asked".into()),
            herma: HERMA.into(),
        };
        let contract = Contract::parse(&fs::read(contract).unwrap()).unwrap();
        let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
        adapter.prepare(&assignment, &engine_dir, &view).unwrap();
        let launch = adapter.launch(&assignment, &view).unwrap();
        let inside = &adapter.mounts(&tree)[0].inside;
        let argv = launch.argv.iter().map(|word| {
            let word = Path::new(word);
            word.strip_prefix(inside).map_or_else(|_| word.to_owned(), |below| tree.join(below))
        });
        let mut argv = argv.collect();
        without_hooks(&engine_dir, &mut argv);
        let pristine = herma.at("bare/pristine");
        fs::rename(&engine_dir, &pristine).unwrap();
        let variables = launch
            .token
            .map(std::borrow::Cow::into_owned)
            .into_iter()
            .chain(["HERMA_ROUTER_TOKEN".to_owned()]);
        Self {
            argv,
            env: launch.env.into_iter().chain(variables.map(|name| (name, token.to_owned()))).collect(),
            stdin: herma.file("bare/prompt.md", herma_engines::prompt(&contract)),
            home: herma.at("bare"),
            repository,
            pristine,
            engine_dir,
            _router: router,
        }
    }

    fn run(&self) -> Duration {
        // It is as new to the agent as that of a governed run.
        let _ = fs::remove_dir_all(&self.engine_dir);
        run_tool("cp", &["-a".as_ref(), self.pristine.as_os_str(), self.engine_dir.as_os_str()], &[]);
        let began = Instant::now();
        let ended = Command::new(&self.argv[0])
            .args(&self.argv[1..])
            .env_clear()
            .env("PATH", environment("PATH"))
            .env("HOME", &self.home)
            .envs(self.env.iter().cloned())
            .current_dir(&self.repository.dir)
            .stdin(fs::File::open(&self.stdin).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let took = began.elapsed();
        assert!(ended.status.success(), "{ended:#?}");
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(said.contains("turn 19") && said.contains("It is done."), "{said}");
        // As it was, for the next one.
        self.repository.git(&["checkout", "-q", "."]);
        took
    }
}
