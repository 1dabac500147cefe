//! The socket for an agent's hook: one question for each connection, judged, recorded and answered.
//!
//! A process inside can ask about a tool call or for a child run, and nothing else. It may ask and connect as often as it
//! likes: a fixed number of threads serves all connections, each call has a timeout, and the event log limits what an agent
//! makes herma write.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use herma_core::Contract;
use herma_core::contract::Action;
use herma_core::event::{Source, ToolEvaluated};
use herma_core::tool::{ToolAnswer, ToolCall};
use herma_evidence::{EventLog, layout};
use herma_net::SocketDir;
use herma_policy::{ChildRun, Policies, PolicyDecision, PolicyRequester};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use super::record::{self, Seen, Tally};
use crate::child_queue::{self, ChildAnswer, ChildAsk, ChildQuestion, ChildRunQueue};
use crate::context::RunContext;
use crate::error::Stop;
use crate::journal::StepResult;
use crate::permission;

/// The socket's name in the run's directory for it.
const SOCKET: &str = "governance.sock";
/// How many are served at once. More wait in the kernel's queue.
const THREADS: usize = 4;
/// The most of a question: a subject of the greatest length, every character of it escaped.
const MAX_QUESTION: u64 = 1 << 20;
/// How long one question may take to come.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Until the next try where the system has no file left for a caller.
const PAUSE: Duration = Duration::from_millis(50);
/// How many denials have an event that counts as herma's own: what an agent floods the log with does not push them out.
const MAX_DENIALS: u64 = 500;
/// A thread that judges: Cedar recurses as deep as a policy does.
const STACK: usize = 4 << 20;

/// The socket of a run, while it may be asked.
pub struct RunGovernance {
    socket: PathBuf,
    server: Arc<ToolCallServer>,
    children: Arc<ChildRunQueue>,
    /// Closed to end the threads.
    stop: UnixStream,
    threads: Vec<JoinHandle<()>>,
    /// Keeps the bound path valid.
    _dir: SocketDir,
}

