//! `herma apply`: a person takes the verified patch of a run, and takes it back.

mod cut_off;
mod foreign_code;
mod refused;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::Digest;

use crate::kit::{Bundle, Ended, Finished, Herma, ON_REPOSITORY, Repository, fix_and};

/// The user's own git configuration.
const IDENTITY: &str = "[user]\n\tname = Ada Example\n\temail = ada@example.org\n";

/// A home and a repository with a git identity, and a run that passed on it.
struct Scene {
    herma: Herma,
    repository: Repository,
    run: Finished,
}

impl Scene {
    fn new() -> Self {
        Self::with(&fix_and(&[]), &ON_REPOSITORY, |_| {})
    }

    /// The same with another script and other terms; `before` changes the repository before it is committed.
    fn with(script: &str, terms: &[(&str, &str)], before: impl FnOnce(&Path)) -> Self {
        let herma = Herma::new();
        herma.file("user/.gitconfig", IDENTITY);
        let repository = Repository::of_fixture(&herma, "string-slugify");
        before(&repository.dir);
        repository.commit_if_changed();
        let run = herma.play(script, terms);
        run.assert_pass();
        Self { herma, repository, run }
    }

    fn id(&self) -> String {
        self.run.report.run_id.to_string()
    }

    /// `herma apply` in the repository with these arguments, where this was typed.
    fn typing(&self, typed: &str, args: &[&str]) -> Ended {
        let (id, repo) = (self.id(), self.repository.dir.to_str().unwrap());
        let place: &[&str] = if args.contains(&"--undo") { &[] } else { &["--repo", repo] };
        self.herma.run_typing(typed, &[&["apply", &id], place, args].concat())
    }

    /// The same with the right code.
    fn apply(&self, args: &[&str]) -> Ended {
        self.typing(&code(&self.run.bundle), args)
    }

    fn applied(&self, args: &[&str]) -> Ended {
        let ended = self.apply(args);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended
    }

    /// The command is refused with these words, and the repository is as before.
    fn refused(&self, args: &[&str], exit: i32, words: &str) -> Ended {
        let before = self.repository.picture();
        let ended = self.apply(args);
        assert_eq!(ended.code, Some(exit), "{words}: {ended:#?}");
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
        assert!(ended.stderr.contains("next: "), "{ended:#?}");
        assert_eq!(self.repository.picture(), before, "{words}");
        ended
    }

    fn record(&self) -> PathBuf {
        self.herma.home().join("applied").join(self.id())
    }
}

/// The short code of a run: the first digits of the digest of its attestation.
fn code(bundle: &Bundle) -> String {
    Digest::of(&bundle.read("attestation.json")).hex()[..6].to_owned()
}

#[test]
fn a_pass_changes_the_files_of_its_patch_and_nothing_else_and_is_taken_back() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    let applied = scene.applied(&[]);
    let id = scene.run.report.run_id.short();
    assert!(applied.stdout.contains(&format!("`herma apply --undo {id}`")), "{applied:#?}");

    let mut after = scene.repository.picture();
    let changed: Vec<_> = after.iter().filter(|(path, now)| before.get(*path) != Some(now)).collect();
    let [(path, (_, content))] = changed[..] else { panic!("{changed:?}") };
    assert_eq!(path, Path::new("slugify.sh"));
    assert!(String::from_utf8_lossy(content).contains("tr -cs 'a-z0-9' '-'"));
    // The tree is the one that the evidence names.
    scene.repository.git(&["add", "-A"]);
    let tree = scene.repository.git(&["write-tree"]);
    assert_eq!(Some(tree.trim()), scene.run.report.result_tree.as_deref());
    scene.repository.git(&["reset", "-q"]);

    let undone = scene.applied(&["--undo"]);
    assert!(undone.stdout.contains("taken back: 1 file as before"), "{undone:#?}");
    after = scene.repository.picture();
    for pictures in [&mut after, &mut before.clone()] {
        // `git add` and `git reset` of this test wrote these.
        pictures.retain(|path, _| !path.starts_with(".git"));
    }
    assert!(after.iter().all(|(path, now)| before.get(path) == Some(now)));
    assert!(!scene.record().exists());
    scene.refused(&["--undo"], 2, "is not applied anywhere");
    // It can be applied again.
    scene.applied(&[]);
}

