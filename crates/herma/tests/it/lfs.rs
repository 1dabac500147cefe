//! Git LFS files of a target: they come along as its work tree has them, no filter runs, and no content lands in the place of a
//! pointer.

use std::fs;

use herma_core::content::MissingReason;
use herma_core::report::PathRule;
use herma_core::{Blocker, Digest};

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, fix_and};

const CONTENT: &str = "a large binary, in a few words\n";

fn pointer(content: &str) -> String {
    let (digest, size) = (Digest::of(content.as_bytes()), content.len());
    format!("version https://git-lfs.github.com/spec/v1\noid {digest}\nsize {size}\n")
}

/// A repository that keeps `*.bin` by Git LFS, as a clone has it: pointers in commits, files in the work tree. Its filter must never
/// be run.
struct Target {
    repository: Repository,
    filter_ran: std::path::PathBuf,
}

impl Target {
    fn new(herma: &Herma) -> Self {
        let repository = Repository::of_fixture(herma, "string-slugify");
        let write = |path: &str, text: &str| fs::write(repository.dir.join(path), text).unwrap();
        write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        write("data.bin", &pointer(CONTENT));
        write("twin.bin", &pointer(CONTENT));
        write("note.txt", &pointer("no attribute, no pointer"));
        write("plain.bin", "committed as it is\n");
        repository.commit("by Git LFS");
        write("data.bin", CONTENT);
        write("twin.bin", CONTENT);
        let filter_ran = herma.at("filter-ran");
        let filter = format!("touch {}; cat", filter_ran.display());
        for name in ["clean", "smudge"] {
            repository.git(&["config", &format!("filter.lfs.{name}"), &filter]);
        }
        repository.git(&["config", "filter.lfs.required", "true"]);
        Self { repository, filter_ran }
    }
}

fn play(herma: &Herma, steps: &[&str], terms: &[(&str, &str)]) -> Finished {
    let allowed = [("allowed_paths", "[\"**\"]"), ("lift_paths", "[.gitattributes]")];
    herma.play(&fix_and(steps), &[&ON_REPOSITORY[..], &allowed, terms].concat())
}

fn shell(command: &str) -> String {
    format!("- shell: {command:?}")
}

#[test]
fn files_come_along_unchanged_and_no_filter_runs() {
    let herma = Herma::new();
    let target = Target::new(&herma);
    let before = target.repository.picture();
    let environment = r#"{ history: full, setup: ["mkdir deps && cp data.bin deps/data"], cache: [deps] }"#;
    let verify = "[\"grep -q 'large binary' data.bin twin.bin deps/data && grep -q 'oid sha256' note.txt\", \
                  \"test -z \\\"$(git status --porcelain -uno)\\\"\"]";
    let look = shell("cat data.bin; git status --porcelain -uno");
    let run = play(&herma, &[&look], &[("environment", environment), ("verify", verify)]);
    run.assert_pass();
    assert!(
        run.engine_said().contains(CONTENT) && !run.engine_said().contains(".bin"),
        "{}",
        run.engine_said()
    );
    assert_eq!(run.changed(), ["slugify.sh"]);
    assert_eq!(run.report.missing_content, None);
    assert!(!target.filter_ran.exists());
    assert_eq!(target.repository.picture(), before);
    // A pointer in the place of its file is what the base has.
    let again = shell(&format!("printf '%s' '{}' > data.bin", pointer(CONTENT)));
    let run = play(&herma, &[&again], &[]);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh"]);
}

#[test]
fn content_never_takes_the_place_of_a_pointer() {
    let herma = Herma::new();
    Target::new(&herma);
    for (work, path) in [
        ("echo other > data.bin", "data.bin"),
        ("chmod +x data.bin", "data.bin"),
        ("rm data.bin; ln -s plain.bin data.bin", "data.bin"),
        ("echo new > new.bin", "new.bin"),
        ("cp data.bin copy.bin", "copy.bin"),
        ("echo more >> plain.bin", "plain.bin"),
        // The attributes of the base decide: a patch cannot take its own files out.
        ("echo new > .gitattributes; echo new > new.bin", "new.bin"),
    ] {
        let run = play(&herma, &[&shell(work)], &[]);
        run.assert_disallowed(&[(path, PathRule::LfsFile)]);
    }
    for (work, changed) in [("rm data.bin", "data.bin"), ("echo new > new.txt", "new.txt")] {
        let run = play(&herma, &[&shell(work)], &[("verify", "[\"test ! -e data.bin || test -e new.txt\"]")]);
        run.assert_pass();
        assert!(run.changed().contains(&changed.to_owned()), "{:?}", run.changed());
    }
}

#[test]
fn attributes_of_more_than_a_megabyte_count_too() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let comments = format!("# {}\n", "x".repeat(97)).repeat(11_000);
    fs::write(repository.dir.join(".gitattributes"), format!("{comments}*.bin filter=lfs -text\n")).unwrap();
    repository.commit("by Git LFS");
    let run = play(&herma, &["- write: { path: x.bin, text: content }"], &[]);
    run.assert_only(Blocker::DisallowedFile);
}

#[test]
fn a_file_that_is_not_there_is_named_before_the_agent_starts() {
    let herma = Herma::new();
    let target = Target::new(&herma);
    let data = target.repository.dir.join("data.bin");
    let missing = |run: &Finished| {
        let missing = run.report.missing_content.clone().map_or_else(Vec::new, |missing| missing.first);
        missing.into_iter().map(|missing| (missing.path.to_string(), missing.reason)).collect::<Vec<_>>()
    };
    // The other path with the same pointer has the file.
    fs::write(&data, pointer(CONTENT)).unwrap();
    let run = play(&herma, &[], &[("verify", "[\"grep -q 'large binary' data.bin\"]")]);
    run.assert_pass();
    assert_eq!(missing(&run), []);
    fs::write(target.repository.dir.join("twin.bin"), pointer(CONTENT)).unwrap();
    let environment = r#"{ setup: ["mkdir deps && cp data.bin deps/data"], cache: [deps] }"#;
    let is_pointer =
        [("environment", environment), ("verify", "[\"grep -q 'oid sha256' data.bin deps/data\"]")];
    let run = play(&herma, &[], &is_pointer);
    run.assert_pass();
    let absent = |path: &str| (path.to_owned(), MissingReason::LfsFileAbsent);
    assert_eq!(missing(&run), [absent("data.bin"), absent("twin.bin")]);
    assert!(
        run.bundle.text("report.md").contains("only its pointer is there"),
        "{}",
        run.bundle.text("report.md")
    );
    // An environment of pointers is not one of their files.
    fs::write(&data, CONTENT).unwrap();
    play(&herma, &[], &[is_pointer[0], ("verify", "[\"grep -q 'large binary' data.bin deps/data\"]")])
        .assert_pass();
    // A change of the owner's is a change, whatever the filter would say.
    fs::write(&data, CONTENT.replace('w', "v")).unwrap();
    play(&herma, &[], &[]).assert_only(Blocker::DirtyStartingTree);
    // The next command of the owner's own git runs it.
    assert!(!target.filter_ran.exists());
    for path in ["data.bin", "twin.bin"] {
        fs::write(target.repository.dir.join(path), CONTENT.replace('w', "v")).unwrap();
        target.repository.git(&["update-index", "--assume-unchanged", path]);
    }
    let run = play(&herma, &[], &[("verify", "[\"grep -q 'oid sha256' data.bin\"]")]);
    run.assert_pass();
    assert_eq!(missing(&run)[0], ("data.bin".to_owned(), MissingReason::LfsFileDiffers));
}
