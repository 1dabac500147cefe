//! Shares: how many of how many, and their comparison.

use herma_core::comparison::Share;
use herma_core::proof::Standing;

use super::standing;

/// The share of the items of which it holds.
pub(crate) fn share_of<T>(items: &[T], holds: impl Fn(&T) -> bool) -> Share {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Share { held: count(items.iter().filter(|item| holds(item)).count()), of: count(items.len()) }
}

/// Compares a share with another; more is better. A share of nothing is not comparable.
pub(crate) fn share_against(ours: Share, theirs: Share) -> Standing {
    if ours.of == 0 || theirs.of == 0 {
        return Standing::Blocked;
    }
    let scaled = |share: Share, by: Share| u64::from(share.held) * u64::from(by.of);
    standing(scaled(ours, theirs).cmp(&scaled(theirs, ours)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_as_many_is_better_and_nothing_of_nothing_says_nothing() {
        let against = |a: (u32, u32), b: (u32, u32)| {
            share_against(Share { held: a.0, of: a.1 }, Share { held: b.0, of: b.1 })
        };
        assert_eq!(against((3, 3), (3, 3)), Standing::Matches);
        assert_eq!(against((1, 2), (2, 4)), Standing::Matches);
        assert_eq!(against((0, 3), (0, 1)), Standing::Matches);
        assert_eq!(against((3, 3), (2, 3)), Standing::Beats);
        assert_eq!(against((2, 3), (1, 1)), Standing::FallsBehind);
        assert_eq!(against((0, 0), (1, 1)), Standing::Blocked);
        assert_eq!(against((1, 1), (0, 0)), Standing::Blocked);
        assert_eq!(share_of(&[1, 2, 3], |n| *n > 1), Share { held: 2, of: 3 });
    }
}
