//! The shape of a report: which of its fields have a value, and of which JSON type.

use std::collections::BTreeSet;

use herma_core::Report;
use serde_json::Value;

/// Fields in which two engines may differ though both did equally well, so that they are no part of the shape:
/// which provider answered is known only of an engine that calls a model, and the questions about tools only of one that
/// has some, which `fake` never does; and an engine may have a part of its work done in a child run, or change a build file.
const DEPENDS_ON_THE_ENGINE: [&str; 4] =
    ["/model_runtime_provider", "/tools", "/children", "/changed_verification_files"];

/// Fields whose inside is no part of the shape, only that they are there. `not_applicable` and `artifacts` have free
/// keys, and the criterion of artifacts judges them; the reasons under `egress` are the hosts that an agent tried to reach.
/// How an engine exited differs between one that ends by itself
/// (a code, no signal) and one that lingers after its result and is ended (a signal, no code), which is no fault.
const CLOSED: [&str; 5] =
    ["/not_applicable", "/artifacts", "/engine_exit", "/egress/denied", "/egress/failed"];

/// Everything in a report that is not null, by its JSON pointer. Names, versions, digests, admissions and numbers
/// differ between engines as they should, so values are no part of it. A list is there or not: what is in it is what
/// the engine did (an added file has no `old`), not how herma reports it, and every element has the type of the
/// format anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(BTreeSet<(String, Kind)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Truth,
    Number,
    Text,
    List,
    Map,
}

impl Shape {
    /// The shape of this report; empty if it has no JSON form.
    pub(crate) fn of(report: &Report) -> Self {
        let mut shape = Self::default();
        if let Ok(Value::Object(fields)) = serde_json::to_value(report) {
            for (key, value) in &fields {
                shape.note(format!("/{key}"), value);
            }
        }
        shape
    }

    fn note(&mut self, pointer: String, value: &Value) {
        if DEPENDS_ON_THE_ENGINE.contains(&pointer.as_str()) {
            return;
        }
        let kind = match value {
            Value::Null => return,
            Value::Bool(_) => Kind::Truth,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::Text,
            Value::Array(_) => Kind::List,
            Value::Object(fields) => {
                if !CLOSED.contains(&pointer.as_str()) {
                    for (key, value) in fields {
                        self.note(format!("{pointer}/{key}"), value);
                    }
                }
                Kind::Map
            }
        };
        self.0.insert((pointer, kind));
    }

    /// The common part.
    pub(crate) fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// The fields that have a value in the other and none here, or one of another type.
    pub(crate) fn lacks<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        other.0.difference(&self.0).map(|(pointer, _)| pointer.as_str())
    }
}
