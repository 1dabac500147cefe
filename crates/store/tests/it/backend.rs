//! The engines that the suite runs on, and the processes that share a store with a test.

#![allow(clippy::disallowed_types, reason = "the tests start processes that share a store")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use herma_store::{BlockingStore, Store};
use tempfile::TempDir;

use crate::postgres_server;

/// An empty store of its own on one engine.
pub(crate) struct Backend {
    pub(crate) url: String,
    _dir: Option<TempDir>,
}

/// The engines.
pub(crate) const ENGINES: [fn() -> Backend; 2] = [sqlite, postgres];

fn sqlite() -> Backend {
    let dir = TempDir::new().unwrap();
    Backend { url: format!("sqlite:{}", dir.path().join("store.db").display()), _dir: Some(dir) }
}

pub(crate) fn postgres() -> Backend {
    Backend { url: postgres_server::shared().database(), _dir: None }
}

/// Runs a test on every engine. The test gets a function that makes an empty store.
pub(crate) fn on_every_engine(test: impl Fn(fn() -> Backend)) {
    ENGINES.into_iter().for_each(test);
}

/// The same for an asynchronous test on one store.
#[allow(clippy::needless_pass_by_value, reason = "callers pass a closure")]
pub(crate) fn on_every_store(test: impl AsyncFn(&Backend)) {
    on_every_engine(|new| block_on(test(&new())));
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

impl Backend {
    /// Opens the store once more, as another process would.
    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.url.parse().unwrap()).await.unwrap()
    }

    pub(crate) fn open_blocking(&self) -> BlockingStore {
        BlockingStore::open(&self.url.parse().unwrap()).unwrap()
    }
}

/// A process of `examples/` that shares the store. It dies with this value.
pub(crate) struct Process {
    child: Child,
    orders: ChildStdin,
    out: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it on the store and waits until it is ready.
    pub(crate) fn start(example: &str, backend: &Backend, arguments: &[&str]) -> Self {
        let test = std::env::current_exe().unwrap();
        let program = test.parent().unwrap().parent().unwrap().join("examples").join(example);
        assert!(program.is_file(), "{} is missing: cargo builds it with the tests", program.display());
        let mut command = Command::new(program);
        command.arg(&backend.url).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut process = Self { child, orders, out: BufReader::new(out) };
        assert_eq!(process.line().as_deref(), Some("ready"));
        process
    }

    pub(crate) fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").unwrap();
    }

    /// Its next line; none after its end. A killed process can leave a part of a line, which counts as none.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.strip_suffix('\n').map(str::to_owned)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
