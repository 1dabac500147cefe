//! The built-in upstream that replays a script: no network, no model, and the same answer to the same request.
//!
//! A script says what is answered turn by turn. Which turn it is comes from the conversation itself: how often the model
//! spoke in it. So nothing is remembered between requests, and a client may ask in any dialect, streamed or not.

mod answer;
mod call;
mod errors;
mod ids;
mod parse;
mod play;
mod render;
mod reply;
mod script;
mod scripts;
mod tools;
mod turn;
mod turn_fields;

use herma_core::Digest;

pub use answer::{Answer, Headers, StreamStep};
pub use call::{Call, EditFile, NamedTool, ToolInput, WriteFile};
pub use parse::{BadScript, MAX_BYTES};
pub use reply::count_tokens;
pub use script::{Marker, Match, Script, ScriptName, Side, Turns};
pub use scripts::{Attempts, SameName, Scripts};
pub use tools::{
    Chosen, FileOperation, Input, Intent, KNOWN_TOOLS, KnownTool, PROVIDER_TOOLS, Part, ToolCall, choose,
};
pub use turn::{Content, Cut, Delay, Fault, Forever, HttpError, Stop, Turn, Used};

use ids::Ids;
use reply::Reply;

use crate::dialect::{Asked, Dialect};

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
    pub fn matches(&self, run: Option<&str>, asked: &Asked) -> bool {
        let Match { run: wanted, marker } = &self.script.matches;
        wanted.as_deref().is_none_or(|wanted| run == Some(wanted))
            && marker.as_ref().is_none_or(|marker| marker.is_in(&asked.turns.text))
    }

    /// The answer to a request that is made for the first time.
    #[must_use]
    pub fn answer(&self, dialect: Dialect, asked: &Asked) -> Answer {
        self.answer_again(dialect, asked, 0)
    }

    /// The answer to a request that was made `attempt` times before, as [`Attempts`] counts them.
    #[must_use]
    pub fn answer_again(&self, dialect: Dialect, asked: &Asked, attempt: u32) -> Answer {
        let turn = self.turn_for(asked);
        let fault = turn.fault_at(attempt);
        let ids = Ids::new(&self.digest, asked.turns.answered, self.is_side(asked));
        let reply = Reply::of(turn, fault, asked, ids);
        play::play(dialect, asked, turn, fault, &reply)
    }

    /// What tells this request from others where attempts count; nothing where they do not.
    fn attempt_key(&self, run: Option<&str>, asked: &Asked) -> Option<Digest> {
        self.turn_for(asked).times?;
        let text = Digest::of(asked.turns.text.as_bytes()).hex();
        let of = format!("{} {text} {} {}", self.digest.hex(), asked.turns.answered, run.unwrap_or_default());
        Some(Digest::of(of.as_bytes()))
    }

    fn turn_for(&self, asked: &Asked) -> &Turn {
        if self.is_side(asked) {
            return &self.side;
        }
        self.script.turns.at(asked.turns.answered, self.script.repeat).unwrap_or(&self.afterwards)
    }

    /// Whether a request is beside the conversation: it has one of the side's markers; or it has no tools, and the
    /// script has a side or calls tools.
    fn is_side(&self, asked: &Asked) -> bool {
        let side = self.script.side.as_ref();
        let marked =
            side.is_some_and(|side| side.markers.iter().any(|marker| marker.is_in(&asked.turns.text)));
        marked || (asked.tools.is_empty() && (side.is_some() || self.script.calls_tools()))
    }
}
