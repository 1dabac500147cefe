//! The targets of the router, as ratios of figures from the same run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::contenders::{BARE_PROXY, ENVOY, LLM_GATEWAYS, NGINX, ROUTER};
use crate::figures::Row;

/// So many streams are open where the target for memory is judged.
const STREAMS: u64 = 1_000;

/// One target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// The two sides that are compared.
    pub name: &'static str,
    /// The ratio, or for memory the MiB; null where one of the two was not measured.
    pub value: Option<f64>,
    /// The most that it may be.
    pub at_most: f64,
    /// Whether it holds; null where it could not be judged.
    pub holds: Option<bool>,
}

/// Every target, judged by these rows.
pub(crate) fn judge(rows: &[Row]) -> Vec<Target> {
    let router = rows.iter().find(|row| row.name == ROUTER);
    let against = |other: Option<&Row>, figure: fn(&Row) -> Option<f64>| {
        let (ours, theirs) = (figure(router?)?, figure(other?)?);
        // Below the resolution of the clock there is nothing to divide by.
        (theirs > 0.0).then(|| hundredths(ours / theirs))
    };
    let named = |name: &str| rows.iter().find(|row| row.name == name);
    let best_llm_gateway = LLM_GATEWAYS
        .iter()
        .filter_map(|name| named(name))
        .filter(|row| row.cpu_us_per_request.is_some())
        .min_by(|a, b| {
            a.cpu_us_per_request.partial_cmp(&b.cpu_us_per_request).unwrap_or(std::cmp::Ordering::Equal)
        });
    let memory = router.filter(|row| row.open_streams >= Some(STREAMS)).and_then(|row| row.rss_mib);
    let target = Target::judged;
    vec![
        target(
            "CPU per request, to the bare hyper proxy",
            against(named(BARE_PROXY), |row| row.cpu_us_per_request),
            2.0,
        ),
        target("CPU per request, to Envoy", against(named(ENVOY), |row| row.cpu_us_per_request), 1.0),
        target(
            "CPU per request, to the best LLM gateway",
            against(best_llm_gateway, |row| row.cpu_us_per_request),
            0.25,
        ),
        target("added p50, to nginx", against(named(NGINX), |row| row.added_p50_us), 1.5),
        target("added first byte, to nginx", against(named(NGINX), |row| row.added_first_byte_us), 1.5),
        target(
            "CPU per chunk, to the bare hyper proxy",
            against(named(BARE_PROXY), |row| row.cpu_ms_per_1k_chunks),
            1.5,
        ),
        target("MiB at 1,000 open streams", memory, 64.0),
    ]
}

impl Target {
    /// Holds where the value is at most that; without a value nobody can say.
    pub(crate) fn judged(name: &'static str, value: Option<f64>, at_most: f64) -> Self {
        Self { name, value, at_most, holds: value.map(|value| value <= at_most) }
    }
}

pub(crate) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cpu: f64) -> Row {
        Row {
            name: name.to_owned(),
            cpu_us_per_request: Some(cpu),
            added_p50_us: Some(cpu),
            added_first_byte_us: Some(cpu),
            cpu_ms_per_1k_chunks: Some(cpu),
            rss_mib: Some(cpu),
            open_streams: Some(STREAMS),
            ..Row::default()
        }
    }

    fn judged(rows: &[Row]) -> Vec<(Option<f64>, Option<bool>)> {
        judge(rows).into_iter().map(|target| (target.value, target.holds)).collect()
    }

    #[test]
    fn each_target_is_judged_against_its_own_peer() {
        let rows = [
            row(BARE_PROXY, 40.0),
            row(NGINX, 30.0),
            row(ROUTER, 64.0),
            row(ENVOY, 60.0),
            row(LLM_GATEWAYS[0], 9_000.0),
            row(LLM_GATEWAYS[1], 300.0),
        ];
        assert_eq!(
            judged(&rows),
            [
                (Some(1.6), Some(true)),
                (Some(1.07), Some(false)),
                (Some(0.21), Some(true)),
                (Some(2.13), Some(false)),
                (Some(2.13), Some(false)),
                (Some(1.6), Some(false)),
                (Some(64.0), Some(true)),
            ]
        );
    }

    #[test]
    fn without_its_peer_a_target_is_not_judged_and_never_holds() {
        assert!(judged(&[]).iter().all(|judged| *judged == (None, None)));
        let few = Row { open_streams: Some(20), ..row(ROUTER, 10.0) };
        let nothing = Row { cpu_us_per_request: Some(0.0), ..row(BARE_PROXY, 0.0) };
        assert!(judged(&[few, nothing]).iter().all(|judged| *judged == (None, None)));
    }
}
