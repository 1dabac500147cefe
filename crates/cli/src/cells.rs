//! Parts of lines that several commands show: lengths of time, counts, costs and cut texts.

use herma_core::usage::Usage;

/// A length of time as people read it: `0.4s`, `12.3s`, `4m05s`, `2h03m`.
pub(crate) fn duration(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{}.{}s", seconds, millis % 1_000 / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A count of tokens: `950`, `12.3k`, `4.5M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// The cost of calls; `unknown` where tokens cost nothing that anybody said.
pub(crate) fn cost(usage: &Usage) -> String {
    usage.cost().map_or_else(|| "unknown".to_owned(), |usd| format!("${usd}"))
}

/// A text of at most this many characters; the end of one that is cut is a mark.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_counts_are_short() {
        let all = [0, 449, 59_999, 60_000, 245_000, 7_380_000].map(duration);
        assert_eq!(all, ["0.0s", "0.4s", "59.9s", "1m00s", "4m05s", "2h03m"]);
        assert_eq!([9_999, 12_345, 4_560_000].map(tokens), ["9999", "12.3k", "4.5M"]);
        assert_eq!([cut("abc", 3), cut("abcd", 3)], ["abc", "ab…"]);
        assert_eq!(cost(&Usage::NONE), "$0.00");
        assert_eq!(cost(&Usage { charged_tokens: 1, ..Usage::NONE }), "unknown");
    }
}
