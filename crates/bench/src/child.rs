//! A contender's process: started on the host, waited for until it answers, ended with all that it started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::clock::Clock;
use herma_destination::{Destination as _, Host, Job, JobPaths, Process};

use crate::error::BenchError;
use crate::usage::{Used, own_children, used_by};

/// So many of its last bytes are repeated where a process gives up.
const LAST_WORDS: usize = 600;

/// A program to start, and the files of its directory.
pub(crate) struct Recipe {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(String, String)>,
    /// Files by their names, written before it starts.
    pub(crate) files: Vec<(&'static str, String)>,
}

/// A process that was started, with what it started. Dropping it ends all of them.
pub(crate) struct Child {
    process: Box<dyn Process>,
    pid: i32,
    last_words: Arc<Mutex<VecDeque<u8>>>,
}

/// Starts children.
pub(crate) struct Nursery<'a> {
    pub(crate) host: Host,
    pub(crate) clock: &'a dyn Clock,
}

impl Nursery<'_> {
    /// Starts what the recipe says in this directory.
    pub(crate) fn start(&self, dir: &Path, recipe: Recipe) -> Result<Child, BenchError> {
        let written = || BenchError::io(format!("cannot write in {}", dir.display()));
        fs::create_dir_all(dir).map_err(written())?;
        for (name, text) in &recipe.files {
            write_private(&dir.join(name), text).map_err(written())?;
        }
        let mut entropy = [0; 10];
        getrandom::fill(&mut entropy)
            .map_err(|error| BenchError::io("cannot name a process")(std::io::Error::other(error)))?;
        let run_id = RunId::new(self.clock.now(), entropy);
        let job = Job::new(run_id, recipe.argv, JobPaths::new(dir.to_owned())).with_env(recipe.env);
        let looked = || BenchError::io("cannot read the process table");
        let before = own_children().map_err(looked())?;
        let mut process = self.host.start(&job)?;
        let pid = own_children().map_err(looked())?.into_iter().find(|pid| !before.contains(pid));
        let last_words = Arc::default();
        for stream in [process.take_stdout(), process.take_stderr()].into_iter().flatten() {
            listen(stream, Arc::clone(&last_words));
        }
        let child = Child { process, pid: pid.unwrap_or_default(), last_words };
        if pid.is_some() { Ok(child) } else { Err(BenchError::NotUp(child.said())) }
    }
}

impl Child {
    /// CPU time and memory of it and all its descendants.
    pub(crate) fn used(&self) -> Result<Used, BenchError> {
        used_by(self.pid).map_err(BenchError::io("cannot read the process table"))
    }

    /// Tries until it answers; gives up when it ends, or after `patience`.
    pub(crate) fn wait_until(
        &mut self,
        patience: Duration,
        mut answers: impl FnMut() -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let until = Instant::now() + patience;
        loop {
            let error = match answers() {
                Ok(()) => return Ok(()),
                Err(BenchError::Interrupted) => return Err(BenchError::Interrupted),
                Err(error) => error,
            };
            let ended =
                self.process.wait(Duration::from_millis(20)).map_err(BenchError::io("cannot wait"))?;
            if ended.is_some() {
                // Its last words may still be on their way.
                thread::sleep(Duration::from_millis(50));
                return Err(BenchError::NotUp(self.said()));
            }
            if Instant::now() > until {
                return Err(BenchError::NotUp(format!("{error}; {}", self.said())));
            }
        }
    }

    fn said(&self) -> String {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let text: Vec<u8> = words.iter().copied().collect();
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        if text.is_empty() { "it said nothing".to_owned() } else { text }
    }
}

/// Reads what it prints, so that it never waits for a reader, and keeps the end.
fn listen(mut stream: Box<dyn Read + Send>, last_words: Arc<Mutex<VecDeque<u8>>>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let mut words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
            words.extend(&buffer[..count]);
            let surplus = words.len().saturating_sub(LAST_WORDS);
            words.drain(..surplus);
        }
    });
}

/// A port of the loopback address that nobody listens on now.
pub(crate) fn free_port() -> Result<SocketAddr, BenchError> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map_err(BenchError::io("there is no free port"))
}

fn write_private(path: &PathBuf, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
