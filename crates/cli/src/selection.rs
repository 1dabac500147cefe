//! Which runs `herma runs` and `herma usage` are about.

use herma_api::RunFilter;
use herma_core::Timestamp;

use crate::args::Selection;
use crate::failure::Failure;

/// The filter of these arguments.
pub(crate) fn filter(args: &Selection, now: Timestamp) -> Result<RunFilter, Failure> {
    let since = args.since.as_deref().map(|text| point_in_time(text, now)).transpose()?;
    Ok(RunFilter {
        all: args.all,
        contract: args.contract.as_ref().map(ToString::to_string),
        engine: args.engine.clone(),
        repository: args.repo.clone(),
        status: args.status.map(Into::into),
        since,
    })
}

/// A time, or a length of time before now.
fn point_in_time(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let bad = || {
        Failure::bad_input(format!("--since: `{text}` is no time"))
            .hint("write `90m`, `12h`, `2d` or `3w`, or a time such as `2026-01-31T08:00:00Z`")
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: i64 = number.parse().map_err(|_| bad())?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(bad()),
    };
    let before = number.checked_mul(seconds).and_then(|length| now.as_second().checked_sub(length));
    before.and_then(|second| Timestamp::from_second(second).ok()).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_length_before_now_or_a_point() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        for (text, at) in [
            ("90m", "2026-03-10T10:30:00Z"),
            ("2d", "2026-03-08T12:00:00Z"),
            ("1w", "2026-03-03T12:00:00Z"),
            ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        ] {
            assert_eq!(point_in_time(text, now).unwrap(), at.parse().unwrap(), "{text}");
        }
        for bad in ["", "2", "d", "2y", "-2d", "99999999999999999w", "yesterday"] {
            assert!(point_in_time(bad, now).is_err(), "{bad}");
        }
    }
}
