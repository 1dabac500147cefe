//! What models cost: a table that is data.

use super::document::{Read, Value};
use super::limits::{maybe, micro_usd};
use super::names::{model_name_problem, name_problem};
use crate::budget::Price;

const EXPECTED: &str = "`{ input = \"1.25\", output = \"10.00\", cached_input = \"0.125\" }`, in US dollars for a \
                        million tokens";

/// `prices."upstream/model"`. What is read from a cache costs as much as other input where nothing is said, so that a
/// budget is never undercharged; what writing to one costs then is known to [`Price`].
pub(super) fn price(name: &str, value: &Value<'_, '_>) -> Read<Price> {
    let sound = name
        .split_once('/')
        .is_some_and(|(upstream, model)| name_problem(upstream).or(model_name_problem(model)).is_none());
    let mut keys = value.keys(EXPECTED)?;
    let input = keys.need("input", "what a million tokens cost, like `input = \"1.25\"`");
    let output = keys.need("output", "what a million tokens cost, like `output = \"10.00\"`");
    let input = input.and_then(|value| micro_usd(&value));
    let output = output.and_then(|value| micro_usd(&value));
    let [cached_input, cache_write, cache_write_long] =
        ["cached_input", "cache_write", "cache_write_long"].map(|key| maybe(keys.get(key), micro_usd));
    keys.done();
    if !sound {
        return value
            .refuse("is not the price of `upstream/model`", "expected a key like `\"openai/gpt-5\"`");
    }
    let (input, output) = (input?, output?);
    Ok(Price {
        input,
        output,
        cached_input: cached_input?.unwrap_or(input),
        cache_write: cache_write?,
        cache_write_long: cache_write_long?,
    })
}
