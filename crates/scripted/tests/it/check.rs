//! Strict readers of each dialect: they refuse what the public format does not allow, and give what was said.

mod chat;
mod messages;
mod responses;

use herma_dialect::Dialect;
use serde_json::Value;

/// The content of an answer, streamed or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) think: String,
    pub(crate) say: String,
    pub(crate) refuse: String,
    /// Id, name and input of each call.
    pub(crate) calls: Vec<(String, String, String)>,
    /// Why it ended.
    pub(crate) stop: String,
    /// Its usage, as it is written.
    pub(crate) usage: Option<Value>,
}

/// The content of a stream. `usage` is whether the client asked for it in the stream.
pub(crate) fn stream(dialect: Dialect, text: &str, usage: bool) -> Said {
    let events = events(text);
    sorted(match dialect {
        Dialect::Chat => chat::stream(&events, usage),
        Dialect::Responses => responses::stream(&events),
        Dialect::Messages => messages::stream(&events),
    })
}

/// The content of a body.
pub(crate) fn whole(dialect: Dialect, body: &Value) -> Said {
    sorted(match dialect {
        Dialect::Chat => chat::whole(body),
        Dialect::Responses => responses::whole(body),
        Dialect::Messages => messages::whole(body),
    })
}

/// The same with the keys of all arguments in one order.
fn sorted(mut said: Said) -> Said {
    for (_, _, input) in &mut said.calls {
        if let Ok(value) = serde_json::from_str::<Value>(input) {
            *input = value.to_string();
        }
    }
    said
}

/// One event: its name, and its data.
pub(crate) type Event = (Option<String>, String);

/// The events of a stream: `event:` at most once, then `data:` once, then an empty line.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let body = text.strip_suffix("\n\n").unwrap_or_else(|| panic!("the last event is not ended: {text:?}"));
    body.split("\n\n")
        .map(|event| {
            let (name, data) = match event.split_once('\n') {
                Some((name, data)) => (Some(name.strip_prefix("event: ").unwrap().to_owned()), data),
                None => (None, event),
            };
            let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("no data: {event:?}"));
            assert!(!data.contains(['\n', '\r']), "{data:?}");
            (name, data.to_owned())
        })
        .collect()
}

/// The event's data, whose type must be its name.
fn typed((name, data): &Event) -> (String, Value) {
    let value: Value = serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {data}"));
    let kind = text(&value["type"]);
    assert_eq!(name.as_deref(), Some(kind.as_str()), "the name is the type");
    (kind, value)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

fn optional_text(value: &Value) -> String {
    if value.is_null() { String::new() } else { text(value) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}
