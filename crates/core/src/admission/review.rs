//! When an admission has to be looked at again. A trigger is something that herma can evaluate, not a note.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The values that a review depends on.
#[derive(Clone, Copy)]
pub struct ReviewFacts<'a> {
    /// The time.
    pub now: Timestamp,
    /// herma's version.
    pub herma_version: &'a str,
    /// How many runs were started since the signature, with the one that asks; none where that cannot be told, and
    /// then a review by runs is due.
    pub runs: &'a dyn Fn() -> Option<u64>,
}

/// A condition that makes a review due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "TriggerFields", into = "TriggerFields")]
#[schemars(with = "TriggerFields")]
pub enum ReviewTrigger {
    /// From this day on, in UTC.
    Date(Date),
    /// After this many runs since the signature: of the engine, or for models and targets of the whole installation.
    Runs(u32),
    /// When herma is another version than this one: `0.1` means every `0.1.x`.
    HermaVersion(String),
    /// When the engine's program is another than the admitted one. For engines only.
    DigestChange,
}

/// Exactly one of them is there.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TriggerFields {
    /// From this day on, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date: Option<Date>,
    /// After this many runs since the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runs: Option<u32>,
    /// When herma is another version than this one: `0.1` means every `0.1.x`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    herma_version: Option<String>,
    /// When the engine's program is another than the admitted one. For engines only; only `true` means something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest_change: Option<bool>,
}

const EXPECTED: &str = "`review_trigger` is one of { date: 2027-01-31 }, { runs: 50 }, { herma_version: \"0.1\" } and \
                        { digest_change: true }";

impl TryFrom<TriggerFields> for ReviewTrigger {
    type Error = String;

    fn try_from(fields: TriggerFields) -> Result<Self, String> {
        match fields {
            TriggerFields { date: Some(date), runs: None, herma_version: None, digest_change: None } => {
                Ok(Self::Date(date))
            }
            TriggerFields {
                date: None,
                runs: Some(runs @ 1..),
                herma_version: None,
                digest_change: None,
            } => Ok(Self::Runs(runs)),
            TriggerFields { date: None, runs: None, herma_version: Some(version), digest_change: None }
                if is_version(&version) =>
            {
                Ok(Self::HermaVersion(version))
            }
            TriggerFields { date: None, runs: None, herma_version: None, digest_change: Some(true) } => {
                Ok(Self::DigestChange)
            }
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

impl From<ReviewTrigger> for TriggerFields {
    fn from(trigger: ReviewTrigger) -> Self {
        let none = Self::default();
        match trigger {
            ReviewTrigger::Date(date) => Self { date: Some(date), ..none },
            ReviewTrigger::Runs(runs) => Self { runs: Some(runs), ..none },
            ReviewTrigger::HermaVersion(version) => Self { herma_version: Some(version), ..none },
            ReviewTrigger::DigestChange => Self { digest_change: Some(true), ..none },
        }
    }
}

/// One to three numbers.
fn is_version(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').count() <= 3 && text.split('.').all(number)
}

/// As it is written in a file.
impl fmt::Display for ReviewTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => write!(f, "{{ date: {date} }}"),
            Self::Runs(runs) => write!(f, "{{ runs: {runs} }}"),
            Self::HermaVersion(version) => write!(f, "{{ herma_version: \"{version}\" }}"),
            Self::DigestChange => f.write_str("{ digest_change: true }"),
        }
    }
}

/// As it is written on a command line: `date=2027-01-31`, `runs=50`, `herma_version=0.1`, `digest_change`.
impl FromStr for ReviewTrigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').unwrap_or((text, "true"));
        let fields = TriggerFields::default();
        let fields = match key {
            "date" => TriggerFields { date: value.parse().ok(), ..fields },
            "runs" => TriggerFields { runs: value.parse().ok(), ..fields },
            "herma_version" => TriggerFields { herma_version: Some(value.to_owned()), ..fields },
            "digest_change" => TriggerFields { digest_change: value.parse().ok(), ..fields },
            _ => fields,
        };
        Self::try_from(fields).map_err(|_| {
            let shown: String = text.chars().take(60).collect();
            format!(
                "`{shown}` is not a review trigger: expected date=2027-01-31, runs=50, herma_version=0.1 or digest_change"
            )
        })
    }
}

