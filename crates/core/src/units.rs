//! Quantities as people write them: `20m`, `4GiB`, `200k`, `2.00`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The text is not a quantity of the wanted kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {kind}: write it like {example}")]
pub struct BadQuantity {
    text: String,
    kind: &'static str,
    example: &'static str,
}

/// A whole number and its unit, where the unit is one of `units`.
fn scaled(
    text: &str,
    units: &[(&str, u64)],
    kind: &'static str,
    example: &'static str,
) -> Result<u64, BadQuantity> {
    let bad = || BadQuantity { text: text.chars().take(40).collect(), kind, example };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| bad())?;
    let scale = units.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?.1;
    number.checked_mul(scale).ok_or_else(bad)
}

/// The largest unit of `units` that divides `value`, so that writing and reading give the same value.
fn unscaled(value: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fits = |scale: &u64| value.is_multiple_of(*scale) && value >= *scale;
    match units.iter().filter(|(_, scale)| fits(scale)).max_by_key(|(_, scale)| *scale) {
        Some((unit, scale)) => write!(f, "{}{unit}", value / scale),
        None => write!(f, "{value}{}", units[0].0),
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $units:expr, $kind:literal, $example:literal, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String", extend("pattern" = $pattern))]
        pub struct $name(pub u64);

        impl FromStr for $name {
            type Err = BadQuantity;

            fn from_str(text: &str) -> Result<Self, BadQuantity> {
                scaled(text, &$units, $kind, $example).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                unscaled(self.0, &$units, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadQuantity;

            fn try_from(text: String) -> Result<Self, BadQuantity> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}

quantity!(
    /// A length of time in milliseconds, written `90s`, `20m`, `2h` or `250ms`.
    Span,
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)],
    "a length of time",
    "`250ms`, `90s`, `20m` or `2h`",
    "^[0-9]+(ms|s|m|h)$"
);

quantity!(
    /// A number of bytes, written `512MiB` or `4GiB`.
    Bytes,
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    "an amount of memory",
    "`512MiB` or `4GiB`",
    "^[0-9]+(B|KiB|MiB|GiB)$"
);

quantity!(
    /// A number of model tokens, written `200k` or `2M`.
    Tokens,
    [("", 1), ("k", 1_000), ("M", 1_000_000)],
    "a number of tokens",
    "`5000`, `200k` or `2M`",
    "^[0-9]+(k|M)?$"
);

impl Span {
    /// The same length as the standard library's type.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// An amount of US dollars in millionths, so that sums are exact; written `2.00`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = r"^[0-9]+(\.[0-9]{1,6})?$"))]
pub struct Usd(pub u64);

impl FromStr for Usd {
    type Err = BadQuantity;

    fn from_str(text: &str) -> Result<Self, BadQuantity> {
        let bad = || BadQuantity {
            text: text.chars().take(40).collect(),
            kind: "an amount of US dollars",
            example: "`2.00`",
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 6 {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let micros: u64 = format!("{part:0<6}").parse().map_err(|_| bad())?;
        whole.checked_mul(1_000_000).and_then(|w| w.checked_add(micros)).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % 1_000_000);
        let shown = part.trim_end_matches('0');
        write!(f, "{}.{shown:0<2}", self.0 / 1_000_000)
    }
}

impl TryFrom<String> for Usd {
    type Error = BadQuantity;

    fn try_from(text: String) -> Result<Self, BadQuantity> {
        text.parse()
    }
}

impl From<Usd> for String {
    fn from(value: Usd) -> Self {
        value.to_string()
    }
}

/// Whether a counter is left out of a file.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn people_write_quantities_with_units() {
        assert_eq!("20m".parse::<Span>().unwrap().duration(), Duration::from_mins(20));
        assert_eq!("4GiB".parse::<Bytes>().unwrap(), Bytes(4 << 30));
        assert_eq!("200k".parse::<Tokens>().unwrap(), Tokens(200_000));
        assert_eq!("2.5".parse::<Usd>().unwrap(), Usd(2_500_000));
    }

    #[test]
    fn a_quantity_without_a_unit_or_too_large_is_refused() {
        for text in ["", "m", "20", "20 m", "-1s", "1.5h", "99999999999999999999s", "18446744073709551615h"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["", ".", "1.", "-1", "1e3", "1.1234567"] {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn writing_and_reading_give_the_same_value(n in any::<u64>()) {
            prop_assert_eq!(Span(n).to_string().parse(), Ok(Span(n)));
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
            prop_assert_eq!(Tokens(n).to_string().parse(), Ok(Tokens(n)));
            prop_assert_eq!(Usd(n).to_string().parse(), Ok(Usd(n)));
        }
    }
}