#[test]
fn every_kind_of_change_is_applied_and_taken_back_exactly() {
    let steps = [
        "- shell: rm gone; rmdir empty-then 2>/dev/null; true",
        "- shell: rm was-file && mkdir was-file && echo inside > was-file/inside",
        "- shell: rm -r was-directory && echo now > was-directory",
        "- shell: mkdir -p new/deep && echo new > new/deep/file && chmod +x run && chmod -x stop",
        "- shell: ln -sfn slugify.sh link && ln -s deep new/link",
        "- shell: printf 'a\\0b' > binary",
    ];
    let terms = [&ON_REPOSITORY[..], &[("allowed_paths", "[\"**\"]")]].concat();
    let scene = Scene::with(&fix_and(&steps), &terms, |dir| {
        for (path, content) in [
            ("gone", "1"),
            ("was-file", "2"),
            ("was-directory/a", "3"),
            ("was-directory/b/c", "4"),
            ("run", "5"),
        ] {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::write(dir.join("stop"), "6").unwrap();
        fs::set_permissions(dir.join("stop"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("tests", dir.join("link")).unwrap();
    });
    let before = scene.repository.picture();
    scene.applied(&[]);
    let at = |path: &str| scene.repository.dir.join(path);
    let mode = |path: &str| fs::metadata(at(path)).unwrap().permissions().mode() & 0o777;
    assert!(!at("gone").exists() && at("was-file/inside").is_file() && at("was-directory").is_file());
    assert_eq!(fs::read(at("binary")).unwrap(), b"a\0b");
    assert_eq!(fs::read_link(at("link")).unwrap(), Path::new("slugify.sh"));
    assert_eq!((mode("run"), mode("stop") & 0o111), (0o750, 0), "other permissions stay");
    let left = fs::read_dir(&scene.repository.dir).unwrap().flatten();
    assert!(!left.map(|e| e.file_name()).any(|name| name.to_string_lossy().starts_with(".herma")));
    scene.applied(&["--undo"]);
    assert_eq!(scene.repository.picture(), before);
}

#[test]
fn a_branch_has_one_commit_by_the_person_with_the_run_in_its_trailers_and_is_taken_back() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    let made = scene.applied(&["--branch", "fix/slug"]);
    let git = |args: &[&str]| scene.repository.git(args);
    let shown = git(&["log", "-1", "--format=%an <%ae>|%cn <%ce>|%P|%s|%(trailers:unfold)", "fix/slug"]);
    let head = git(&["rev-parse", "HEAD"]);
    let ada = "Ada Example <ada@example.org>";
    let title = "slugify keeps outer and repeated whitespace";
    assert!(shown.starts_with(&format!("{ada}|{ada}|{}|{title}|", head.trim())), "{shown}");
    let digest = Digest::of(&scene.run.bundle.read("attestation.json"));
    for trailer in [
        format!("Herma-Run: {}", scene.id()),
        format!("Herma-Contract: trim-slug {}", scene.run.report.contract_digest),
        format!("Herma-Bundle: {digest}"),
    ] {
        assert!(shown.contains(&trailer), "{trailer}: {shown}");
    }
    let tree = git(&["rev-parse", "fix/slug^{tree}"]);
    assert_eq!(Some(tree.trim()), scene.run.report.result_tree.as_deref());
    assert!(made.stdout.contains(git(&["rev-parse", "fix/slug"]).trim()), "{made:#?}");
    git(&["fsck", "--strict"]);
    // Work tree, index, HEAD and the configuration are not touched.
    let outside = |picture: &std::collections::BTreeMap<PathBuf, (u32, Vec<u8>)>| {
        let mut picture = picture.clone();
        picture
            .retain(|path, _| !path.starts_with(".git/objects") && !path.starts_with(".git/refs/heads/fix"));
        picture
    };
    assert_eq!(outside(&scene.repository.picture()), outside(&before));
    scene.applied(&["--undo"]);
    assert_eq!(scene.repository.picture(), before);
}

#[test]
fn a_branch_that_was_moved_or_is_checked_out_is_not_deleted() {
    let scene = Scene::new();
    scene.applied(&["--branch", "mine"]);
    let git = |args: &[&str]| scene.repository.git(args);
    let made = git(&["rev-parse", "mine"]);
    git(&["checkout", "-q", "mine"]);
    scene.refused(&["--undo"], 3, "is not deleted: it is checked out");
    git(&["checkout", "-q", "main"]);
    git(&["update-ref", "refs/heads/mine", "main"]);
    scene.refused(&["--undo"], 3, "is not deleted: it points to");
    git(&["update-ref", "refs/heads/mine", made.trim()]);
    scene.applied(&["--undo"]);
    assert_eq!(git(&["branch", "--list", "mine"]), "");
}

#[test]
fn the_output_for_programs_names_what_was_done() {
    let scene = Scene::new();
    let applied = scene.applied(&["--json"]).json();
    assert_eq!(applied["schema"], "herma.apply/v1");
    assert_eq!((&applied["action"], &applied["files"][0]), (&"applied".into(), &"slugify.sh".into()));
    assert_eq!(scene.applied(&["--undo", "--json"]).json()["action"], "undone");
    let branched = scene.applied(&["--branch", "b", "--json"]).json();
    assert_eq!((&branched["action"], &branched["branch"]), (&"branched".into(), &"b".into()));
    assert_eq!(branched["commit"], scene.repository.git(&["rev-parse", "b"]).trim());
}

#[test]
fn a_patch_that_the_person_took_back_is_no_obstacle() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    scene.applied(&[]);
    scene.repository.git(&["checkout", "-q", "--", "slugify.sh"]);
    scene.refused(&[], 3, "is already applied");
    scene.applied(&["--undo"]);
    let at = Path::new("slugify.sh");
    assert_eq!(scene.repository.picture()[at], before[at]);
    scene.applied(&[]);
}

#[test]
fn new_content_gets_no_setuid_bit_and_undo_restores_it() {
    let scene = Scene::new();
    let file = scene.repository.dir.join("slugify.sh");
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
    let before = mode() | 0o6000;
    fs::set_permissions(&file, fs::Permissions::from_mode(before)).unwrap();
    assert_eq!(mode(), before);
    scene.applied(&[]);
    assert_eq!(mode(), before & 0o777);
    scene.applied(&["--undo"]);
    assert_eq!(mode(), before);
}
