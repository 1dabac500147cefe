//! An age as people write it: `12h`, `14d`, `8w`.

use std::str::FromStr;

use herma_core::Timestamp;
use jiff::SignedDuration;

/// The units and their seconds.
const UNITS: [(&str, i64); 5] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 604_800)];

/// A length of time since an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age(SignedDuration);

/// The text is no age.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an age: write it like `12h`, `14d` or `8w`")]
pub struct BadAge(String);

impl Age {
    /// The latest time that is at least this long ago; none if there is no such time.
    #[must_use]
    pub fn before(self, now: Timestamp) -> Option<Timestamp> {
        now.checked_sub(self.0).ok()
    }
}

impl FromStr for Age {
    type Err = BadAge;

    fn from_str(text: &str) -> Result<Self, BadAge> {
        let bad = || BadAge(text.chars().take(40).collect());
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: i64 = number.parse().map_err(|_| bad())?;
        let seconds = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?.1;
        number.checked_mul(seconds).map(|seconds| Self(SignedDuration::from_secs(seconds))).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_number_and_a_unit() {
        assert_eq!("14d".parse(), Ok(Age(SignedDuration::from_hours(14 * 24))));
        assert_eq!("0s".parse(), Ok(Age(SignedDuration::ZERO)));
        for bad in ["", "14", "d", "-1d", "1y", "1.5h", "99999999999999999w"] {
            assert_eq!(bad.parse::<Age>(), Err(BadAge(bad.to_owned())), "{bad}");
        }
    }
}
