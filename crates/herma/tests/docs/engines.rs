//! The part of `docs/agents.md` that the code says: what each engine declares that it can do.

use std::collections::BTreeMap;

use herma_core::capability::{Capability, Support};
use herma_engines::Registry;
use schemars::schema_for;

use crate::generated::{head, row};
use crate::schema::Schema;

/// The meaning of each capability and support level, and the declarations of every engine.
pub(crate) fn capabilities() -> String {
    let mut text = String::new();
    let meanings = [("capability", schema_for!(Capability)), ("word", schema_for!(Support))];
    for (name, schema) in meanings {
        text += &head(&[name, "meaning"]);
        for word in Schema::of(&schema).words_at_the_top() {
            text += &row(&[&format!("`{}`", word.word), &word.what]);
        }
        text.push('\n');
    }
    let names = Capability::ALL.map(|capability| format!("`{capability}`"));
    let heads: Vec<&str> = std::iter::once("engine").chain(names.iter().map(String::as_str)).collect();
    text += &head(&heads);
    let registry = Registry::new("/herma".into(), None, BTreeMap::new(), &BTreeMap::new());
    for name in registry.names() {
        let declared = registry.get(&name).unwrap().capabilities();
        let words = Capability::ALL.map(|capability| declared.of(capability).as_str());
        text += &row(&[&[format!("`{name}`").as_str()], &words[..]].concat());
    }
    text
}