impl RunGovernance {
    /// Listens in a new directory.
    pub fn open(
        dir: &Path,
        policies: Arc<Policies>,
        asker: PolicyRequester,
        events: Arc<EventLog>,
    ) -> io::Result<Self> {
        let sockets = SocketDir::create(dir)?;
        let socket = sockets.path(SOCKET);
        let address = sockets.bind_path(SOCKET);
        let listener = UnixListener::bind(&address)?;
        fs::set_permissions(&address, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let children = Arc::new(ChildRunQueue::default());
        let server = Arc::new(ToolCallServer {
            listener,
            stopped,
            policies,
            asker,
            events,
            children: Arc::clone(&children),
            tally: Mutex::default(),
        });
        let serve = |_| {
            let server = Arc::clone(&server);
            let thread = thread::Builder::new().name("governance".to_owned()).stack_size(STACK);
            thread.spawn(move || server.serve())
        };
        let threads = (0..THREADS).map(serve).collect::<io::Result<_>>()?;
        Ok(Self { socket, server, children, stop, threads, _dir: sockets })
    }

    /// Ends it; what was asked, all in all.
    fn close(self) -> Result<Tally, Stop> {
        drop(self.stop);
        for thread in self.threads {
            thread.join().map_err(|_| Stop::panicked("judging tool calls"))?;
        }
        Ok(std::mem::take(&mut *self.server.tally.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Where child runs are asked for.
    pub(crate) fn children(&self) -> Arc<ChildRunQueue> {
        Arc::clone(&self.children)
    }

    /// Where the agent's hook calls it, seen from outside of its destination.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Answers the calls at the socket.
struct ToolCallServer {
    listener: UnixListener,
    stopped: UnixStream,
    policies: Arc<Policies>,
    asker: PolicyRequester,
    events: Arc<EventLog>,
    children: Arc<ChildRunQueue>,
    tally: Mutex<Tally>,
}

/// Opens the socket of the run, where its stage starts an engine: for tool hooks and for child runs.
pub(crate) fn start(ctx: &RunContext<'_>) -> Result<Option<RunGovernance>, Stop> {
    if !ctx.contract.terms.stage.starts_engine() {
        return Ok(None);
    }
    let (policies, events) = (Arc::clone(&ctx.policies), Arc::clone(&ctx.events));
    Ok(Some(RunGovernance::open(&ctx.dirs.governance(), policies, permission::asker(ctx), events)?))
}

/// The tool calls that hooks asked about.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ToolCallResults {
    pub(crate) asked: u64,
    pub(crate) denied: u64,
    /// The forbidden actions that were attempted.
    pub(crate) attempted: Vec<Action>,
    pub(crate) write_failure: Option<String>,
}

impl StepResult for ToolCallResults {
    const KEY: &'static str = "tools";
}

/// Closes the socket of the run and adds up its calls. No process of the engine may be alive.
pub(crate) fn end(
    ctx: &RunContext<'_>,
    governance: RunGovernance,
    found: &mut Option<ToolCallResults>,
) -> Result<(), Stop> {
    let tally = governance.close()?;
    let results = found.insert(ToolCallResults {
        asked: tally.asked,
        denied: tally.denied,
        attempted: tally.attempted.into_iter().collect(),
        write_failure: tally.unwritten,
    });
    if results.write_failure.is_some() {
        ctx.installation.home.release_reserve();
    }
    Ok(ctx.journal.append(results)?)
}

impl ToolCallServer {
    /// Serves one caller after the other, until the run ends.
    fn serve(&self) {
        loop {
            let mut ready =
                [PollFd::new(&self.stopped, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
            let polled = poll(&mut ready, None);
            if !ready[0].revents().is_empty() {
                return;
            }
            let caller = polled.map_err(io::Error::from).and_then(|_| self.listener.accept());
            match caller {
                Ok((caller, _)) => self.receive(caller),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Reads one question and answers it. A caller that disconnects early has asked all the same.
    fn receive(&self, mut caller: UnixStream) {
        let answer = match question(&mut caller) {
            Ok(Question::Tool(call)) => serde_json::to_vec(&self.judge(&call)),
            Ok(Question::Child(ask)) => serde_json::to_vec(&self.child(ask)),
            Ok(Question::MalformedChild(why)) => {
                let why = format!("the question cannot be read: {why}");
                serde_json::to_vec(&self.refuse(None, &[], why))
            }
            Err(why) => serde_json::to_vec(&ToolAnswer::no(format!("the question cannot be read: {why}"))),
        };
        let Ok(answer) = answer else { return };
        let _ = caller.set_write_timeout(Some(CALL_TIMEOUT));
        let _ = caller.write_all(&answer);
    }

    /// Has a child run, where policy permits it, or says why not. That it was asked for in vain is written down.
    fn child(&self, ask: ChildAsk) -> ChildAnswer {
        let mut child = ChildRun { engine: ask.engine.clone(), contract: String::new() };
        match Contract::parse(ask.contract.as_bytes()) {
            Ok(contract) => child.contract = contract.terms.id.to_string(),
            Err(bad) => return self.refuse(Some(&child), &[], format!("its contract: {bad}")),
        }
        let PolicyDecision { allowed, rules, reason, .. } = self.policies.decide_child(&self.asker, &child);
        if !allowed {
            return self.refuse(Some(&child), &rules, reason);
        }
        match self.children.ask(ask, rules) {
            ChildAnswer::Refused(why) => self.refuse(Some(&child), &[], why),
            ended @ ChildAnswer::Ended { .. } => ended,
        }
    }

    fn refuse(&self, child: Option<&ChildRun>, rules: &[String], why: String) -> ChildAnswer {
        let mut tally = self.tally();
        tally.refused += 1;
        let own = tally.refused <= MAX_DENIALS;
        drop(tally);
        self.write(own, record::child(child, rules, Some(&why)));
        ChildAnswer::Refused(why)
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what was judged; whether that worked.
    fn write(&self, own: bool, data: ToolEvaluated) -> bool {
        let source = if own { Source::Harness } else { Source::Agent };
        let written = self.events.record(source, data);
        if let Err(error) = &written {
            self.tally().unwritten.get_or_insert_with(|| format!("{}: {error}", layout::EVENTS));
        }
        written.is_ok()
    }

    /// Judges a call. A call that cannot be recorded is denied.
    fn judge(&self, call: &ToolCall) -> ToolAnswer {
        let decision = self.policies.decide(&self.asker, call);
        let forbidden =
            decision.does.iter().copied().filter(|action| self.asker.forbidden.contains(action)).collect();
        let data = record::data(call, &decision, &forbidden, Seen::Hook, decision.allowed);
        let mut tally = self.tally();
        tally.asked += 1;
        tally.denied += u64::from(!decision.allowed);
        tally.attempted.extend(forbidden);
        let own = !decision.allowed && tally.denied <= MAX_DENIALS;
        drop(tally);
        if self.write(own, data) { decision.answer() } else { ToolAnswer::no("it could not be recorded") }
    }
}

/// The question of a caller.
enum Question {
    Tool(ToolCall),
    Child(ChildAsk),
    MalformedChild(serde_json::Error),
}

impl Question {
    fn read(text: &[u8]) -> io::Result<Self> {
        Ok(match child_queue::question(text) {
            ChildQuestion::ChildRun(ask) => Self::Child(ask),
            ChildQuestion::Malformed(why) => Self::MalformedChild(why),
            ChildQuestion::Other => Self::Tool(serde_json::from_slice(text)?),
        })
    }
}

/// The question of a caller: all of it, in its time.
fn question(caller: &mut UnixStream) -> io::Result<Question> {
    caller.set_nonblocking(false)?;
    let until = Instant::now() + CALL_TIMEOUT;
    let (mut text, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        caller.set_read_timeout(Some(left))?;
        match caller.read(&mut part)? {
            0 => return Question::read(&text),
            read => text.extend_from_slice(&part[..read]),
        }
        if text.len() as u64 > MAX_QUESTION {
            return Err(io::Error::other(format!("it is longer than {MAX_QUESTION} bytes")));
        }
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
