//! Finds secrets in text: a fast search for literals, then one anchored pattern at each.

mod matcher;
mod rules;

use std::collections::VecDeque;

pub(crate) use matcher::Matcher;
pub(crate) use rules::PRIVATE_KEY;
pub use rules::{RULES, SecretRule};

/// The bytes after its start that decide about a secret. Streams hold that many back.
pub const LOOKAHEAD: usize = 8 << 10;

/// The bytes before its start: the length of git's escape of a byte.
const LOOKBACK: usize = 4;

/// The number of findings that are kept; one is enough to fail.
const MAX_FINDINGS: usize = 16;

/// The position of a secret. Never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretFinding {
    /// The rule's name.
    pub rule: &'static str,
    /// The offset in the stream.
    pub offset: u64,
}

/// Scans a stream of chunks with memory that does not grow with the stream.
#[derive(Debug)]
pub struct SecretScanner {
    matcher: &'static Matcher,
    /// The end of the stream so far: what the look back needs, and what has not seen its lookahead.
    tail: Vec<u8>,
    /// The position in the tail where the next secret may start.
    next: usize,
    /// The stream's offset of the tail's first byte.
    offset: u64,
    findings: VecDeque<SecretFinding>,
}

impl SecretScanner {
    /// A scanner at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        let matcher = Matcher::shared();
        Self { matcher, tail: Vec::new(), next: 0, offset: 0, findings: VecDeque::new() }
    }

    /// Scans the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        if chunk.len() <= LOOKAHEAD + LOOKBACK {
            self.tail.extend_from_slice(chunk);
            if self.tail.len() > 4 * LOOKAHEAD {
                self.scan_tail(self.tail.len() - LOOKAHEAD);
            }
            return;
        }
        // Only the seam is copied; the chunk itself is scanned in place. The chunk's first bytes belong to the
        // seam, because only there the text before them is visible.
        let seam = self.tail.len();
        let base = self.offset + seam as u64;
        let mut tail = std::mem::take(&mut self.tail);
        tail.extend_from_slice(&chunk[..LOOKAHEAD + LOOKBACK]);
        self.scan(&tail, self.next, seam + LOOKBACK, self.offset);
        let until = chunk.len() - LOOKAHEAD;
        self.scan(chunk, LOOKBACK, until, base);
        let keep = until - LOOKBACK;
        tail.clear();
        tail.extend_from_slice(&chunk[keep..]);
        (self.tail, self.offset, self.next) = (tail, base + keep as u64, LOOKBACK);
    }

    /// Scans what was held back and says what was found, in order, at most the first few.
    #[must_use]
    pub fn finish(mut self) -> Vec<SecretFinding> {
        self.scan_tail(self.tail.len());
        self.findings.into()
    }

    fn scan_tail(&mut self, until: usize) {
        let tail = std::mem::take(&mut self.tail);
        self.scan(&tail, self.next, until, self.offset);
        self.tail = tail;
        let until = until.max(self.next);
        let keep = until.saturating_sub(LOOKBACK);
        self.tail.drain(..keep);
        self.offset += keep as u64;
        self.next = until - keep;
    }

    fn scan(&mut self, text: &[u8], from: usize, until: usize, base: u64) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        self.matcher.find(text, from, until, |found| {
            self.findings.push_back(SecretFinding { rule: found.rule, offset: base + found.start as u64 });
            self.findings.len() < MAX_FINDINGS
        });
    }
}

impl Default for SecretScanner {
    fn default() -> Self {
        Self::new()
    }
}

