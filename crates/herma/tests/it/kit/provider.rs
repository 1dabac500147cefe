//! A stand-in for a provider of models: herma's own router on loopback, which asks for a key and answers by scripts.

use std::fmt::Write as _;

use rustix::process::Signal;

use super::{Herma, Started, until};

/// The key that it accepts.
pub(crate) const KEY: &str = "sk-stand-in-0123456789abcdef0123456789abcdef";

/// Answers everything that no other script does.
const PRESENT: &str = "name: present\nmodels: [m]\nrepeat: true\nturns: [say: I am there.]\n";

/// A provider at work. It ends with the test.
pub(crate) struct Provider {
    pub(crate) url: String,
    _started: Started,
    _herma: Herma,
}

impl Provider {
    /// Starts a provider with these models, all of which play this script.
    pub(crate) fn start(models: &[&str], script: &str) -> Self {
        let mut herma = Herma::new();
        herma.set("STAND_IN_KEY", KEY);
        herma.file("script.yaml", script);
        herma.file("present.yaml", PRESENT);
        let mut text = "state = \"state\"\n[listen]\naddress = \"127.0.0.1:0\"\n\
            [upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"script.yaml\", \"present.yaml\"]\n"
            .to_owned();
        for model in models {
            writeln!(text, "[models.\"{model}\"]\nchain = [\"rehearsal/m\"]").unwrap();
        }
        writeln!(text, "[clients.you]\ntoken = {{ env = \"STAND_IN_KEY\" }}\nmodels = {models:?}").unwrap();
        let config = herma.file("router.toml", text);
        let started = herma.start(&["router", "--config", config.to_str().unwrap(), "--json"]);
        until("the provider listens", || started.stdout_so_far().ends_with('\n'));
        let said: serde_json::Value = serde_json::from_str(&started.stdout_so_far()).unwrap();
        let url = format!("http://{}", said["listen"].as_str().unwrap());
        Self { url, _started: started, _herma: herma }
    }

    /// Stops it: its address refuses connections from then on.
    pub(crate) fn stop(self) -> String {
        let Self { url, _started: started, .. } = self;
        started.signal(Signal::TERM);
        started.end();
        url
    }
}
