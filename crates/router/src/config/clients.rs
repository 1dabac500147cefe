//! Who may ask besides runs, which get a token of their own.

use super::document::{Read, Value};
use super::limits::{budget, maybe, or};
use super::models::{all, model_name};
use super::names::{instead, name_problem};
use super::sources::{self, KeySource};
use crate::budget::Limits;
use crate::dialect::Reach;

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where its token lies.
    pub token: KeySource,
    /// The models it may ask, by their names in `[models]`. Never empty.
    pub models: Vec<String>,
    /// Its own budget.
    pub budget: Limits,
    /// What its requests may make an upstream do besides answering.
    pub admit: Vec<Reach>,
    /// The engine whose budget its calls count against too.
    pub engine: Option<String>,
}

const REACHES: &[Reach] = &[
    Reach::HostedTool,
    Reach::RemoteMcp,
    Reach::RemoteUrl,
    Reach::StoredFile,
    Reach::StoredConversation,
    Reach::Background,
    Reach::OtherModels,
];

/// The word for it in a configuration.
fn word(reach: Reach) -> &'static str {
    match reach {
        Reach::HostedTool => "hosted_tool",
        Reach::RemoteMcp => "remote_mcp",
        Reach::RemoteUrl => "remote_url",
        Reach::StoredFile => "stored_file",
        Reach::StoredConversation => "stored_conversation",
        Reach::Background => "background",
        Reach::OtherModels => "other_models",
    }
}

/// `[clients.NAME]`.
pub(super) fn client(value: &Value<'_, '_>) -> Read<ClientConfig> {
    const EXPECTED: &str = "`models = [\"NAME\"]`, with names of `[models]`";
    let mut keys = value.keys("a table with `token` and `models` in it")?;
    let token = keys.need("token", "where it lies: `token = { env = \"NAME\" }`");
    let token = token.and_then(|value| sources::key(&value));
    let models = keys.need("models", EXPECTED).and_then(|value| {
        let list = value.list(EXPECTED)?;
        if list.is_empty() {
            return value
                .refuse("is empty, so that the client could ask nothing", format!("expected {EXPECTED}"));
        }
        all(&list, model_name)
    });
    let budget = budget(keys.get("budget"));
    let admit = or(keys.get("admit"), Vec::new(), |value| {
        all(&value.list("a list, like `[\"remote_url\"]`")?, reach)
    });
    let engine = maybe(keys.get("engine"), engine);
    keys.done();
    Ok(ClientConfig { token: token?, models: models?, budget: budget?, admit: admit?, engine: engine? })
}

fn reach(value: &Value<'_, '_>) -> Read<Reach> {
    let words: Vec<&str> = REACHES.iter().map(|reach| word(*reach)).collect();
    let text = value.text("a word, like `remote_url`")?;
    let known = REACHES.iter().find(|reach| word(**reach) == text).copied();
    known.map_or_else(|| value.refuse("is nothing that can be admitted", instead(text, &words)), Ok)
}

fn engine(value: &Value<'_, '_>) -> Read<String> {
    let text = value.text("the name of an engine")?;
    match name_problem(text) {
        Some(expected) => value.refuse("is not an engine's name", expected),
        None => Ok(text.to_owned()),
    }
}
