//! The attempts to get out, for the page about confinement, from the table that the tests make them by.

#[path = "../it/escape/attempts.rs"]
mod attempts;

use self::attempts::{Attempt, Bomb, Poison, table};
use crate::generated::{head, row};

/// Every attempt with what the bundle holds of it.
pub(crate) fn attempts() -> String {
    let mut text = head(&["attempt", "what it tries", "recorded by"]);
    for Attempt { name, what, record, only_in, .. } in table().attempts {
        let only = only_in.map(|place| format!(" (only in `{place}`)")).unwrap_or_default();
        text += &row(&[&format!("`{name}`"), &format!("{what}{only}"), &record.to_string()]);
    }
    text
}

/// Every bomb with how its run ends.
pub(crate) fn bombs() -> String {
    let mut text = head(&["bomb", "what it tries", "where", "ends with", "recorded by"]);
    for Bomb { name, what, ends, record, only_in, .. } in table().bombs {
        let ends = if ends == "pass" { ends } else { format!("[`{ends}`](blockers/{ends}.md)") };
        text += &row(&[
            &format!("`{name}`"),
            &what,
            only_in.as_deref().unwrap_or("everywhere"),
            &ends,
            &record.to_string(),
        ]);
    }
    text
}

/// Every poisoning of an environment with how its run ends.
pub(crate) fn poisons() -> String {
    let mut text = head(&["poisoning", "what it tries", "ends with"]);
    for Poison { name, what, ends, .. } in table().poisons {
        text += &row(&[&format!("`{name}`"), &what, &format!("[`{ends}`](blockers/{ends}.md)")]);
    }
    text
}
