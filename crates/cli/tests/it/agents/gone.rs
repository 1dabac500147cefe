//! An agent whose model was there when herma asked, and refuses every connection once the agent is at work.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::Duration;

use herma_model::Blocker;

use super::rows;
use crate::kit::{Herma, Started, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The agent's first question is not answered before its model is gone.
const WAITS: &str = "\n  - { say: Too late., delay: 2m }";

pub(super) fn without_its_model_it_fails(herma: &Herma, engine: &str) {
    let kept = fs::read(herma.home().join("router.toml")).unwrap();
    let (port, model) = start_model(herma);
    let key = herma.home().join("model.key");
    fs::write(&key, TOKEN).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let router = format!(
        "[upstreams.rehearsal]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1:{port}\"\nkey = {{ file = \"model.key\" }}\n"
    );
    fs::write(herma.home().join("router.toml"), router).unwrap();

    let contract =
        herma.contract(&[("model", "{ provider: rehearsal, model: m }"), ("limits", rows::LIMITS)]);
    let args = ["run", contract.to_str().unwrap(), "--engine", engine, "--json"];
    let before = herma.runs();
    let finished = herma.finished_by(|| {
        let mut started = herma.start(&args);
        until("the agent is at work", || {
            let new = herma.runs().into_iter().find(|run| !before.contains(run));
            let events = new.map(|run| herma.home().join(format!("runs/{run}/bundle/events.jsonl")));
            let events = events.and_then(|events| fs::read_to_string(events).ok()).unwrap_or_default();
            events.contains("\"engine.started\"") || !started.is_alive()
        });
        model.kill();
        while started.is_alive() {
            thread::sleep(Duration::from_millis(10));
        }
        started.end()
    });
    let found: Vec<Blocker> = finished.report.blockers.iter().map(|record| record.blocker).collect();
    assert_eq!(found, rows::WITHOUT_A_MODEL, "{:#?}", finished.report);
    let calls = fs::read_to_string(finished.bundle.dir.join("model-calls.jsonl")).unwrap();
    assert!(calls.contains("\"connection_refused\""), "{calls}");
    fs::write(herma.home().join("router.toml"), kept).unwrap();
}

/// A model at a port of its own, which can be taken away.
fn start_model(herma: &Herma) -> (u16, Started) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    herma.file("model/waits.yaml", rows::script_of("waits", WAITS));
    herma.file("model/present.yaml", fs::read(herma.home().join("present.yaml")).unwrap());
    let token = herma.file("model/token", TOKEN);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let config = herma.file(
        "model/router.toml",
        format!(
            "[listen]\naddress = \"127.0.0.1:{port}\"\n[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = \
             [\"waits.yaml\", \"present.yaml\"]\n[models.m]\nchain = [\"rehearsal/m\"]\n[clients.run]\ntoken = {{ file = \
             \"token\" }}\nmodels = [\"m\"]\n"
        ),
    );
    let model = herma.start(&["router", "--config", config.to_str().unwrap()]);
    until("the model listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (port, model)
}
