//! The compiled rules: finds secrets and their positions in a piece of text.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use regex::bytes::{Regex, RegexBuilder};

use super::LOOKAHEAD;
use super::rules::{
    DOCUMENTATION_PASSWORDS, GENERIC_SECRET, PLACEHOLDERS, RULES, SecretRule, URL_CREDENTIALS,
};

/// Below that, a value is the same few characters again and again.
const MIN_ENTROPY: f64 = 2.0;

/// A secret in a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SecretMatch {
    pub(crate) rule: &'static str,
    /// The position of the rule's literal.
    pub(crate) start: usize,
    /// The start of the secret itself.
    pub(crate) secret: usize,
    /// The end of the secret.
    pub(crate) end: usize,
}

/// The compiled rules.
#[derive(Debug)]
pub(crate) struct Matcher {
    literals: AhoCorasick,
    /// For each literal, the rules that may match there.
    candidates: Vec<Vec<usize>>,
    /// Compiled when their literal is first met: most runs meet none, and compiling all takes milliseconds.
    patterns: Vec<OnceLock<Regex>>,
    /// The same for what follows a run.
    thens: Vec<OnceLock<Regex>>,
}

/// The run that a rule met last.
#[derive(Clone, Copy, Default)]
struct Met {
    end: usize,
    /// The end of a secret that starts in it, if the following text makes it one.
    secret_end: Option<usize>,
}

impl Matcher {
    /// The one set of compiled rules.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Matcher> = LazyLock::new(Matcher::compile);
        &SHARED
    }

    // The table is a constant and a test compiles it, so that no input can make this fail.
    #[allow(clippy::expect_used)]
    fn compile() -> Self {
        let literals: Vec<&str> = RULES.iter().flat_map(|rule| rule.literals).copied().collect();
        let meets = |rule: &SecretRule, literal: &str| {
            rule.literals.iter().any(|own| own.starts_with(literal) || literal.starts_with(own))
        };
        let candidates = literals
            .iter()
            .map(|literal| (0..RULES.len()).filter(|i| meets(&RULES[*i], literal)).collect())
            .collect();
        Self {
            literals: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(&literals)
                .expect("the table of literals is sound"),
            candidates,
            patterns: RULES.iter().map(|_| OnceLock::new()).collect(),
            thens: RULES.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Calls `take` for each secret whose literal starts in `from..until`, until it returns false.
    pub(crate) fn find(
        &self,
        text: &[u8],
        from: usize,
        until: usize,
        mut take: impl FnMut(SecretMatch) -> bool,
    ) {
        let mut at = from;
        let mut met = [Met::default(); RULES.len()];
        while at < until {
            let Some(hit) = self.literals.find(Input::new(text).range(at..)) else { return };
            let start = hit.start();
            if start >= until {
                return;
            }
            at = start + 1;
            for index in &self.candidates[hit.pattern().as_usize()] {
                if let Some(found) = self.at(*index, text, start, &mut met[*index]) {
                    if !take(found) {
                        return;
                    }
                    break;
                }
            }
        }
    }

    fn at(&self, index: usize, text: &[u8], start: usize, met: &mut Met) -> Option<SecretMatch> {
        let rule = &RULES[index];
        if rule.starts_word && goes_on(&text[..start]) {
            return None;
        }
        let mut end_by_run = None;
        if let Some(run) = &rule.run {
            if start >= met.end {
                met.end = start + text[start..].iter().take_while(|byte| is_in_run(**byte)).count();
                let then = compiled(&self.thens[index], run.then).find(window(text, met.end));
                met.secret_end = then.map(|then| met.end + then.end());
            }
            if met.end - start > run.longest {
                return None;
            }
            end_by_run = Some(met.secret_end?);
        }
        let captures = compiled(&self.patterns[index], rule.pattern).captures(window(text, start))?;
        let secret = captures.name("s").or_else(|| captures.get(0))?;
        let (secret, end) = (start + secret.start(), end_by_run.unwrap_or(start + secret.end()));
        if !looks_real(rule, &text[secret..end]) {
            return None;
        }
        // Later starts in the run are part of the same secret.
        met.secret_end = None;
        Some(SecretMatch { rule: rule.name, start, secret, end })
    }
}

// The patterns are constants and a test tries each, so that no input can make this fail.
#[allow(clippy::expect_used)]
fn compiled<'a>(once: &'a OnceLock<Regex>, pattern: &str) -> &'a Regex {
    once.get_or_init(|| {
        RegexBuilder::new(pattern).unicode(false).build().expect("the table of patterns is sound")
    })
}

/// The text that a pattern sees.
fn window(text: &[u8], start: usize) -> &[u8] {
    &text[start..text.len().min(start + LOOKAHEAD)]
}

/// Whether a word that starts after this text is the rest of one. git's escape of a byte in a quoted path is no
/// part of a word, though it ends with a letter or a digit.
fn goes_on(before: &[u8]) -> bool {
    let is_escaped = matches!(
        before,
        [.., b'\\', b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v']
            | [.., b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7']
    );
    !is_escaped && before.last().is_some_and(u8::is_ascii_alphanumeric)
}

fn is_in_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether the value is no placeholder. Where the prefix is significant, only a value with very few different
/// characters is one; its start decides, so that appended text cannot make a secret look like a placeholder.
fn looks_real(rule: &SecretRule, secret: &[u8]) -> bool {
    if entropy(&secret[..secret.len().min(64)]) < MIN_ENTROPY {
        return false;
    }
    let Some(least) = rule.min_entropy else { return true };
    let lower = String::from_utf8_lossy(secret).to_ascii_lowercase();
    if PLACEHOLDERS.iter().any(|text| lower.contains(text)) {
        return false;
    }
    if rule.name == URL_CREDENTIALS
        && (DOCUMENTATION_PASSWORDS.contains(&lower.as_str()) || lower.starts_with(['$', '{', '%']))
    {
        return false;
    }
    let mixed = rule.name != GENERIC_SECRET || is_mixed(&lower);
    mixed && entropy(secret) >= least
}

/// Whether the value has digits among its letters, other than as a number at the end of a word.
fn is_mixed(lower: &str) -> bool {
    let is_word = |part: &str| {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
        digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let has = |kind: fn(&u8) -> bool| lower.bytes().any(|b| kind(&b));
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && !lower.split(['_', '-', '.', '/']).all(is_word)
}

/// Shannon's entropy in bits for each byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let share = |count: &u32| f64::from(*count) / total;
    counts.iter().filter(|count| **count > 0).map(share).map(|p| -p * p.log2()).sum()
}
