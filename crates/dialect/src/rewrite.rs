//! Changes to a request body that leave all its other bytes as they are.

use std::ops::Range;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::request::{MaximumKey, Outline, StreamOptions};

/// The changes to a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewrite<'a> {
    /// The model to ask instead.
    pub model: Option<&'a str>,
    /// The bound of the output.
    pub max_output: Option<OutputBound>,
    /// Have a chat stream end with its usage. It changes nothing where the client asked for it, or for no stream.
    pub include_usage: bool,
    /// Say that the answer is not to be stored, where the client does not say.
    pub not_stored: bool,
}

/// A bound of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBound {
    /// No maximum in the body stays larger than this.
    pub at_most: u64,
    /// The key to insert where the body has no maximum: the one that the upstream knows.
    pub key: MaximumKey,
    /// Insert the key also where the body has only other ones. For upstreams that do not know those.
    pub beside_others: bool,
}

/// Bytes of a body that are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Which bytes; none, where something is inserted.
    pub at: Range<usize>,
    /// By what.
    pub with: String,
}

impl Splice {
    fn replace(at: &Range<usize>, with: impl Into<String>) -> Self {
        Self { at: at.clone(), with: with.into() }
    }

    fn insert(at: usize, with: String) -> Self {
        Self { at: at..at, with }
    }
}

impl Outline<'_> {
    /// Which bytes of the body change, in order. Nothing changes where the body already says what is wanted.
    #[must_use]
    pub fn splices(&self, rewrite: &Rewrite<'_>) -> Vec<Splice> {
        let mut splices = Vec::new();
        if let Some(model) = rewrite.model.filter(|model| *model != self.model) {
            splices.push(Splice::replace(&self.spans.model, Value::from(model).to_string()));
        }
        if let Some(bound) = rewrite.max_output {
            self.bound(bound, &mut splices);
        }
        if rewrite.include_usage
            && self.stream
            && self.dialect == Dialect::Chat
            && self.include_usage != Some(true)
        {
            splices.push(self.with_usage());
        }
        if rewrite.not_stored && self.store.is_none() {
            splices.push(match &self.spans.store {
                Some(null) => Splice::replace(null, "false"),
                None => Splice::insert(self.spans.start, r#""store":false,"#.to_owned()),
            });
        }
        splices.sort_by_key(|splice| splice.at.start);
        splices
    }

    /// The body with the changes.
    #[must_use]
    pub fn rewritten(&self, rewrite: &Rewrite<'_>) -> String {
        self.spliced(&self.splices(rewrite))
    }

    /// The body with these bytes replaced.
    #[must_use]
    pub fn spliced(&self, splices: &[Splice]) -> String {
        let added: usize = splices.iter().map(|splice| splice.with.len()).sum();
        let mut out = String::with_capacity(self.body.len() + added);
        let mut from = 0;
        for splice in splices {
            out.push_str(&self.body[from..splice.at.start]);
            out.push_str(&splice.with);
            from = splice.at.end;
        }
        out.push_str(&self.body[from..]);
        out
    }

    fn bound(&self, bound: OutputBound, splices: &mut Vec<Splice>) {
        let OutputBound { at_most, key, beside_others } = bound;
        let maxima = &self.spans.maxima;
        let larger = maxima.iter().filter(|maximum| maximum.value.is_some_and(|value| value > at_most));
        splices.extend(larger.map(|maximum| Splice::replace(&maximum.span, at_most.to_string())));
        if self.max_output.is_some() && !beside_others {
            return;
        }
        let least = maxima.iter().filter_map(|maximum| maximum.value).fold(at_most, u64::min);
        match maxima.iter().find(|maximum| maximum.key == key) {
            // Never empty behind it: the model is there.
            None => splices.push(Splice::insert(self.spans.start, format!(r#""{}":{least},"#, key.name()))),
            Some(maximum) if maximum.value.is_none() => {
                splices.push(Splice::replace(&maximum.span, least.to_string()));
            }
            Some(_) => {}
        }
    }

    fn with_usage(&self) -> Splice {
        match &self.spans.stream_options {
            None => {
                Splice::insert(self.spans.start, r#""stream_options":{"include_usage":true},"#.to_owned())
            }
            Some(StreamOptions::Null(span)) => Splice::replace(span, r#"{"include_usage":true}"#),
            Some(StreamOptions::Object { include_usage: Some(span), .. }) => Splice::replace(span, "true"),
            Some(StreamOptions::Object { start, empty, include_usage: None }) => {
                let comma = if *empty { "" } else { "," };
                Splice::insert(*start, format!(r#""include_usage":true{comma}"#))
            }
        }
    }
}
