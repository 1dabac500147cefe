//! Where in a body the reader is, for messages.

use std::borrow::Cow;
use std::fmt::Write as _;

/// One step from a value into it.
#[derive(Clone, Debug)]
pub(super) enum Step<'a> {
    Key(Cow<'a, str>),
    Item(usize),
}

/// A key that is longer is cut in messages.
const MAX_KEY: usize = 64;

/// The steps as people write them: `messages[2].content`.
pub(super) fn shown(steps: &[Step<'_>]) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            Step::Item(at) => {
                let _ = write!(out, "[{at}]");
            }
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                if key.len() <= MAX_KEY && is_plain(key) {
                    out.push_str(key);
                } else {
                    let cut: String = key.chars().take(MAX_KEY).collect();
                    let _ = write!(out, "{}", cut.escape_default());
                }
            }
        }
    }
    out
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
