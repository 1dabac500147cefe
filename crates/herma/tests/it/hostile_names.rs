//! Names, depths and repositories that an engine leaves, each through a real run: none of them stops herma.

use std::fs;

use herma_core::Blocker;
use herma_core::report::PathRule as Rule;

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, fix_and, run_tool};

/// A run that fixes the bug and then runs this Python program in the workspace.
fn fix_then_python(herma: &Herma, program: &str, terms: &[(&str, &str)]) -> Finished {
    let program = herma.file("program.py", program);
    let encoded = run_tool("base64", &["-w0".as_ref(), program.as_os_str()], &[]);
    let step =
        format!("- shell: {{ command: \"echo {} | base64 -d | python3\", must: true }}", encoded.trim());
    herma.play(&fix_and(&[&step]), terms)
}

const WRITE: &str = r"
import os
def write(path, text=b'x'):
    path = path if isinstance(path, bytes) else path.encode()
    os.makedirs(os.path.dirname(path) or b'.', exist_ok=True)
    open(path, 'wb').write(text)
def nest(top, name, levels):
    os.chdir(top)
    for _ in range(levels):
        os.mkdir(name)
        os.chdir(name)
";

fn python(program: &str) -> Finished {
    fix_then_python(&Herma::new(), &format!("{WRITE}{program}"), &[])
}

#[test]
fn names_that_mean_something_to_git_are_names() {
    let run = python(
        "for name in [':!x', ':(exclude)x', '-x', '--stdin', '@', '@{u}', '*', '[a]', 'a?', '!x', '#x', '~', '\"q\"', 'b\\\\s']:\n    write('tests/' + name)",
    );
    run.assert_pass();
    assert_eq!(run.changed().len(), 15, "{:?}", run.changed());
    python("write(':!x')").assert_disallowed(&[(":!x", Rule::NotAllowed)]);
}

#[test]
fn a_directory_where_the_base_has_a_link_is_a_change_like_any_other() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    std::os::unix::fs::symlink("notes.md", repository.dir.join("tests/again")).unwrap();
    repository.commit("a link");
    let steps = ["- delete: tests/again", "- write: { path: tests/again/x.md, text: x }"];
    let run = herma.play(&fix_and(&steps), &ON_REPOSITORY);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh", "tests/again", "tests/again/x.md"]);
}

#[test]
fn a_path_that_is_too_long_fails_the_run_and_is_named() {
    for (program, depth) in [
        ("nest('tests', 'a' * 100, 12)\nwrite('file')", 12),
        ("nest('tests', 'a' * 100, 60)\nwrite('file')", 40),
        // No file, and still nothing that could be looked at.
        ("nest('tests', 'a' * 100, 60)", 40),
    ] {
        let run = python(program);
        run.assert_only(Blocker::UnsupportedPath);
        let [violation] = &run.report.path_violations[..] else { panic!("{:#?}", run.report) };
        assert_eq!(violation.rule, Rule::UnsupportedPath);
        assert_eq!(violation.path.to_string().matches("/aaa").count(), depth);
        assert!(run.report.blockers[0].detail.len() < 500, "{:?}", run.report.blockers);
    }
}

#[test]
fn directories_without_end_are_removed_and_do_not_stop_herma() {
    for (destination, top) in [("host", "tests"), ("host", ".git/objects"), ("sandbox", "tests")] {
        let program = format!("{WRITE}nest('{top}', 'a', 25000)");
        // The kit sees that only the bundle is left.
        let run = fix_then_python(&Herma::new(), &program, &[("destination", destination)]);
        assert_ne!(run.ended.code, Some(4), "{destination} {top}: {:#?}", run.report.blockers);
        if destination == "host" && top == "tests" {
            run.assert_only(Blocker::UnsupportedPath);
        }
    }
}

#[test]
fn control_files_of_git_that_are_too_deep_are_refused() {
    let run = python("os.makedirs('.git/hooks', exist_ok=True)\nnest('.git/hooks', 'a' * 100, 60)");
    run.assert_only(Blocker::DisallowedFile);
}

