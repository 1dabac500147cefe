//! The usage of an answer.

use serde::Deserialize;

use crate::dialect::Dialect;

/// The tokens that a call used, counted alike for all dialects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens of the input, also those from and for a cache.
    pub input: u64,
    /// All tokens of the output, also those of reasoning.
    pub output: u64,
    /// Of the input: what was read from a cache.
    pub cached_input: u64,
    /// Of the input: what was written to a cache.
    pub cache_write: u64,
    /// Of what was written to a cache: what is to stay there for an hour.
    pub cache_write_long: u64,
    /// Of the output: what was reasoning, where the upstream says it.
    pub reasoning: u64,
}

/// Why a usage that was reported is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A later report lowers an earlier one, or the last report of a stream comes twice.
    Contradictory,
    /// The stream goes on after its end.
    AfterEnd,
}

impl Doubt {
    /// The reason as the record has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Contradictory => "contradictory_usage",
            Self::AfterEnd => "events_after_end",
        }
    }
}

/// The counts as they are written, in whichever of the known shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
    /// `DeepSeek`'s spelling of what came from its cache.
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's spelling of the same.
    cached_tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

impl Counts {
    /// Takes over the counts of a later event, and keeps the others.
    pub(super) fn merge(&mut self, later: Self) {
        *self = Self {
            prompt_tokens: later.prompt_tokens.or(self.prompt_tokens),
            completion_tokens: later.completion_tokens.or(self.completion_tokens),
            total_tokens: later.total_tokens.or(self.total_tokens),
            prompt_tokens_details: later.prompt_tokens_details.or(self.prompt_tokens_details),
            completion_tokens_details: later.completion_tokens_details.or(self.completion_tokens_details),
            prompt_cache_hit_tokens: later.prompt_cache_hit_tokens.or(self.prompt_cache_hit_tokens),
            cached_tokens: later.cached_tokens.or(self.cached_tokens),
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            input_tokens_details: later.input_tokens_details.or(self.input_tokens_details),
            output_tokens_details: later.output_tokens_details.or(self.output_tokens_details),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation: later.cache_creation.or(self.cache_creation),
        };
    }

    pub(super) fn without_output(self) -> Self {
        Self { output_tokens: None, ..self }
    }

    /// Whether a later report says less than this one.
    pub(super) fn is_lowered_by(&self, later: &Self) -> bool {
        let counts = |counts: &Self| {
            let cached = |details: Option<InputDetails>| details.and_then(|details| details.cached_tokens);
            [
                counts.prompt_tokens,
                counts.completion_tokens,
                counts.total_tokens,
                counts.input_tokens,
                counts.output_tokens,
                counts.cache_creation_input_tokens,
            ]
            .map(|count| (count, false))
            .into_iter()
            // Input from a cache costs less: more of it lowers the cost.
            .chain(
                [
                    cached(counts.prompt_tokens_details),
                    cached(counts.input_tokens_details),
                    counts.prompt_cache_hit_tokens,
                    counts.cached_tokens,
                ]
                .map(|count| (count, true)),
            )
        };
        counts(self).zip(counts(later)).any(|((earlier, is_discount), (later, _))| match (earlier, later) {
            (Some(earlier), Some(later)) if is_discount => later > earlier,
            (Some(earlier), Some(later)) => later < earlier,
            _ => false,
        })
    }

    /// The usage, if both sides of it are known. Half of it would settle a call at less than it cost.
    pub(super) fn usage(&self, dialect: Dialect) -> Option<Usage> {
        let counted = if dialect == Dialect::Messages { self.messages() } else { self.open_ai() }?;
        // A part is never more than the whole, whatever the upstream says: prices are drawn from the differences.
        let cached_input = counted.cached_input.min(counted.input);
        let cache_write = counted.cache_write.min(counted.input - cached_input);
        Some(Usage {
            cached_input,
            cache_write,
            cache_write_long: counted.cache_write_long.min(cache_write),
            reasoning: counted.reasoning.min(counted.output),
            ..counted
        })
    }

    fn open_ai(&self) -> Option<Usage> {
        let input = self.prompt_tokens.or(self.input_tokens)?;
        let written = self.completion_tokens.or(self.output_tokens);
        // Some servers leave reasoning out of the output and have it in the total only.
        let from_total = self.total_tokens.map(|total| total.saturating_sub(input));
        let input_details = self.prompt_tokens_details.or(self.input_tokens_details).unwrap_or_default();
        let output_details =
            self.completion_tokens_details.or(self.output_tokens_details).unwrap_or_default();
        let cached = input_details.cached_tokens.or(self.prompt_cache_hit_tokens).or(self.cached_tokens);
        Some(Usage {
            input,
            output: written.max(from_total)?,
            cached_input: cached.unwrap_or(0),
            cache_write: input_details.cache_write_tokens.unwrap_or(0),
            cache_write_long: 0,
            reasoning: output_details.reasoning_tokens.unwrap_or(0),
        })
    }

    fn messages(&self) -> Option<Usage> {
        let cached_input = self.cache_read_input_tokens.unwrap_or(0);
        let cache_write = self.cache_creation_input_tokens.unwrap_or(0);
        let long = self.cache_creation.and_then(|creation| creation.ephemeral_1h_input_tokens);
        Some(Usage {
            input: self.input_tokens?.saturating_add(cached_input).saturating_add(cache_write),
            output: self.output_tokens?,
            cached_input,
            cache_write,
            cache_write_long: long.unwrap_or(0),
            reasoning: self.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        })
    }
}
