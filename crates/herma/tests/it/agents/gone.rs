//! A model that is there when herma asks it, and refuses every connection once the agent is at work. It is another herma,
//! whose router serves a script at a port, and which is killed.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

use herma_core::model_call::{Ended, ModelCall};
use herma_evidence::layout;

use super::rows::{self, Row};
use crate::kit::{Finished, Herma, Started, until};

/// The token of the model's router. No router answers without one, so this model needs a key, and its admission says so.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Plays a row whose model goes when the agent has started.
pub(super) fn play(herma: &Herma, engine: &str, row: &Row) -> Finished {
    let token = herma.file("model/token", TOKEN);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let (port, model) = start_model(herma, row);
    let router = herma.home().join("router.toml");
    let kept = fs::read_to_string(&router).unwrap();
    let leaving = format!(
        "[upstreams.leaving]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1:{port}\"\nkey = {{ file = \"{}\" }}\n",
        token.display()
    );
    fs::write(&router, format!("{kept}\n{leaving}")).unwrap();
    herma.let_model_in("leaving/m", "file");

    let contract = herma.contract(&[("model", "{ provider: leaving, model: m }"), ("limits", rows::LIMITS)]);
    let args = ["run", contract.to_str().unwrap(), "--engine", engine, "--json"];
    let before = herma.runs();
    let finished = super::looked_at(herma, row.name, || {
        let mut started = herma.start(&args);
        until("the agent is at work", || {
            let new = herma.runs().into_iter().find(|run| !before.contains(run));
            let events = new.map(|run| herma.bundle(run).dir.join(layout::EVENTS));
            let events = events.and_then(|events| fs::read_to_string(events).ok()).unwrap_or_default();
            events.contains("\"engine.started\"") || !started.is_alive()
        });
        model.kill();
        started.end_patiently()
    });
    // It was called, and nothing listened. The answered calls are herma's own, made before.
    let calls = finished.bundle.text(layout::MODEL_CALLS);
    let calls: Vec<ModelCall> = calls.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = |call: &ModelCall| call.attempts.iter().any(|tried| tried.outcome == "connection_refused");
    let first = calls.iter().position(refused).unwrap_or_else(|| panic!("nothing was refused: {calls:#?}"));
    assert!(first > 0 && calls[0].ended == Ended::Answered, "{calls:#?}");
    assert!(calls[first..].iter().all(|call| call.ended != Ended::Answered), "{calls:#?}");
    fs::write(router, kept).unwrap();
    finished
}

/// The model at a port of its own. herma's question it answers at once.
fn start_model(herma: &Herma, row: &Row) -> (u16, Started) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    herma.file("model/row.yaml", row.script());
    herma.file("model/present.yaml", fs::read(herma.home().join("present.yaml")).unwrap());
    let config = format!(
        "[listen]\naddress = \"127.0.0.1:{port}\"\n[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"row.yaml\", \
         \"present.yaml\"]\n[models.m]\nchain = [\"rehearsal/m\"]\n[clients.run]\ntoken = {{ file = \"token\" }}\nmodels = \
         [\"m\"]\n"
    );
    let config = herma.file("model/router.toml", config);
    let model = herma.start(&["router", "--config", config.to_str().unwrap()]);
    until("the model listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (port, model)
}
