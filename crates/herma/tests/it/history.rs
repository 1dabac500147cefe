//! The git history that a contract gives to the workspace and to each checkout: as much as it asks for, and nothing else of the
//! target.

use herma_core::Blocker;
use herma_core::environment::{EnvironmentRecord, HistoryRecord};

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, fix_and};

/// Three commits, with an annotated tag at the first and a plain one at the second, beside a branch, a stash, a remote and reflogs.
struct Target {
    repository: Repository,
    base: String,
    side: String,
}

impl Target {
    fn new(herma: &Herma) -> Self {
        let repository = Repository::of_fixture(herma, "string-slugify");
        let owner = ["-c", "user.name=owner", "-c", "user.email=owner@herma.invalid"];
        let git = |args: &[&str]| repository.git(&[&owner[..], args].concat());
        git(&["tag", "-a", "-m", "the first", "v1.0"]);
        git(&["checkout", "-q", "-b", "side"]);
        std::fs::write(repository.dir.join("side"), "nobody asked for this\n").unwrap();
        repository.commit("on the side");
        git(&["tag", "v9.9-side"]);
        let side = git(&["rev-parse", "HEAD"]).trim().to_owned();
        git(&["checkout", "-q", "main"]);
        for name in ["second", "third"] {
            std::fs::write(repository.dir.join(name), name).unwrap();
            repository.commit(name);
            if name == "second" {
                git(&["tag", "light"]);
            }
        }
        std::fs::write(repository.dir.join("second"), "stashed").unwrap();
        git(&["stash", "-q"]);
        git(&["remote", "add", "origin", "https://example.invalid/secret-place.git"]);
        let base = git(&["rev-parse", "HEAD"]).trim().to_owned();
        Self { repository, base, side }
    }
}

fn play(herma: &Herma, steps: &[&str], environment: &str, verify: &str) -> Finished {
    let terms = [("environment", environment), ("verify", verify)];
    herma.play(&fix_and(steps), &[&ON_REPOSITORY[..], &terms].concat())
}

fn history(run: &Finished) -> HistoryRecord {
    let record: EnvironmentRecord = serde_json::from_str(&run.bundle.text("environment.json")).unwrap();
    record.history.unwrap()
}

fn shell(command: &str) -> String {
    format!("- shell: {command:?}")
}

fn listed(commands: &[&str]) -> String {
    serde_json::to_string(commands).unwrap()
}

#[test]
fn agent_setup_and_verification_see_the_history_that_was_asked_for_and_nothing_else() {
    let herma = Herma::new();
    let Target { base, side, .. } = Target::new(&herma);
    let look = "git describe; git log --format=%s; git status --porcelain; git tag; git branch -a; git remote -v; \
                git stash list; cat .git/config .git/packed-refs; find .git/logs .git/hooks .git/objects/info -type f; \
                git cat-file --batch-all-objects --batch-check";
    let environment =
        r#"{ history: full, setup: ["mkdir deps && git describe > deps/version"], cache: [deps] }"#;
    let verify = listed(&[
        "cat deps/version && grep -q ^v1.0-2-g deps/version",
        // The base, and the result as one commit on top of it.
        "git describe --dirty | grep -E '^v1[.]0-[23]-g[0-9a-f]+$'",
        &format!(
            "git merge-base --is-ancestor {base} HEAD && test -z \"$(git status --porcelain | grep -v deps)\""
        ),
        &format!(
            "! git cat-file -e {side} && ! git rev-parse -q --verify v9.9-side && test -z \"$(git remote)\""
        ),
        "git fsck --strict --no-dangling",
        "sh tests/slugify_test.sh || test $(git rev-list --count HEAD) = 3",
    ]);
    // Before the work, so that the first step is not the fix.
    let script = format!("steps:\n  {}\n{}", shell(look), fix_and(&[]).strip_prefix("steps:").unwrap());
    let terms = [("environment", environment), ("verify", &verify)];
    let run = herma.play(&script, &[&ON_REPOSITORY[..], &terms].concat());
    run.assert_pass();
    let said = run.engine_said();
    assert!(said.contains("v1.0-2-g") && said.contains("the first commit"), "{said}");
    for never in [&*side, "side", "example.invalid", "secret-place", "WIP", "stash", "origin", "hooks/"] {
        assert!(!said.contains(never), "{never}: {said}");
    }
    let seen = history(&run);
    assert_eq!((seen.commit, seen.is_shallow, seen.tags), (base, false, 2));
    herma.assert_verifies(&run.bundle);
}

#[test]
fn a_depth_cuts_the_history_and_its_tags_as_a_clone_does() {
    let herma = Herma::new();
    Target::new(&herma);
    let look = shell("git rev-list --count HEAD; git tag");
    let verify =
        listed(&["git describe --tags | grep -E '^light-[12]-g'", "! git rev-parse -q --verify v1.0"]);
    let run = play(&herma, &[&look], "{ history: 2 }", &verify);
    run.assert_pass();
    assert!(run.engine_said().contains("2\nlight\n"), "{}", run.engine_said());
    let seen = history(&run);
    assert_eq!((seen.is_shallow, seen.tags), (true, 1));
}

