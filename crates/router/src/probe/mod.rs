//! What a model can do: asked through the router before a run depends on it, so that each question is admitted,
//! budgeted and recorded like any other call.
//!
//! A model is asked three things at each API: a small question, the same kind of question as a stream, and one that is
//! to be answered with a tool call. Whether an answer has content is told from its shape, never from its words.

mod capabilities;
mod client;
mod events;
mod exchange;
mod failed;
mod judge;
mod question;
mod shape;
mod steps;

use std::thread;
use std::time::Duration;

use herma_core::CancellationToken;
use herma_core::secret::Secret;

pub use capabilities::{Capabilities, LeftOut, Support};
pub use failed::ProbeFailed;
pub use question::{PROMPTS, TOOL};

use crate::config::Address;
use crate::door::Door;
use client::Client;
use steps::Asking;

/// The APIs in which a model converses, in the order in which they are asked.
pub const CONVERSING: [Door; 3] = [Door::Chat, Door::Responses, Door::Messages];

/// How often it is looked whether herma was told to end.
const LOOK: Duration = Duration::from_millis(100);

/// What each question may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeBudget {
    /// The most tokens of output. A model that reasons spends hundreds before its first word: with a small number a good
    /// model looks as if it did nothing but reason.
    pub output: u64,
    /// The most time.
    pub time: Duration,
}

impl Default for ProbeBudget {
    fn default() -> Self {
        Self { output: 1024, time: Duration::from_mins(2) }
    }
}

/// Asks a model what it can do, at each of these APIs. Takes at most four calls for each, and can be called from
/// anywhere: the asking is done on a thread of its own.
///
/// An answer that shows that the model is not fit is no failure: [`Capabilities::blocker`] says so.
pub fn probe(
    address: &Address,
    token: &Secret<String>,
    model: &str,
    doors: &[Door],
    budget: ProbeBudget,
) -> Result<Capabilities, ProbeFailed> {
    probe_unless(&CancellationToken::default(), address, token, model, doors, budget)
}

/// The same, and given up when herma is told to end.
pub fn probe_unless(
    cancellation: &CancellationToken,
    address: &Address,
    token: &Secret<String>,
    model: &str,
    doors: &[Door],
    budget: ProbeBudget,
) -> Result<Capabilities, ProbeFailed> {
    let doors: Vec<Door> = CONVERSING.into_iter().filter(|door| doors.contains(door)).collect();
    let client = Client { address, token, time: budget.time };
    let asking = Asking { client, model, output: budget.output };
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|_| ProbeFailed::NotStarted)?.block_on(async {
            tokio::select! {
                asked = asking.ask(&doors) => asked,
                () = told(cancellation) => Err(ProbeFailed::GivenUp),
            }
        })
    };
    thread::scope(|scope| {
        let asked = thread::Builder::new().name("herma-probe".to_owned()).spawn_scoped(scope, ask);
        asked.map_err(|_| ProbeFailed::NotStarted)?.join().unwrap_or(Err(ProbeFailed::NotStarted))
    })
}

/// Waits until herma is told to end.
async fn told(cancellation: &CancellationToken) {
    while !cancellation.is_cancelled() {
        tokio::time::sleep(LOOK).await;
    }
}
