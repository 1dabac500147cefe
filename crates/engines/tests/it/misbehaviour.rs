//! The misbehaviours of `string-slugify`: each does what its name says, and only that.

use std::collections::BTreeSet;

use herma_core::Contract;
use herma_core::engine::EngineResult::{self, Completed, Failed, Rejected};
use herma_engines::AgentEvent;
use herma_engines::fake::{ResultWord, Script, Step};
use herma_fixtures::{Fixture, find};

use crate::place::{Played, ScriptDir, changed};

/// A script, the paths that it changes, whether verification passes afterwards, its exit code and its result.
type Row = (&'static str, &'static [&'static str], bool, u8, Option<EngineResult>);

const FIX: &str = "slugify.sh";

const ENDING: &[Row] = &[
    ("fix", &[FIX], true, 0, Some(Completed)),
    ("no-diff", &[], false, 0, Some(Completed)),
    ("delete-and-recreate", &[], false, 0, Some(Completed)),
    ("disallowed-file", &["README.md", FIX], true, 0, Some(Completed)),
    ("forbidden-file", &[".github/workflows/x.yml", FIX], true, 0, Some(Completed)),
    ("mode-only", &["README.md", FIX], true, 0, Some(Completed)),
    ("rename-out", &["notes.md", FIX, "tests/notes.md"], true, 0, Some(Completed)),
    ("symlink-out", &[FIX, "tests/users"], true, 0, Some(Completed)),
    ("fifo", &[FIX, "tests/pipe"], true, 0, Some(Completed)),
    ("nested-repo", &[FIX, "tests/inner/hidden.txt"], true, 0, Some(Completed)),
    ("refused-by-git", &[FIX, "tests/.gitmodules"], true, 0, Some(Completed)),
    ("breaks-test", &[FIX], false, 0, Some(Completed)),
    ("edits-test", &["tests/slugify_test.sh"], true, 0, Some(Completed)),
    ("path-shim", &["git", "sh"], false, 0, Some(Completed)),
    ("secret", &[FIX, "tests/sample.txt"], true, 0, Some(Completed)),
    ("commit-and-amend", &[FIX, "tests/notes.md"], true, 0, Some(Completed)),
    ("ignored-file", &["debug.log", FIX], true, 0, Some(Completed)),
    ("hostile-git", &[FIX], true, 0, Some(Completed)),
    ("noisy", &[FIX], true, 0, Some(Completed)),
    ("forbidden-action", &[FIX], true, 0, Some(Completed)),
    ("protocol-error", &[FIX], true, 0, None),
    ("malformed-result", &[FIX], true, 0, None),
    ("rejected", &[FIX], true, 0, Some(Rejected)),
    ("engine-fails", &[], false, 3, None),
    ("needs-a-host", &[], false, 1, Some(Failed)),
];

/// These do not end by themselves, or leave a process behind, and are looked at instead of played.
const NOT_ENDING: [&str; 6] =
    ["slow-start", "goes-idle", "never-ends", "lingers-after-fix", "fixes-then-hangs", "daemon"];

fn slugify() -> &'static Fixture {
    find("string-slugify").unwrap()
}

fn played(script: &str) -> (ScriptDir, Played) {
    let place = ScriptDir::with(slugify());
    let played = place.play(slugify().script(script).unwrap());
    (place, played)
}

#[test]
fn every_script_is_in_one_of_the_tables() {
    let known: BTreeSet<&str> = ENDING.iter().map(|row| row.0).chain(NOT_ENDING).collect();
    let scripts: BTreeSet<&str> = slugify().scripts.iter().map(|(name, _)| *name).collect();
    assert_eq!(known, scripts);
}

#[test]
fn each_does_what_its_row_says() {
    let before = ScriptDir::with(slugify()).snapshot();
    for (script, paths, verified, exit_code, result) in ENDING {
        let (place, played) = played(script);
        let after = place.snapshot();
        assert_eq!(changed(&before, &after), *paths, "{script}");
        assert_eq!(place.sh("sh tests/slugify_test.sh").status.success(), *verified, "{script}");
        assert_eq!(played.exit_code, *exit_code, "{script}: {:?}", played.said);
        let results: Vec<&AgentEvent> =
            played.said.iter().filter(|s| matches!(s, AgentEvent::Result(_))).collect();
        assert_eq!(results, result.map(AgentEvent::Result).iter().collect::<Vec<_>>(), "{script}");
        let failed = |said: &&AgentEvent| matches!(said, AgentEvent::Message(text) if text.contains("failed: ") || text.starts_with("could not"));
        // Only a script that is about failing has a step that fails.
        assert_eq!(played.said.iter().any(|said| failed(&said)), *result == Some(Failed), "{script}");
    }
}

#[test]
fn scripts_do_what_their_names_say() {
    let push = AgentEvent::Tool { name: "shell".into(), command: "git push origin main".into() };
    assert!(played("forbidden-action").1.said.contains(&push));
    assert!(matches!(played("malformed-result").1.said.last(), Some(AgentEvent::Malformed(_))));
    let noisy = played("noisy").1;
    assert_eq!((noisy.said.len(), noisy.not_understood, noisy.cut), (2, 5, 1));
    assert!(std::str::from_utf8(&noisy.output).is_err());
}

#[test]
fn the_secret_looks_like_one_only_in_the_result() {
    let (place, _) = played("secret");
    let left = place.read("tests/sample.txt");
    let key = left.lines().find_map(|line| line.strip_prefix("aws_access_key_id = ")).unwrap();
    assert!(key.len() == 20 && key.starts_with(concat!("AK", "IA")), "{left}");
    let secret = left.lines().find_map(|line| line.strip_prefix("aws_secret_access_key = ")).unwrap();
    assert_eq!(secret.len(), 40);
    assert!(left.contains(concat!("-----BEGIN RSA PRIVATE", " KEY-----\n")));
    let yaml = slugify().script("secret").unwrap();
    assert!(!yaml.contains(key) && !yaml.contains(secret) && !yaml.contains(concat!("PRIVATE", " KEY")));
}

#[test]
fn commits_and_amends_are_real() {
    let (place, _) = played("commit-and-amend");
    assert_eq!(place.sh("git rev-list --count HEAD").stdout, b"3\n");
    assert_eq!(place.sh("git status --porcelain").stdout, b"");
    assert!(place.sh("git reflog").stdout.windows(7).any(|w| w == b"(amend)"));
    let (place, _) = played("nested-repo");
    assert!(place.path("tests/inner/.git/HEAD").is_file());
    let (place, _) = played("ignored-file");
    assert_eq!(place.sh("git check-ignore debug.log").stdout, b"debug.log\n");
}

#[test]
fn a_hostile_git_directory_affects_a_plain_git() {
    let place = ScriptDir::with(slugify());
    let canary = place.workspace.with_file_name("canary");
    let yaml = slugify().script("hostile-git").unwrap();
    let place_of_canary = "/tmp/herma-canary-hostile-git";
    assert!(yaml.contains(&format!(">> {place_of_canary}\n")));
    place.play(&yaml.replace(place_of_canary, canary.to_str().unwrap()));
    assert!(!canary.exists(), "the script itself must not trip it");
    for (trust, trace) in [
        ("git status", "canary.sh "),
        ("git add slugify.sh", "canary.sh"),
        ("git diff", "canary.sh "),
        ("git log -p --ext-diff", "canary.sh "),
        ("git checkout -f", "hostile-hooks/post-checkout"),
        (
            "git -c user.name=t -c user.email=t@t -c commit.gpgSign=false commit -m x --allow-empty",
            "hostile-hooks/pre-commit",
        ),
    ] {
        let _ = std::fs::remove_file(&canary);
        place.sh(trust);
        let caught = std::fs::read_to_string(&canary).unwrap_or_default();
        assert!(caught.contains(trace), "{trust}: {caught}");
    }
}

/// The longest sleep, and the sum of all, in milliseconds.
fn sleeps(steps: &[Step]) -> (u64, u64) {
    steps.iter().fold((0, 0), |(longest, sum), step| match step {
        Step::Sleep(span) => (longest.max(span.0), sum + span.0),
        Step::Repeat(repeat) => {
            let (inner, once) = sleeps(&repeat.steps);
            (longest.max(inner), sum + once * u64::from(repeat.times))
        }
        _ => (longest, sum),
    })
}

#[test]
fn endless_scripts_outlast_the_contracts_limits() {
    let limits = Contract::parse(slugify().contract.as_bytes()).unwrap().terms.limits;
    let steps = |name: &str| Script::parse(slugify().script(name).unwrap().as_bytes()).unwrap().steps;
    let position = |steps: &[Step], wanted: fn(&Step) -> bool| steps.iter().position(wanted);
    let sleep = |step: &Step| matches!(step, Step::Sleep(_));

    assert!(matches!(steps("slow-start")[0], Step::Sleep(span) if span > limits.startup));

    let idle = steps("goes-idle");
    assert!(matches!(idle[0], Step::Say(_)) && sleeps(&idle).0 > limits.idle.0);

    let (longest, sum) = sleeps(&steps("never-ends"));
    assert!(longest <= 50 && sum > limits.total.0);

    let lingers = steps("lingers-after-fix");
    let result = position(&lingers, |step| *step == Step::Result(ResultWord::Completed)).unwrap();
    assert!(result < position(&lingers, sleep).unwrap() && sleeps(&lingers).0 > limits.idle.0);

    let hangs = steps("fixes-then-hangs");
    assert!(hangs.contains(&Step::Result(ResultWord::None)) && sleeps(&hangs).0 > limits.total.0);

    assert!(steps("daemon").iter().any(|step| matches!(step, Step::Daemon(_))));
}