#[test]
fn nothing_that_an_agent_does_to_its_repository_reaches_the_result_or_verification() {
    let herma = Herma::new();
    let target = Target::new(&herma);
    let before = target.repository.picture();
    for work in [
        "git -c user.name=a -c user.email=a@b commit -qam mine; git tag v7.7; git branch evil",
        "git -c user.name=a -c user.email=a@b commit -qam mine; git checkout -q --detach v1.0; git checkout -q main",
        "git add -A; git update-ref refs/replace/$(git rev-parse HEAD) $(git rev-parse HEAD~1); rm .git/packed-refs",
        "rm -rf .git/objects; echo $(printf %040d 0) > .git/refs/heads/main",
        "git gc -q --prune=now; git repack -adq",
    ] {
        let verify = listed(&[
            "git describe | grep -E '^v1[.]0-[23]-g'",
            "test -z \"$(git tag -l v7.7)$(git branch -l evil)$(git status --porcelain)$(git replace -l)\"",
            "! git log --format=%s | grep mine",
        ]);
        let run = play(&herma, &[&shell(work)], "{ history: full }", &verify);
        run.assert_pass();
        assert_eq!(run.changed(), ["slugify.sh"], "{work}");
    }
    // Hooks and settings that git would run are a violation, as without a history.
    let hook = shell("mkdir -p .git/hooks; echo 'touch /tmp/x' > .git/hooks/post-checkout");
    play(&herma, &[&hook], "{ history: full }", "[\"true\"]").assert_only(Blocker::DisallowedFile);
    assert_eq!(target.repository.picture(), before);
}

#[test]
fn the_tests_as_they_were_before_the_agent_run_with_history_too() {
    let herma = Herma::new();
    Target::new(&herma);
    let verify = listed(&["git describe | grep ^v1.0 && test -z \"$(git status --porcelain)\""]);
    let steps = ["- append: { path: tests/slugify_test.sh, text: \"# more\\n\" }"];
    let terms = [
        ("environment", "{ history: full }"),
        ("verify", &*verify),
        ("allowed_paths", "[slugify.sh, \"tests/**\"]"),
    ];
    let run = herma.play(&fix_and(&steps), &[&ON_REPOSITORY[..], &terms].concat());
    run.assert_pass();
    assert_eq!(run.report.verification_with_baseline_tests.len(), 1, "{:#?}", run.report);
}

#[test]
fn another_tag_on_the_same_tree_is_another_environment() {
    let herma = Herma::new();
    let target = Target::new(&herma);
    let environment =
        r#"{ history: full, setup: ["mkdir deps && git describe > deps/version"], cache: [deps] }"#;
    let is = |version: &str| format!("[\"grep {version} deps/version\"]");
    play(&herma, &[], environment, &is("v1.0-2-g")).assert_pass();
    target.repository.git(&["-c", "user.name=o", "-c", "user.email=o@b", "tag", "-a", "-m", "two", "v2.0"]);
    play(&herma, &[], environment, &is("^v2.0$")).assert_pass();
    let all = ["git describe | grep ^v2.0"];
    play(&herma, &[], "{ history: full }", &listed(&all)).assert_pass();
    // Without setup the preflight sees it too.
    target.repository.git(&["tag", "-d", "v2.0"]);
    let gone = play(&herma, &[], "{ history: full }", &listed(&all));
    gone.assert_only(Blocker::VerificationFailed);
}

#[test]
fn a_shallow_clone_gives_what_it_has_and_a_damaged_one_blocks_before_the_agent() {
    let herma = Herma::new();
    let target = Target::new(&herma);
    let (from, to) = (herma.at("repo"), herma.at("full"));
    std::fs::rename(&from, &to).unwrap();
    let url = format!("file://{}", to.display());
    let clone = ["clone", "-q", "--depth=2", &url, from.to_str().unwrap()].map(std::ffi::OsStr::new);
    crate::kit::run_tool("git", &clone, &[]);
    let count = shell("git rev-list --count HEAD");
    let run =
        play(&herma, &[&count], "{ history: full }", "[\"git log --oneline | wc -l | grep -E '[23]'\"]");
    run.assert_pass();
    assert!(run.engine_said().contains("2\n"), "{}", run.engine_said());
    assert!(history(&run).is_shallow);
    std::fs::remove_dir_all(&from).unwrap();
    std::fs::rename(&to, &from).unwrap();
    let first = target.repository.git(&["rev-parse", "HEAD~2"]);
    std::fs::remove_file(from.join(".git/objects").join(&first[..2]).join(first[2..].trim())).unwrap();
    let run = play(&herma, &[], "{ history: full }", "[\"true\"]");
    run.assert_only(Blocker::EnvironmentFailed);
    assert!(run.report.blockers[0].detail.contains("history of the base"), "{:#?}", run.report.blockers);
    assert!(!run.report.engine_started);
    play(&herma, &[], "{ history: 2 }", "[\"true\"]").assert_pass();
}

#[test]
fn without_a_history_there_is_none_and_a_fixture_is_one_commit() {
    let herma = Herma::new();
    Target::new(&herma);
    let look = shell("git log --format=%s");
    let run = play(&herma, &[&look], "{ history: none }", "[\"test ! -e .git\"]");
    run.assert_pass();
    assert!(run.engine_said().contains("baseline\n") && !run.engine_said().contains("the first"));
    let terms = [
        ("environment", "{ history: full }"),
        ("verify", "[\"git log --oneline | wc -l | grep -E '^[12]$'\"]"),
    ];
    herma.play(&fix_and(&[]), &terms).assert_pass();
}
