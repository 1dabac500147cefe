//! Classifies the actions of a command that an engine reported.
//!
//! This detects and does not prevent: a command can be spelled in ways that no table knows, and an engine can run
//! one without reporting it. The sandbox prevents, which has no remote, no credential and no network access. A
//! detected action makes the verdict worse; an undetected one never makes it better.

use std::collections::BTreeSet;

use herma_core::contract::{Action, Terms};

use crate::action_shapes::{CommandShape, HARMLESS, SHAPES, SHELLS, TAKE_A_VALUE, WRAPPERS};
use crate::shell::{self, Simple};

/// The maximum nesting of scripts.
const MAX_DEPTH: usize = 8;

/// The bytes of nested scripts that are read: without a bound, `sudo eval sudo eval ...` takes for ever.
const MAX_NESTED_BYTES: usize = 1 << 18;

/// The number of words after a wrapper that are tried as the program.
const MAX_WRAPPED: usize = 64;

/// The number of arguments of a program that are read.
const MAX_ARGUMENTS: usize = 256;

/// The maximum number of words, options aside, that determine the action.
const MAX_PLAIN_WORDS: usize = 2;

/// The separator between commands of one call. No command contains it: an open quote ends there.
const BETWEEN_COMMANDS: char = '\0';

/// The actions found in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandActions {
    /// Every action that it would take, each once, in order.
    pub actions: Vec<Action>,
    /// Whether all of it was read: what is nested too deeply, or too long, may do more.
    pub complete: bool,
}

/// Reads what a command would do.
#[must_use]
pub fn classify(command: &str) -> CommandActions {
    let mut reader = CommandReader::new(command.len().saturating_add(MAX_NESTED_BYTES));
    for command in command.split(BETWEEN_COMMANDS) {
        reader.read_script(command, MAX_DEPTH);
    }
    CommandActions { actions: reader.actions.into_iter().collect(), complete: reader.complete }
}

/// The actions of one call of a program with these arguments: no shell parses them.
pub(crate) fn classify_words(words: &[String]) -> Vec<Action> {
    let mut reader = CommandReader::new(MAX_NESTED_BYTES);
    reader.read_command(&Simple { words: words.to_vec(), input: Vec::new() }, MAX_DEPTH);
    reader.actions.into_iter().collect()
}

/// The `actions` that every contract, or this one, forbids.
#[must_use]
pub fn forbidden(terms: &Terms, actions: &[Action]) -> Vec<Action> {
    let is_forbidden =
        |action: &Action| Action::BUILT_IN.contains(action) || terms.forbidden_actions.contains(action);
    let forbidden: BTreeSet<Action> = actions.iter().copied().filter(is_forbidden).collect();
    forbidden.into_iter().collect()
}

/// The state of the reader, and its remaining budget.
struct CommandReader {
    actions: BTreeSet<Action>,
    budget: usize,
    complete: bool,
}

impl CommandReader {
    fn new(budget: usize) -> Self {
        Self { actions: BTreeSet::new(), budget, complete: true }
    }

    fn read_script(&mut self, script: &str, depth: usize) {
        let (Some(depth), Some(budget)) = (depth.checked_sub(1), self.budget.checked_sub(script.len()))
        else {
            self.complete &= script.trim().is_empty();
            return;
        };
        self.budget = budget;
        let pieces = shell::split(script);
        for nested in &pieces.nested {
            self.read_script(nested, depth);
        }
        for command in &pieces.commands {
            self.read_command(command, depth);
        }
    }