/// Scans a whole text.
#[must_use]
pub fn scan(text: &[u8]) -> Vec<SecretFinding> {
    let mut scanner = SecretScanner::new();
    scanner.push(text);
    scanner.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// One text for each rule. They are put together here, so that no scanner trips over this file.
    fn samples() -> Vec<(&'static str, String)> {
        let body = |n: usize| "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY".chars().cycle().take(n).collect::<String>();
        let letters = "qWeRtZuIoPaSdFgHjKlYxCvBnMqAzWsXeDcR".chars().take(34).collect::<String>();
        vec![
            ("aws_access_key", format!("AK{}", "IAQ2X4Z6B3C5D7E2F4")),
            ("aws_secret_key", format!("SecretAccessKey = {}", body(40))),
            ("github_token", format!("gh{}{}", "p_", body(36))),
            ("github_fine_grained_token", format!("github_{}{}", "pat_", body(82))),
            ("gitlab_token", format!("gl{}{}", "pat-", body(20))),
            ("slack_token", format!("xo{}{}", "xb-", body(40))),
            ("slack_webhook", format!("https://hooks.slack.com/{}/{}", "services", body(44))),
            ("stripe_key", format!("sk{}{}", "_live_", body(24))),
            ("anthropic_key", format!("sk-{}{}", "ant-api03-", body(95))),
            ("openai_key", format!("sk-{}{}", "proj-", body(48))),
            ("google_key", format!("AI{}{}", "za", body(35))),
            ("npm_token", format!("np{}{}", "m_", body(36))),
            ("pypi_token", format!("pypi{}{}", "-AgE", body(60))),
            ("hugging_face_token", format!("h{}{letters}", "f_")),
            ("herma_approver_token", format!("herma-{}{}", "approver-", body(43))),
            ("herma_run_token", format!("herma{}{}", "-", "0123456789abcdef".repeat(4))),
            ("private_key", format!("-----BEGIN {} KEY-----\n{}\n", "RSA PRIVATE", body(64))),
            (
                "jwt",
                format!(
                    "ey{}.ey{}.{}",
                    format_args!("J{}", body(20)),
                    format_args!("J{}", body(20)),
                    body(43)
                ),
            ),
            ("url_credentials", format!("postgres://me:{}@db.internal/x", "s3cr3tpw")),
            ("generic_secret", format!("client_secret: \"{}\"", body(32))),
        ]
    }

    fn names(text: &str) -> Vec<&'static str> {
        scan(text.as_bytes()).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_rule_finds_its_kind() {
        let samples = samples();
        assert_eq!(
            samples.iter().map(|s| s.0).collect::<Vec<_>>(),
            RULES.iter().map(|r| r.name).collect::<Vec<_>>()
        );
        for (rule, text) in samples {
            assert_eq!(names(&format!("x: {text} y")), [rule], "{text}");
        }
    }

    #[test]
    fn text_without_a_secret_has_no_findings() {
        for text in [
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "password = \"${DATABASE_PASSWORD_FROM_VAULT}\"",
            "token: \"system.identity.provider.default\"",
            "postgres://user:password@localhost/db",
            "http://127.0.0.1:8080/@scope/name",
            "-----BEGIN PRIVATE KEY-----\" is how a key starts",
            "Sha256Password => \"caching_sha2_password\"",
            "let secret_name = \"my-app-database-credentials\";",
            "npm_config_registry_and_other_long_names_here",
            "\"prev\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
        ] {
            assert_eq!(names(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn an_escape_of_git_is_no_part_of_a_word() {
        for (rule, text) in samples() {
            for byte in ["\\303\\244", "\\n", "\\t", "\\\"", "\u{e4}"] {
                assert_eq!(names(&format!("+++ \"b/x{byte}{text}\"")), [rule], "{byte}{text}");
            }
        }
        let (_, token) = samples().remove(0);
        for word in ["n", "244", "\\9n", "\\444", "3244", "\\n4"] {
            assert_eq!(names(&format!("{word}{token}")), Vec::<&str>::new(), "{word}");
        }
    }

    #[test]
    fn a_token_is_found_behind_any_number_of_its_own_starts() {
        let (_, token) = samples().into_iter().find(|(rule, _)| *rule == "jwt").unwrap();
        let start = format!("ey{}-", "J");
        for before in [0, 1, 2, 400, 600, 4_000] {
            let text = format!("{}{token}", start.repeat(before));
            assert_eq!(names(&text), ["jwt"], "{before}");
            assert!(!crate::Redactor::default().redact(&text).contains(&token[30..]), "{before}");
            assert_eq!(names(&text.replacen('.', ":", 1)), Vec::<&str>::new(), "{before}");
        }
    }

    /// The processor's time that this takes, at best.
    fn cost(text: &str) -> Duration {
        let spent = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs().try_into().unwrap())
        };
        let measured = (0..3).map(|_| {
            let before = spent();
            let _ = (scan(text.as_bytes()), crate::Redactor::default().redact(text));
            spent().saturating_sub(before)
        });
        measured.min().unwrap()
    }

    #[test]
    fn one_long_token_costs_hardly_more_than_many_short_ones() {
        const SIZE: usize = 32 << 10;
        const SHORT: usize = 200;
        const MAX_SLOWDOWN: u32 = 4;
        for (rule, (_, sample)) in RULES.iter().zip(samples()) {
            let literal = rule.literals[0];
            let between = ["", "-", "_", ".", "=", "a-"].map(|between| format!("{literal}{between}"));
            let secrets = ["-", "_"].map(|between| format!("{sample}{between}"));
            let run_before_a_secret = format!("{}{sample}-", format!("{literal}-").repeat(400));
            for unit in between.iter().chain(&secrets).chain([&run_before_a_secret]) {
                let long = unit.repeat(SIZE / unit.len() + 1);
                let short: Vec<_> = long.as_bytes().chunks(SHORT).map(String::from_utf8_lossy).collect();
                let (short, long) = (cost(&short.join(" ")), cost(&long));
                assert!(
                    long <= short * MAX_SLOWDOWN,
                    "{}: {unit:.60}: {long:?}, in words {short:?}",
                    rule.name
                );
            }
        }
    }

    proptest! {
        #[test]
        fn the_chunks_do_not_matter(
            which in 0..RULES.len(),
            byte in prop::sample::select(vec![" ", "\\344", "\\n"]),
            before in 0usize..30_000,
            chunks in prop::collection::vec(1usize..20_000, 1..6),
        ) {
            let text = format!("{}{byte}{} {}", "x".repeat(before), samples()[which].1, ".".repeat(20_000)).into_bytes();
            let whole = scan(&text);
            prop_assert_eq!(whole.len(), 1);
            let mut scanner = SecretScanner::new();
            let (mut rest, mut sizes) = (&text[..], chunks.iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                scanner.push(now);
                rest = later;
            }
            prop_assert_eq!(scanner.finish(), whole);
        }
    }
}