/// When an admission ends by itself: at a time, when something happens, or both. Never neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    trigger: Option<ReviewTrigger>,
    expires_at: Option<Timestamp>,
}

impl Review {
    /// None if there is neither, because then no review would ever be due.
    #[must_use]
    pub fn new(trigger: Option<ReviewTrigger>, expires_at: Option<Timestamp>) -> Option<Self> {
        (trigger.is_some() || expires_at.is_some()).then_some(Self { trigger, expires_at })
    }

    /// Why the admission is over, where it is.
    #[must_use]
    pub fn due(&self, facts: &ReviewFacts<'_>) -> Option<String> {
        if let Some(at) = self.expires_at
            && facts.now >= at
        {
            return Some(format!("it expired at {at}"));
        }
        let why = match self.trigger.as_ref()? {
            ReviewTrigger::Date(date) => {
                // A day that is beyond what time can be is beyond now, too.
                let begins = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
                (facts.now >= begins).then(|| format!("{date} has come"))
            }
            ReviewTrigger::Runs(most) => match (facts.runs)() {
                None => Some("the runs since it was signed cannot be counted".to_owned()),
                Some(runs) => (runs > u64::from(*most))
                    .then(|| format!("it was signed for {most} runs, and this is one more")),
            },
            ReviewTrigger::HermaVersion(version) => {
                let now = facts.herma_version;
                let same = now
                    .strip_prefix(version)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']));
                (!same).then(|| format!("herma is {now}, not {version}"))
            }
            // The digest itself is compared wherever an engine is asked for.
            ReviewTrigger::DigestChange => None,
        };
        why.map(|why| format!("review is due: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(trigger: &str, now: &str, version: &str, runs: Option<u64>) -> Option<String> {
        let facts = ReviewFacts { now: now.parse().unwrap(), herma_version: version, runs: &|| runs };
        let review = Review::new(Some(trigger.parse().unwrap()), None).unwrap();
        review.due(&facts)
    }

    #[test]
    fn each_trigger_fires_when_its_time_has_come_and_not_before() {
        let (early, late) = ("2027-01-30T23:59:59Z", "2027-01-31T00:00:00Z");
        assert_eq!(due("date=2027-01-31", early, "0.1.0", None), None);
        assert_eq!(
            due("date=2027-01-31", late, "0.1.0", None).unwrap(),
            "review is due: 2027-01-31 has come"
        );
        assert_eq!(due("runs=3", early, "0.1.0", Some(3)), None);
        assert!(due("runs=3", early, "0.1.0", Some(4)).is_some());
        assert!(due("runs=3", early, "0.1.0", None).is_some(), "what cannot be counted is due");
        for same in ["0.1", "0.1.0", "0.1.7", "0.1-beta"] {
            assert_eq!(due("herma_version=0.1", early, same, None), None, "{same}");
        }
        for other in ["0.10", "0.2.0", "1.0.1", "0"] {
            assert!(due("herma_version=0.1", early, other, None).is_some(), "{other}");
        }
        assert_eq!(due("digest_change", late, "9", None), None);
    }

    #[test]
    fn an_admission_never_stands_for_ever() {
        assert_eq!(Review::new(None, None), None);
    }

    #[test]
    fn only_what_can_be_evaluated_is_a_trigger() {
        for text in [
            "",
            "later",
            "date=soon",
            "date=2027-02-30",
            "runs=0",
            "runs=-1",
            "herma_version=x",
            "herma_version=",
            "digest_change=false",
        ] {
            assert!(text.parse::<ReviewTrigger>().is_err(), "{text}");
        }
    }
}
