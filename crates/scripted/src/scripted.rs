//! One script, ready to answer requests.

use herma_core::Digest;
use herma_dialect::{Dialect, ModelRequest};

use crate::answer::Answer;
use crate::ids::Ids;
use crate::play;
use crate::reply::Reply;
use crate::script::{BadScript, Match, Script};
use crate::turn::Turn;

/// A script, ready to answer.
#[derive(Clone, Debug)]
pub struct Scripted {
    script: Script,
    digest: Digest,
    afterwards: Turn,
    side: Turn,
}

impl Scripted {
    /// Reads a script from a file's bytes.
    pub fn parse(yaml: &[u8]) -> Result<Self, BadScript> {
        let script = Script::parse(yaml)?;
        let aside = script.side.as_ref().map_or(script.name.as_str(), |side| side.say.as_str());
        Ok(Self {
            afterwards: Turn::saying(&script.afterwards),
            side: Turn::saying(aside),
            digest: Digest::of(yaml),
            script,
        })
    }

    /// The script's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.script.name.as_str()
    }

    /// The script.
    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The models that it claims to be.
    #[must_use]
    pub fn models(&self) -> &[String] {
        &self.script.models
    }

    /// Whether it answers this request of this run.
    #[must_use]
    pub fn matches(&self, run: Option<&str>, request: &ModelRequest) -> bool {
        let Match { run: wanted, marker } = &self.script.matches;
        wanted.as_deref().is_none_or(|wanted| run == Some(wanted))
            && marker.as_ref().is_none_or(|marker| marker.is_in(&request.turns.text))
    }

    /// The answer to a request that is made for the first time.
    #[must_use]
    pub fn answer(&self, dialect: Dialect, request: &ModelRequest) -> Answer {
        self.answer_again(dialect, request, 0)
    }

    /// The answer to a request that was made `attempt` times before, counted by the caller.
    #[must_use]
    pub fn answer_again(&self, dialect: Dialect, request: &ModelRequest, attempt: u32) -> Answer {
        let turn = self.turn_for(request);
        let fault = turn.fault_at(attempt);
        let ids = Ids::new(&self.digest, request.turns.answered, self.is_side(request));
        let reply = Reply::of(turn, fault, request, ids);
        play::play(dialect, request, turn, fault, &reply)
    }

    /// The key that identifies this request if attempts count; none if they do not.
    pub(crate) fn attempt_key(&self, run: Option<&str>, request: &ModelRequest) -> Option<Digest> {
        self.turn_for(request).times?;
        let text = Digest::of(request.turns.text.as_bytes()).hex();
        let of =
            format!("{} {text} {} {}", self.digest.hex(), request.turns.answered, run.unwrap_or_default());
        Some(Digest::of(of.as_bytes()))
    }

    fn turn_for(&self, request: &ModelRequest) -> &Turn {
        if self.is_side(request) {
            return &self.side;
        }
        self.script.turns.at(request.turns.answered, self.script.repeat).unwrap_or(&self.afterwards)
    }

    /// Whether a request is beside the conversation: it has one of the side's markers; or it has no tools, and the
    /// script has a side or calls tools.
    fn is_side(&self, request: &ModelRequest) -> bool {
        let side = self.script.side.as_ref();
        let marked =
            side.is_some_and(|side| side.markers.iter().any(|marker| marker.is_in(&request.turns.text)));
        marked || (request.tools.is_empty() && (side.is_some() || self.script.calls_tools()))
    }
}
