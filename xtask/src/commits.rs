//! `cargo xtask commits`: checks that commits have a subject `area: imperative summary` of at most 72 characters, and a body.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::TaskResult;
use crate::command::output;

/// Commits up to this one are older than the rule.
const RULE_SINCE: &str = "c82b427";
/// The longest subject.
const MAX_SUBJECT: usize = 72;
/// First words that end like another form of a verb, and are none.
const IMPERATIVES: [&str; 8] = ["bring", "embed", "feed", "need", "seed", "shed", "speed", "string"];

/// Prints the commits that break the rule. The exit code is 1 if any does.
pub(crate) fn run() -> TaskResult {
    let mut stdout = io::stdout().lock();
    let range = format!("{RULE_SINCE}..HEAD");
    let log = match output("git", &["log", "--no-merges", "--format=%h%x00%s%x00%b%x01", &range]) {
        Ok(log) => log,
        // A shallow clone does not contain the commits to check.
        Err(_) if output("git", &["rev-parse", "--is-shallow-repository"])? == b"true\n" => {
            writeln!(stdout, "commits: skipped, because this clone is shallow and has no {RULE_SINCE}")?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error),
    };
    let broken = check(&String::from_utf8_lossy(&log), &mut stdout)?;
    writeln!(stdout, "commits: {broken} findings")?;
    Ok(ExitCode::from(u8::from(broken > 0)))
}

fn check(log: &str, text: &mut dyn Write) -> io::Result<usize> {
    let mut broken = 0;
    for commit in log.split('\u{1}').map(str::trim).filter(|commit| !commit.is_empty()) {
        let mut fields = commit.split('\0');
        let (hash, subject) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let body = fields.next().unwrap_or_default();
        for problem in problems(subject, body) {
            broken += 1;
            report(text, hash, subject, problem)?;
        }
    }
    Ok(broken)
}

fn report(text: &mut dyn Write, hash: &str, subject: &str, problem: &str) -> io::Result<()> {
    writeln!(text, "commit {hash}: \"{subject}\": {problem}")
}

fn problems(subject: &str, body: &str) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if subject.chars().count() > MAX_SUBJECT {
        problems.push("the subject is longer than 72 characters");
    }
    let is_area = |area: &str| {
        area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/., ".contains(c))
            && !area.is_empty()
    };
    match subject.split_once(": ") {
        Some((area, summary)) if is_area(area) => {
            if !is_imperative(summary.split_whitespace().next().unwrap_or_default()) {
                problems.push("the summary begins with no imperative");
            }
        }
        _ => problems.push("the subject is not `area: imperative summary`"),
    }
    if body.trim().is_empty() {
        problems.push("there is no body that says why and how it was tested");
    }
    problems
}

fn is_imperative(word: &str) -> bool {
    let other_form =
        word.ends_with("ing") || word.ends_with("ed") || (word.ends_with('s') && !word.ends_with("ss"));
    let no_verb = ["a", "an", "the", "what", "who", "no", "there", "it", "this"].contains(&word);
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && !no_verb
        && (!other_form || IMPERATIVES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_an_area_and_an_imperative_and_the_commit_a_body() {
        assert!(problems("router: pass early data on", "Why.").is_empty());
        assert_eq!(problems("The router passes data", "").len(), 2);
        assert_eq!(problems("router: passes data", "Why.").len(), 1);
        assert_eq!(problems(&format!("router: pass {}", "x".repeat(80)), "Why.").len(), 1);
    }
}