#[test]
fn names_that_git_refuses_are_not_in_the_patch_and_the_bundle_holds() {
    for name in ["git~1", ".git ", ".git::$INDEX_ALLOCATION", "a\\\\.git", ".g\\u200cit"] {
        let run = python(&format!("write('tests/{name}/config')"));
        run.assert_only(Blocker::DisallowedFile);
        let rules: Vec<Rule> = run.report.path_violations.iter().map(|v| v.rule).collect();
        assert_eq!(rules, [Rule::NestedRepository], "{name}");
        assert_eq!(run.changed(), ["slugify.sh"], "{name}");
    }
    let run = python("os.symlink('x', 'tests/.gitmodules')");
    run.assert_only(Blocker::UnsupportedPath);
    assert_eq!(run.report.path_violations[0].path.to_string(), "tests/.gitmodules");
}

#[test]
fn many_files_are_judged_one_by_one() {
    let run = python("for n in range(4000): write('src/%d/%d' % (n % 100, n))");
    run.assert_only(Blocker::DisallowedFile);
    assert_eq!(run.report.path_violations.len(), 4_000);
}

#[test]
fn characters_that_deceive_are_refused_in_new_names() {
    for name in ["a\\u202eb", "a\\u200bb", "\\ufeffa", "a\\U000e0041", "a\\u2028b", "a\\u00a0b"] {
        let run = python(&format!("os.rename('tests/notes.md', 'tests/{name}')"));
        run.assert_only(Blocker::DisallowedFile);
        let [violation] = &run.report.path_violations[..] else { panic!("{:#?}", run.report) };
        assert_eq!(violation.rule, Rule::UnprintableName, "{name}");
        assert!(violation.detail.contains("U+"), "{}", violation.detail);
    }
}

#[test]
fn characters_that_deceive_may_stay_where_the_base_has_them() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    fs::write(repository.dir.join("tests/a\u{200b}b"), "old\n").unwrap();
    repository.commit("a name");
    let run = herma.play(&fix_and(&["- append: { path: \"tests/a\\u200bb\", text: new }"]), &ON_REPOSITORY);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh", "tests/a\u{200b}b"]);
}

const BARE: &str = "write('tests/r/HEAD', b'ref: refs/heads/main\\n')\nwrite('tests/r/config', b'[core]\\n\\tfsmonitor = touch /tmp/x\\n')\n";

#[test]
fn a_bare_repository_in_the_result_is_refused() {
    let run = python(&format!("{BARE}write('tests/r/objects/x')\nwrite('tests/r/refs/x')"));
    run.assert_disallowed(&[("tests/r/HEAD", Rule::BareRepository)]);
    let run = python(&format!("{BARE}write('tests/r/commondir', b'../../.git')"));
    run.assert_disallowed(&[("tests/r/HEAD", Rule::BareRepository)]);
    python(BARE).assert_pass();
}

#[test]
fn a_change_that_takes_a_piece_of_a_bare_repository_away_is_refused() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    for (path, text) in [("HEAD", "ref: refs/heads/main\n"), ("objects/x", ""), ("refs/x", "")] {
        let file = repository.dir.join("tests/r").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    repository.commit("a repository");
    let steps = ["- write: { path: tests/r/config, text: x }", "- shell: rm -r tests/r/refs"];
    let run = herma.play(&fix_and(&steps), &ON_REPOSITORY);
    run.assert_disallowed(&[("tests/r/refs/x", Rule::BareRepository)]);
}

#[test]
fn a_bare_repository_that_the_change_completes_is_refused() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    for (path, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n"), ("objects/x", "")] {
        let file = repository.dir.join("tests/r").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    repository.commit("a part of a repository");
    let run = herma.play(&fix_and(&["- write: { path: tests/r/refs/x, text: x }"]), &ON_REPOSITORY);
    run.assert_disallowed(&[("tests/r/refs/x", Rule::BareRepository)]);
    // With the target at hand the whole tree is checked too.
    let (bundle, repo) = (run.bundle.dir.as_os_str(), repository.dir.as_os_str());
    let verified = herma.run(&["verify".as_ref(), bundle, "--repo".as_ref(), repo]);
    assert_eq!(verified.code, Some(0), "{verified:#?}");
}
