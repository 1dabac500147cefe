//! Probes a model before a run depends on it. The questions go through the router: they are admitted, budgeted and recorded
//! like any other call.
//!
//! A probe asks three questions at each API: a small one, the same as a stream, and one that needs a tool call. It judges
//! answers by their shape, never by their words.

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
use client::Client;
use herma_dialect::endpoint::Endpoint;
use steps::ModelProbe;

/// The APIs in which a model converses, in the order in which they are asked.
pub const CONVERSING: [Endpoint; 3] = [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages];

/// How often cancellation is polled.
const LOOK: Duration = Duration::from_millis(100);

/// The limits of each question.
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
    endpoints: &[Endpoint],
    budget: ProbeBudget,
) -> Result<Capabilities, ProbeFailed> {
    probe_unless(&CancellationToken::default(), address, token, model, endpoints, budget)
}

/// The same, with cancellation.
pub fn probe_unless(
    cancellation: &CancellationToken,
    address: &Address,
    token: &Secret<String>,
    model: &str,
    endpoints: &[Endpoint],
    budget: ProbeBudget,
) -> Result<Capabilities, ProbeFailed> {
    let endpoints: Vec<Endpoint> =
        CONVERSING.into_iter().filter(|endpoint| endpoints.contains(endpoint)).collect();
    let client = Client { address, token, time: budget.time };
    let probe = ModelProbe { client, model, output: budget.output };
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|_| ProbeFailed::NotStarted)?.block_on(async {
            tokio::select! {
                asked = probe.ask(&endpoints) => asked,
                () = told(cancellation) => Err(ProbeFailed::GivenUp),
            }
        })
    };
    thread::scope(|scope| {
        let asked = thread::Builder::new().name("herma-probe".to_owned()).spawn_scoped(scope, ask);
        asked.map_err(|_| ProbeFailed::NotStarted)?.join().unwrap_or(Err(ProbeFailed::NotStarted))
    })
}

/// Waits until the token is cancelled.
async fn told(cancellation: &CancellationToken) {
    while !cancellation.is_cancelled() {
        tokio::time::sleep(LOOK).await;
    }
}
