//! The interface to the router: from the body of a request to its answer.

use std::sync::{Mutex, PoisonError};

use herma_dialect::endpoint::{Endpoint, dialect_of};
use herma_dialect::{ApiError, read_request};

use crate::answer::Answer;
use crate::fixed_answers;
use crate::reply::count_tokens;
use crate::scripted::Scripted;
use crate::scripts::{Attempts, SameName, Scripts};

/// The scripts of one upstream, and how often each request was made.
#[derive(Debug)]
pub struct Replay {
    scripts: Scripts,
    attempts: Mutex<Attempts>,
}

impl Replay {
    /// Replays these scripts, in the order in which they are tried.
    pub fn new(scripts: Vec<Scripted>) -> Result<Self, SameName> {
        Ok(Self { scripts: Scripts::new(scripts)?, attempts: Mutex::default() })
    }

    /// The models of all scripts, each once, in order.
    #[must_use]
    pub fn models(&self) -> Vec<&str> {
        self.scripts.models()
    }

    /// The answer to a request of a run. Scripts cover the three endpoints with conversations; the others have fixed answers.
    #[must_use]
    pub fn answer(&self, endpoint: Endpoint, run: Option<&str>, body: &[u8]) -> Answer {
        let dialect = dialect_of(endpoint);
        let request = match read_request(dialect, body) {
            Ok(request) => request,
            Err(refusal) => return fixed_answers::error(dialect, &ApiError::from(&refusal)),
        };
        match endpoint {
            Endpoint::CountTokens => return fixed_answers::tokens(count_tokens(&request)),
            Endpoint::Completions => return fixed_answers::completion(&request, body.len()),
            Endpoint::Embeddings => return fixed_answers::embeddings(&request, body),
            Endpoint::Chat | Endpoint::Responses | Endpoint::Messages => {}
        }
        let Some(scripted) = self.scripts.choose(run, &request) else {
            return fixed_answers::error(dialect, &no_script());
        };
        let attempt = {
            let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
            attempts.count(scripted, run, &request)
        };
        scripted.answer_again(dialect, &request, attempt)
    }
}

fn no_script() -> ApiError {
    let message = "No script answers this request: none matches its run and the text of its conversation. \
                   Look at `match` in the scripts of this upstream.";
    ApiError::new(404, message).with_code("no_script")
}