    fn read_command(&mut self, command: &Simple, depth: usize) {
        let assignments = command.words.iter().take_while(|word| is_assignment(word)).count();
        let words = &command.words[assignments..];
        let candidates = if is_wrapper(words) { MAX_WRAPPED } else { 1 };
        if candidates > 1 {
            self.complete &= !words.iter().skip(candidates).any(|word| is_known(program(word)));
        }
        for at in 0..candidates.min(words.len()) {
            let (name, arguments) = (program(&words[at]), &words[at + 1..]);
            let (read, unread) = arguments.split_at(arguments.len().min(MAX_ARGUMENTS));
            self.actions.extend(actions_of(name, read));
            self.complete &= unread.is_empty() || !is_open(name, read);
            for script in scripts(name, arguments, &command.input) {
                self.read_script(&script, depth);
            }
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

/// Whether the first word runs the following ones.
fn is_wrapper(words: &[String]) -> bool {
    words.first().is_some_and(|first| {
        let name = program(first);
        has(WRAPPERS, name) || (name.starts_with("python") && words.iter().any(|word| word == "-m"))
    })
}

/// The program's name without its directory.
fn program(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Whether a program may do something to the world, or runs a script.
fn is_known(name: &str) -> bool {
    name == "eval" || has(SHELLS, name) || has_shape(name)
}

fn has_shape(name: &str) -> bool {
    SHAPES.iter().any(|shape| has(shape.programs, name))
}

/// Whether words that determine the action may still follow these arguments.
fn is_open(name: &str, arguments: &[String]) -> bool {
    has_shape(name) && plain_words(name, arguments).len() < MAX_PLAIN_WORDS
}

/// The scripts that a program was given to run.
fn scripts(name: &str, arguments: &[String], input: &[String]) -> Vec<String> {
    match name {
        "eval" => vec![arguments.join(" ")],
        shell if has(SHELLS, shell) => {
            // `-c` may be one of several letters, as in `bash -lc`; its script is the next word that is no option.
            let is_c =
                |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
            let after = arguments.iter().position(is_c).map_or(&[][..], |at| &arguments[at + 1..]);
            let script = after.iter().find(|word| !word.starts_with('-'));
            script.into_iter().chain(input).cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// The actions of a program with these arguments.
fn actions_of(name: &str, arguments: &[String]) -> Vec<Action> {
    let of_program: Vec<&CommandShape> = SHAPES.iter().filter(|shape| has(shape.programs, name)).collect();
    if of_program.is_empty() {
        return Vec::new();
    }
    let plain = plain_words(name, arguments);
    if is_harmless(name, &plain, arguments) {
        return Vec::new();
    }
    let matches =
        |shape: &&&CommandShape| shape.followed_by.iter().any(|words| follow(words, &plain, arguments));
    of_program.iter().filter(matches).map(|shape| shape.action).collect()
}

/// Whether the words of a shape occur: options anywhere, the others first and in order.
fn follow(words: &str, plain: &[&str], arguments: &[String]) -> bool {
    let (options, in_order): (Vec<&str>, Vec<&str>) =
        words.split_whitespace().partition(|word| word.starts_with('-'));
    options.iter().all(|option| arguments.iter().any(|argument| option_name(argument) == *option))
        && in_order.len() <= plain.len()
        && in_order.iter().zip(plain).all(|(wanted, found)| *wanted == "*" || wanted == found)
}

fn is_harmless(name: &str, plain: &[&str], arguments: &[String]) -> bool {
    HARMLESS.iter().any(|(program, word, options)| {
        *program == name
            && plain.first() == Some(word)
            && arguments.iter().any(|argument| has(options, option_name(argument)))
    })
}

/// The arguments that are neither options nor the values of options.
fn plain_words<'a>(name: &str, arguments: &'a [String]) -> Vec<&'a str> {
    let takes_a_value =
        |option| TAKE_A_VALUE.iter().any(|(programs, options)| has(programs, name) && has(options, option));
    let mut plain = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if takes_a_value(argument) {
            rest.next();
        } else if !argument.starts_with(['-', '+']) {
            // `+` chooses a toolchain, as in `cargo +nightly publish`.
            plain.push(argument);
        }
    }
    plain
}

fn option_name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

/// Whether a word is in a list of words.
fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn seen(command: &str, actions: &[Action]) {
        assert_eq!(classify(command).actions, actions, "{command}");
    }

    #[test]
    fn each_action_is_seen_in_its_plain_shape() {
        seen("git push", &[Action::Push]);
        seen("git merge main", &[Action::Merge]);
        seen("git tag v1", &[Action::Tag]);
        seen("gh pr create --fill", &[Action::PrOpen]);
        seen("gh pr close 3", &[Action::Close]);
        seen("gh issue close 3", &[Action::IssueClose]);
        seen("cargo publish", &[Action::PublicPublication]);
        seen("npm publish --access public", &[Action::PublicPublication]);
        seen("twine upload dist/*", &[Action::PublicPublication]);
        seen("kubectl apply -f x.yaml", &[Action::Deploy]);
        seen("terraform apply", &[Action::Deploy]);
        seen("helm upgrade a b", &[Action::Deploy]);
        seen("gh auth login", &[Action::CredentialChange]);
        seen("git credential approve", &[Action::CredentialChange]);
        seen("passwd", &[Action::CredentialChange]);
        seen("ssh-keygen -t ed25519", &[Action::CredentialChange]);
        seen("gpg --batch --import key.asc", &[Action::CredentialChange]);
        seen("cargo vendor", &[Action::VendorSourceMutation]);
    }

    #[test]
    fn every_shape_of_the_table_is_seen() {
        for shape in SHAPES {
            for program in shape.programs.split(' ') {
                for words in shape.followed_by {
                    assert!(
                        words.split(' ').filter(|word| !word.starts_with('-')).count() <= MAX_PLAIN_WORDS
                    );
                    let command = format!("{program} {}", words.replace('*', "x"));
                    assert!(classify(&command).actions.contains(&shape.action), "{command}");
                }
            }
        }
    }

    #[test]
    fn forbidden_is_what_every_contract_or_this_one_forbids() {
        let text = b"---\nid: a\ntitle: b\ntarget: { fixture: c }\nstage: 2\nallowed_paths: [d]\n---\ne\n";
        let mut terms = herma_core::Contract::parse(text).unwrap().terms;
        let attempted = [Action::Tag, Action::Push, Action::Push];
        assert_eq!(forbidden(&terms, &attempted), [Action::Push]);
        terms.forbidden_actions = vec![Action::Tag];
        assert_eq!(forbidden(&terms, &attempted), [Action::Push, Action::Tag]);
    }

    #[test]
    fn other_spellings_of_a_push_are_seen() {
        for command in [
            "git -C x push origin main",
            "git -c a=b --git-dir=x --work-tree y push",
            "cd a && git push",
            "cd a; git push || true",
            "make\ngit push",
            "A=b C='d e' git push",
            "env -i A=b git push",
            "sudo -u bob git push",
            "timeout 10 git push",
            "nohup git push &",
            "sh -c \"git push\"",
            "bash -lc 'cd x && git push'",
            "/bin/bash -e -c 'sh -c \"git push\"'",
            "eval git push",
            "echo \"$(git push)\"",
            "echo `git push`",
            "(git push)",
            "if true; then git push; fi",
            "! git push",
            "/usr/bin/git push",
            "'git' \"push\"",
            "g\\it push",
            "git \\\n push",
            "git 2>/dev/null push",
            "git>x push",
            "sh <<E\ngit push\nE",
            "find . -exec git push \\;",
        ] {
            seen(command, &[Action::Push]);
        }
    }

    #[test]
    fn other_programs_are_reached_through_theirs() {
        seen("python3 -m twine upload x", &[Action::PublicPublication]);
        seen("cargo +nightly publish", &[Action::PublicPublication]);
        seen("npm --prefix web publish", &[Action::PublicPublication]);
        seen("kubectl -n prod --context=x apply -f y", &[Action::Deploy]);
        seen("npx vercel --prod", &[Action::Deploy]);
        seen("gh release create v1", &[Action::PublicPublication, Action::Tag]);
        seen("git push && git tag v1 && git push --tags", &[Action::Push, Action::Tag]);
    }

    #[test]
    fn nothing_of_one_command_reaches_into_the_next() {
        for open in ["echo '", "echo \"", "ls #", "cat <<E\n", "echo $(", "echo `", "ls \\", "ls >"] {
            seen(&format!("{open}\0git push"), &[Action::Push]);
            seen(&format!("git push\0{open}"), &[Action::Push]);
        }
        seen("git\0push", &[]);
    }

    #[test]
    fn words_are_not_commands() {
        for command in [
            "",
            "git status",
            "git stash push",
            "git log --merges",
            "git merge-base a b",
            "git merge --abort",
            "git tag",
            "git tag -l 'v*'",
            "git commit -m 'git push'",
            "git commit -m \"x; git push\"",
            "echo git push",
            "grep -r 'git push' .",
            "cat > notes <<E\ngit push\nE",
            "ls # git push",
            "cargo test publish",
            "kubectl get pods",
            "python3 push.py git push",
        ] {
            seen(command, &[]);
        }
    }

    #[test]
    fn a_truncated_reading_is_marked() {
        let nested = |depth| format!("{}git push{}", "$(".repeat(depth), ")".repeat(depth));
        let options = |times| format!("git {}push", "-c a=b ".repeat(times));
        let wrapped = |times| format!("env {}git push", "A=b ".repeat(times));
        let evals = |times| format!("{}git push", "sudo eval ".repeat(times));
        for (command, complete) in [
            (nested(MAX_DEPTH - 1), true),
            (nested(MAX_DEPTH), false),
            (evals(2), true),
            (evals(500), false),
            (wrapped(10), true),
            (wrapped(MAX_WRAPPED), false),
            (options(10), true),
            (options(MAX_ARGUMENTS), false),
        ] {
            let read = classify(&command);
            assert_eq!(read.complete, complete, "{command}");
            assert!(!complete || read.actions == [Action::Push], "{command}");
        }
        for (program, complete) in [("xargs ls", true), ("git add", true), ("find", true), ("bash", true)] {
            let command = format!("{program}{}", " src/a".repeat(1000));
            assert_eq!(classify(&command).complete, complete, "{program}");
        }
    }

    #[test]
    fn no_depth_and_no_open_quote_is_too_much() {
        let deep = format!("{}git push{}", "$(".repeat(5_000), ")".repeat(5_000));
        seen(&deep, &[]);
        seen(&"sudo eval ".repeat(500), &[]);
        seen(&"env git ".repeat(50_000), &[]);
        for command in ["'", "\"", "`", "$(", "a <<", "a >", "\\", "sh -c", "eval", "<<E\n"] {
            seen(command, &[]);
        }
    }
}
