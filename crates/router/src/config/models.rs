//! What may be asked, and who answers it.

use super::document::{Read, Value};
use super::limits::{or, some_tokens};
use super::names::{model_name_problem, name_problem, shown};

/// The most tokens of an answer, where the client names no maximum.
const DEFAULT_OUTPUT: u64 = 32_768;
/// The most tokens of an answer.
const CEILING: u64 = 131_072;

/// One model that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Upstreams, and what the model is called there, in the order in which they are tried. Never empty.
    pub chain: Vec<(String, String)>,
    /// Further names that clients may ask it by.
    pub aliases: Vec<String>,
    /// The most tokens of an answer, where the client names no maximum.
    pub default_output: u64,
    /// The most tokens of an answer.
    pub ceiling: u64,
}

/// `[models.NAME]`.
pub(super) fn model(value: &Value<'_, '_>) -> Read<ModelConfig> {
    const EXPECTED: &str = "`chain = [\"upstream/model\"]`";
    let mut keys = value.keys("a table with `chain` in it")?;
    let chain = keys.need("chain", EXPECTED).and_then(|value| {
        let list = value.list(EXPECTED)?;
        if list.is_empty() {
            return value.refuse("is empty, so that nobody would answer", format!("expected {EXPECTED}"));
        }
        all(&list, link)
    });
    let aliases = or(keys.get("aliases"), Vec::new(), |value| {
        all(&value.list("a list of names, like `[\"fast\"]`")?, model_name)
    });
    let ceiling = or(keys.get("ceiling"), CEILING, some_tokens);
    let written = keys.get("default_output");
    let says_default = written.is_some();
    let default_output = or(written, DEFAULT_OUTPUT, some_tokens);
    keys.done();
    let (chain, aliases, ceiling, default_output) = (chain?, aliases?, ceiling?, default_output?);
    if default_output > ceiling && says_default {
        return value.refuse(
            "has a `default_output` above its `ceiling`",
            format!("expected at most {ceiling}, or a higher `ceiling`"),
        );
    }
    Ok(ModelConfig { chain, aliases, default_output: default_output.min(ceiling), ceiling })
}

fn link(value: &Value<'_, '_>) -> Read<(String, String)> {
    let text = value.text("`upstream/model`, in quotes")?;
    let Some((upstream, model)) = text.split_once('/') else {
        return value.refuse(
            "is not `upstream/model`",
            "expected an upstream's name, `/`, and the model's name there",
        );
    };
    if let Some(expected) = name_problem(upstream) {
        return value.refuse("does not start with an upstream's name", expected);
    }
    if let Some(expected) = model_name_problem(model) {
        return value.refuse("does not end with a model's name", expected);
    }
    Ok((upstream.to_owned(), model.to_owned()))
}

/// The name of a model that stands as a value.
pub(super) fn model_name(value: &Value<'_, '_>) -> Read<String> {
    let text = value.text("the name of a model")?;
    match model_name_problem(text) {
        Some(expected) => value.refuse(&format!("is not a model's name: {}", shown(text)), expected),
        None => Ok(text.to_owned()),
    }
}

/// Every value, if all can be read; all are looked at.
pub(super) fn all<'r, 't, T>(
    list: &[Value<'r, 't>],
    read: impl Fn(&Value<'r, 't>) -> Read<T>,
) -> Read<Vec<T>> {
    let read: Vec<Read<T>> = list.iter().map(read).collect();
    read.into_iter().collect()
}
