//! The figures of one contender, from the samples of its rounds.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

/// One contender: medians over the rounds. A figure that was not measured is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The contender.
    pub name: String,
    /// Requests per second, many connections at once, all processes on the same cores.
    pub rps: Option<f64>,
    /// CPU time of the gateway's processes for one request at that load, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Latency that it adds to the median request over one connection, in microseconds.
    pub added_p50_us: Option<f64>,
    /// Latency that it adds at the 99th percentile, in microseconds.
    pub added_p99_us: Option<f64>,
    /// Latency that it adds to the first byte of a stream, median, in microseconds.
    pub added_first_byte_us: Option<f64>,
    /// CPU time of the gateway's processes for 1,000 chunks of paced streams, in milliseconds.
    pub cpu_ms_per_1k_chunks: Option<f64>,
    /// Memory of the gateway's processes while streams are open, in MiB.
    pub rss_mib: Option<f64>,
    /// How many streams were open then.
    pub open_streams: Option<u64>,
}

/// A contender that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The contender.
    pub name: String,
    /// Why.
    pub why: String,
}

/// The samples of one contender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    pub(crate) rps: Vec<f64>,
    pub(crate) cpu_us_per_request: Vec<f64>,
    pub(crate) added_p50_us: Vec<f64>,
    pub(crate) added_p99_us: Vec<f64>,
    pub(crate) added_first_byte_us: Vec<f64>,
    pub(crate) cpu_ms_per_1k_chunks: Vec<f64>,
    /// Memory in bytes, and the streams that were open.
    pub(crate) open: Option<(u64, usize)>,
}

impl Samples {
    /// The medians, rounded to what they are worth.
    pub(crate) fn row(self, name: &str) -> Row {
        Row {
            name: name.to_owned(),
            rps: median(self.rps),
            cpu_us_per_request: median(self.cpu_us_per_request),
            added_p50_us: median(self.added_p50_us),
            added_p99_us: median(self.added_p99_us),
            added_first_byte_us: median(self.added_first_byte_us),
            cpu_ms_per_1k_chunks: median(self.cpu_ms_per_1k_chunks),
            rss_mib: self.open.map(|(bytes, _)| rounded(number(bytes) / 1_048_576.0)),
            open_streams: self.open.map(|(_, streams)| streams as u64),
        }
    }
}

/// Latency that a contender adds to direct requests at this quantile, in microseconds. Noise can make
/// it negative.
pub(crate) fn added_us(direct: &[Duration], through: &[Duration], share: f64) -> f64 {
    (at(through, share) - at(direct, share)) * 1e6
}

/// This quantile of the times, in seconds.
pub(crate) fn at(times: &[Duration], share: f64) -> f64 {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    let last = seconds.len().saturating_sub(1);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list of some thousand"
    )]
    let place = ((last as f64) * share).round() as usize;
    seconds.get(place).copied().unwrap_or(0.0)
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(rounded(f64::midpoint(lower, upper)))
}

/// To one tenth: there is no more in it.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A count as a number to divide by.
#[allow(clippy::cast_precision_loss, reason = "counts of a few seconds")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(all: &[u64]) -> Vec<Duration> {
        all.iter().copied().map(Duration::from_micros).collect()
    }

    #[test]
    fn what_is_added_is_the_difference_at_the_same_share() {
        let direct: Vec<u64> = (1..=101).collect();
        let through: Vec<u64> = direct.iter().map(|us| us * 3).rev().collect();
        let added = |share| added_us(&micros(&direct), &micros(&through), share);
        assert!((added(0.5) - 102.0).abs() < 0.01);
        assert!((added(0.99) - 200.0).abs() < 0.01);
    }

    #[test]
    fn the_median_of_nothing_is_nothing_and_one_wild_round_does_not_count() {
        assert_eq!(median(Vec::new()), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![5.0, 900.0, 4.04]), Some(5.0));
        assert_eq!(median(vec![4.0, 6.0]), Some(5.0));
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let row = Samples { rps: vec![10.0], ..Samples::default() }.row("direct");
        assert_eq!(row, Row { name: "direct".to_owned(), rps: Some(10.0), ..Row::default() });
        let open = Samples { open: Some((3 << 19, 7)), ..Samples::default() }.row("x");
        assert_eq!((open.rss_mib, open.open_streams), (Some(1.5), Some(7)));
    }
}
