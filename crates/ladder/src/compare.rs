//! The comparison of lanes: the same contracts under the same gates on each engine, judged by the bundles.

mod comparisons;
mod deciding;
mod error;
mod evidence;
mod markdown;
mod measures;
#[cfg(test)]
mod sample;
mod shape;
mod share;
mod turns;

use std::cmp::Ordering;

use herma_core::proof::Standing;

pub use comparisons::Comparisons;
pub use error::{CompareError, ComparisonError};
pub use markdown::comparison_markdown;
pub use turns::{ComparisonOrder, ContractOnLanes, Turns, compare};

pub(crate) use deciding::compare_deciding;
pub(crate) use evidence::Evidence;

/// The standing of a lane that has more of something good than another, as much, or less.
fn standing(good: Ordering) -> Standing {
    match good {
        Ordering::Greater => Standing::Beats,
        Ordering::Equal => Standing::Matches,
        Ordering::Less => Standing::FallsBehind,
    }
}
