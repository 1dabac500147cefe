//! A router that runs, and what it wrote.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use herma_core::model_call::{Chain, ModelCall};
use serde_json::Value;
use tempfile::TempDir;

/// The token of the one client.
pub(crate) const TOKEN: &str = "a-token-of-the-only-client-of-this-test";

/// A directory with a configuration, and the router that serves it.
pub(crate) struct Router {
    /// None once it was given on.
    directory: Option<TempDir>,
    child: Child,
    pub(crate) address: String,
}

impl Drop for Router {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Router {
    /// Starts a router. The configuration gets its state directory, its addresses and its client.
    pub(crate) fn start(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_config(directory.path(), config);
        Self::start_in(directory)
    }

    pub(crate) fn start_in(directory: TempDir) -> Self {
        let token = directory.path().join("token");
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_herma"))
            .args(["--json", "router", "--config"])
            .arg(directory.path().join("router.toml"))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(directory.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|e| {
            panic!("{e}: {line:?} {}", fs::read_to_string(directory.path().join("stderr")).unwrap())
        });
        Self { address: told["listen"].as_str().unwrap().to_owned(), directory: Some(directory), child }
    }

    pub(crate) fn directory(&self) -> &TempDir {
        self.directory.as_ref().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Kills it at once, and gives the directory for the next one.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.directory.take().unwrap()
    }

    /// Lets it drain. It must end by itself, without an error.
    pub(crate) fn stop(mut self) -> TempDir {
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.stderr());
        self.directory.take().unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.directory().path().join("stderr")).unwrap()
    }

    /// The operator's view.
    pub(crate) fn state(&self) -> Value {
        let mut socket = UnixStream::connect(self.directory().path().join("admin.sock")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request = b"GET /state HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        std::io::Write::write_all(&mut socket, request).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
    }

    /// The state of the client's budget, by name.
    pub(crate) fn budget(&self) -> Value {
        let state = self.state();
        let budgets = state["budgets"].as_array().unwrap();
        budgets.iter().find(|budget| budget["scope"] == "run client").unwrap().clone()
    }

    pub(crate) fn calls(&self) -> Vec<ModelCall> {
        calls(self.directory().path())
    }
}

pub(crate) fn write_config(directory: &Path, config: &str) {
    let whole = format!(
        "state = \"state\"\n[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"unix:admin.sock\"\n{config}"
    );
    fs::write(directory.join("router.toml"), whole).unwrap();
}

fn audit(directory: &Path) -> PathBuf {
    directory.join("state/audit/client/model-calls.jsonl")
}

/// The calls on record. They must be a chain.
pub(crate) fn calls(directory: &Path) -> Vec<ModelCall> {
    let mut chain = Chain::new("client");
    let text = fs::read(audit(directory)).unwrap();
    let (whole, torn) = text.split_at(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    assert!(torn.is_empty(), "a line has no end");
    whole
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| chain.follow(&line[..line.len() - 1]).unwrap())
        .collect()
}

/// How often each request is on record, by the digest of its body.
pub(crate) fn by_request(calls: &[ModelCall]) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for call in calls {
        *seen.entry(call.request.to_string()).or_default() += 1;
    }
    seen
}
