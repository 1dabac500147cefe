//! The scripted upstream: it replays a script in place of a model. No network, and the same answer to the same request.
//!
//! A script lists the answers turn by turn. The conversation in the request determines the turn: the number of answers in
//! it. So no state is kept between requests, and a client may use any dialect, streamed or not.
//!
//! [`Replay`] is all that the router needs: it gives the [`Answer`] to a request body. No sockets, files or clocks.

mod answer;
mod call;
mod fixed_answers;
mod ids;
mod play;
mod render;
mod replay;
mod reply;
mod script;
mod scripted;
mod scripts;
mod tools;
mod turn;

pub use answer::{Answer, Headers, StreamStep};
pub use call::{Call, EditFile, NamedTool, ToolInput, WriteFile};
pub use replay::Replay;
pub use reply::count_tokens;
pub use script::{BadScript, MAX_BYTES, Marker, Match, Script, ScriptName, Side, Turns};
pub use scripted::Scripted;
pub use scripts::{Attempts, SameName, Scripts};
pub use tools::{
    Chosen, FileOperation, Input, Intent, KNOWN_TOOLS, KnownTool, PROVIDER_TOOLS, Part, ToolCall, choose,
};
pub use turn::{Content, Cut, Delay, Fault, Forever, HttpError, Stop, Turn, Used};
