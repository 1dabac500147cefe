//! The demand of a call on the budgets, and how much of it fits.

use std::fmt;

use super::{Amount, Limits, Price};

/// The demand of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The most tokens that the input can have.
    pub input: u64,
    /// The tokens of output that it wants for each answer.
    pub output: u64,
    /// With less than this for each answer it is not worth being made.
    pub least_output: u64,
    /// How many answers it wants; none is one.
    pub choices: u64,
    /// The price of the tokens, if it is known.
    pub price: Option<Price>,
}

/// The reason why a budget refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lack {
    /// Calls.
    Requests,
    /// Tokens.
    Tokens,
    /// Money.
    Usd,
    /// It is a budget in money, and the price of the model is unknown.
    Price,
    /// It is not open.
    Budget,
    /// It is shared with other processes, and their spending could not be read.
    Store,
}

impl Lack {
    /// Its code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Usd => "usd",
            Self::Price => "price",
            Self::Budget => "budget",
            Self::Store => "store",
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Ask {
    /// The most that the call can cost with so much output for each answer.
    #[must_use]
    pub fn most(&self, output: u64) -> Amount {
        let output = output.saturating_mul(self.choices.max(1));
        Amount {
            micro_usd: self.price.map_or(0, |price| price.most(self.input, output)),
            requests: 1,
            tokens: self.input.saturating_add(output),
        }
        .bounded()
    }

    /// The most output for each answer that fits into what is left, and at most `output`; or what there is too little of.
    pub(super) fn fit(&self, output: u64, limits: &Limits, left: Amount) -> Result<u64, Lack> {
        let fits = [
            (Lack::Requests, Some(LARGEST_OUTPUT).filter(|_| left.requests > 0)),
            (Lack::Tokens, self.fit_tokens(limits, left)),
            (Lack::Usd, self.fit_money(limits, left)?),
        ];
        let least = self.least_output.min(self.output);
        let mut output = output;
        for (what, fits) in fits {
            output = fits.filter(|fits| *fits >= least).ok_or(what)?.min(output);
        }
        Ok(output)
    }

    fn fit_tokens(&self, limits: &Limits, left: Amount) -> Option<u64> {
        if limits.tokens.is_none() {
            return Some(LARGEST_OUTPUT);
        }
        Some(left.tokens.checked_sub(self.input)? / self.choices.max(1))
    }

    fn fit_money(&self, limits: &Limits, left: Amount) -> Result<Option<u64>, Lack> {
        if limits.micro_usd.is_none() {
            return Ok(Some(LARGEST_OUTPUT));
        }
        let price = self.price.ok_or(Lack::Price)?;
        Ok(price.output_for(left.micro_usd, self.input).map(|output| output / self.choices.max(1)))
    }
}

/// No limit.
const LARGEST_OUTPUT: u64 = u64::MAX;
