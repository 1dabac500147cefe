//! Named cases of the allowed-path check.

use herma_core::contract::Terms;
use herma_core::report::{Mode, PathRule};
use herma_rules::forbidden_paths::built_in;
use herma_rules::{MAX_FILE_BYTES, PathRules};

use crate::facts::{Tree, path, terms};

fn everything() -> Terms {
    terms(&["**"], &[], &[])
}

#[track_caller]
fn breaks(tree: impl std::borrow::Borrow<Tree>, terms: &Terms, expected: &[(&str, PathRule)]) {
    let expected: Vec<(String, PathRule)> = expected.iter().map(|(p, r)| ((*p).to_owned(), *r)).collect();
    assert_eq!(tree.borrow().broken(terms), expected);
}

fn new() -> Tree {
    Tree::default()
}

#[test]
fn a_directory_covers_what_is_below_it() {
    let terms = terms(&["src/", "foo", "/root", "a/b"], &[], &[]);
    let inside =
        new().edit("src/x/y").edit("x/src/y").edit("x/foo").edit("foo/x").edit("root/x").edit("a/b/c");
    breaks(inside, &terms, &[]);
    let outside = new().edit("src").edit("x/root").edit("x/a/b");
    breaks(
        outside,
        &terms,
        &[("src", PathRule::NotAllowed), ("x/a/b", PathRule::NotAllowed), ("x/root", PathRule::NotAllowed)],
    );
}

#[test]
fn allowed_paths_are_exact_and_forbidden_ones_fold() {
    breaks(new().edit("SRC/a"), &terms(&["src/**"], &[], &[]), &[("SRC/a", PathRule::NotAllowed)]);
    let terms = terms(&["**"], &["docs/Ärger/**"], &[]);
    breaks(new().edit("Docs/äRGER/x"), &terms, &[("Docs/äRGER/x", PathRule::Forbidden)]);
}

#[test]
fn deny_wins_over_allow() {
    let terms = terms(&["docs/**", "docs/legal/x"], &["docs/legal/**"], &["docs/legal/x"]);
    breaks(new().edit("docs/a").edit("docs/legal/x"), &terms, &[("docs/legal/x", PathRule::Forbidden)]);
}

#[test]
fn every_built_in_path_is_forbidden_at_any_depth_and_in_any_case() {
    for built_in in built_in() {
        let name = built_in.pattern.trim_start_matches("**/").replace('*', "x");
        let name = name.strip_suffix('/').map_or(name.clone(), |directory| format!("{directory}/file"));
        for at in [name.clone(), format!("deep/er/{name}"), name.to_uppercase(), format!("{name}/below")] {
            breaks(new().edit(&at), &everything(), &[(&at, PathRule::Forbidden)]);
        }
    }
}

#[test]
fn disguises_of_dot_git_are_forbidden() {
    for at in ["git~1/config", ".g\u{200c}it/config", ".GIT/config", ".git./config", "a/.Git /x"] {
        breaks(new().edit(at), &terms(&["**"], &[], &["**"]), &[(at, PathRule::Forbidden)]);
    }
}

#[test]
fn ordinary_names_are_not_forbidden() {
    let tree =
        new().edit(".gitignore").edit("src/environment.rs").edit("secretary.py").edit("docs/deploying.md");
    breaks(tree.edit("vendors.py").edit("vendor").edit(".github/FUNDING.yml"), &everything(), &[]);
    // Files that people have agents edit every day decide what verification does; they are not forbidden.
    for at in [
        "Makefile",
        "package.json",
        "Cargo.toml",
        "pyproject.toml",
        "build.rs",
        "pom.xml",
        "src/rules.py",
        "go.mod",
    ] {
        breaks(new().edit(at), &everything(), &[]);
    }
}

#[test]
fn a_lift_lifts_only_what_it_names() {
    let lift = |lifted: &[&str], at: &str| new().edit(at).broken(&terms(&["**"], &[], lifted)).is_empty();
    assert!(lift(&["Cargo.lock"], "Cargo.lock"));
    assert!(lift(&["Cargo.lock"], "a/Cargo.lock"));
    assert!(!lift(&["Cargo.lock"], "cargo.LOCK"));
    assert!(!lift(&["/Cargo.lock"], "a/Cargo.lock"));
    assert!(!lift(&["Cargo.lock"], "yarn.lock"));
    assert!(!lift(&["Cargo.lock"], "vendor/Cargo.lock"));
    assert!(!lift(&["**/Cargo.lock"], "vendor/Cargo.lock"));
    assert!(lift(&["Cargo.lock", "vendor/"], "vendor/Cargo.lock"));
    assert!(lift(&["vendor/lib/**"], "vendor/lib/x"));
    assert!(!lift(&["vendor/lib/**"], "vendor/other/x"));
    assert!(lift(&[".github/workflows/test.yml"], ".github/workflows/test.yml"));
    assert!(!lift(&[".github/workflows/test.yml"], ".github/workflows/release.yml"));
}

#[test]
fn nothing_lifts_the_two_states_or_the_contracts_own_list() {
    let terms = terms(&["**"], &["x"], &["**", ".git", ".herma", "/.git/**", "x", "a/b/.herma/c"]);
    for at in [".git/config", ".herma/home", "a/.git", "a/b/.herma/c", "x"] {
        breaks(new().edit(at), &terms, &[(at, PathRule::Forbidden)]);
    }
}

#[test]
fn a_lift_is_no_allowance() {
    let terms = terms(&["src/**"], &[], &["Cargo.lock"]);
    breaks(new().edit("Cargo.lock"), &terms, &[("Cargo.lock", PathRule::NotAllowed)]);
}

#[test]
fn both_ends_of_a_rename_are_judged() {
    let terms = terms(&["src/**"], &[], &[]);
    breaks(new().delete("src/a").add("lib/a"), &terms, &[("lib/a", PathRule::NotAllowed)]);
    breaks(new().delete("lib/a").add("src/a"), &terms, &[("lib/a", PathRule::NotAllowed)]);
}

#[test]
fn a_change_of_mode_is_a_change() {
    let tree = new().change("run.sh", Some(Mode::File), Some(Mode::Executable));
    breaks(tree, &terms(&["src/**"], &[], &[]), &[("run.sh", PathRule::NotAllowed)]);
}

#[test]
fn symlinks_stay_inside() {
    breaks(new().link("a/b", "../c").link("c", "d/e"), &everything(), &[]);
    for target in ["/etc/passwd", "../x", "..", "b/../../x", ".git/config", "b/.GIT/x", "b\\.git"] {
        breaks(new().link("a", target), &everything(), &[("a", PathRule::SymlinkEscape)]);
    }
}

#[test]
fn a_file_that_became_a_link_is_judged_as_one() {
    let mut tree = new().change("a", Some(Mode::File), Some(Mode::Symlink));
    breaks(Tree(tree.0.clone()), &everything(), &[("a", PathRule::SymlinkEscape)]);
    tree.0.links.insert(path("a"), b"b".to_vec());
    breaks(tree, &everything(), &[]);
}

#[test]
fn a_directory_that_became_a_link_is_a_change_of_that_path() {
    let tree = || new().delete("src/a").delete("src/b").link("src", "docs");
    breaks(tree(), &terms(&["src/**"], &[], &[]), &[("src", PathRule::NotAllowed)]);
    breaks(tree(), &terms(&["src"], &[], &[]), &[]);
    let out = new().delete("src/a").link("src", "/etc");
    breaks(out, &terms(&["src"], &[], &[]), &[("src", PathRule::SymlinkEscape)]);
}

#[test]
fn a_link_is_no_other_way_to_a_forbidden_name() {
    // Patterns for directories also match a link or file in the directory's place.
    for name in ["node_modules", "vendor", "a/terraform"] {
        breaks(new().add("pkgs/x.js").link(name, "pkgs"), &everything(), &[(name, PathRule::Forbidden)]);
    }
    let workflow = || new().link(".github", "gh");
    breaks(workflow().add("gh/workflows/x.yml"), &everything(), &[(".github", PathRule::ForbiddenAlias)]);
    breaks(workflow().keep("gh/workflows/x.yml"), &everything(), &[(".github", PathRule::ForbiddenAlias)]);
    breaks(workflow().add("gh/notes.md"), &everything(), &[]);
    let own = terms(&["**"], &["live/prod"], &[]);
    breaks(
        new().link("live", "s").add("s/prod/x").add("s/test/x"),
        &own,
        &[("live", PathRule::ForbiddenAlias)],
    );
    // Also by a link that was there before, and through another one.
    let mut before = new().add("s/prod/x").add("s/test/x");
    before.0.links.insert(path("live"), b"t".to_vec());
    before.0.links.insert(path("t"), b"./s".to_vec());
    breaks(before, &own, &[("s/prod/x", PathRule::ForbiddenAlias)]);
    let mut root = new().add("prod/x");
    root.0.links.insert(path("a/live"), b"..".to_vec());
    breaks(root, &terms(&["**"], &["a/live/prod"], &[]), &[("prod/x", PathRule::ForbiddenAlias)]);
}

#[test]
fn more_names_than_can_be_judged_are_forbidden() {
    let mut tree = (0..400).fold(new(), |tree, n| tree.add(format!("d/{n}")));
    tree = (0..400).fold(tree, |tree, n| tree.link(&format!("l{n}"), "d"));
    let violations = PathRules::compile(&everything()).unwrap().judge(&tree.0);
    assert_eq!(violations.len(), 1, "{violations:#?}");
    assert_eq!(violations[0].rule, PathRule::ForbiddenAlias);
}

#[test]
fn case_twins_of_files_and_directories() {
    breaks(new().add("readme").keep("README"), &everything(), &[("readme", PathRule::CaseTwin)]);
    breaks(new().add("Src/b").keep("src/a"), &everything(), &[("Src/b", PathRule::CaseTwin)]);
    breaks(new().add("ÄRGER").keep("ärger"), &everything(), &[("ÄRGER", PathRule::CaseTwin)]);
    breaks(new().edit("readme").keep("README"), &everything(), &[]);
    breaks(new().delete("readme").add("README"), &everything(), &[]);
}

#[test]
fn new_names_are_printable_and_old_ones_are_judged_by_bytes() {
    let terms = terms(&["src/**"], &[], &[]);
    breaks(new().add("src/a\nb"), &terms, &[("\"src/a\\nb\"", PathRule::UnprintableName)]);
    breaks(new().add(b"src/\xff"), &terms, &[("\"src/\\377\"", PathRule::UnprintableName)]);
    breaks(new().edit(b"src/\xff").delete("src/a\nb"), &terms, &[]);
    breaks(new().edit(b"lib/\xff"), &terms, &[("\"lib/\\377\"", PathRule::NotAllowed)]);
    breaks(new().edit(b"src/\xff\n/.ENV"), &terms, &[("\"src/\\377\\n/.ENV\"", PathRule::Forbidden)]);
}

#[test]
fn new_names_have_no_characters_that_deceive_and_old_ones_may() {
    for name in ["a\u{202e}b", "a\u{200b}", "\u{feff}a", "a\u{e0041}", "a\u{2028}b", "a\u{a0}b", "a\u{fe0f}"]
    {
        let at = format!("src/{name}");
        breaks(new().add(&at), &everything(), &[(&at, PathRule::UnprintableName)]);
        breaks(new().delete("src/a").add(&at), &everything(), &[(&at, PathRule::UnprintableName)]);
        breaks(new().edit(&at), &everything(), &[]);
        breaks(new().delete(&at).add("src/a"), &everything(), &[]);
    }
    breaks(new().add("src/日本語 ß.txt"), &everything(), &[]);
}

#[test]
fn paths_that_cannot_be_handled() {
    let at = |bytes: usize| {
        let mut text = format!("src/{}", vec!["a".repeat(100); 12].join("/"));
        text.truncate(bytes);
        text
    };
    breaks(new().add(at(1024)), &everything(), &[]);
    breaks(new().add(at(1025)), &everything(), &[(&at(1025), PathRule::UnsupportedPath)]);
    breaks(new().edit(at(1025)), &everything(), &[]);
    let name = format!("src/{}", "a".repeat(256));
    breaks(new().add(&name), &everything(), &[(&name, PathRule::UnsupportedPath)]);
    let mut tree = new();
    tree.0.too_deep.push(path("src/deep"));
    tree.0.refused_by_git.push(path(".gitmodules"));
    breaks(
        tree,
        &everything(),
        &[(".gitmodules", PathRule::UnsupportedPath), ("src/deep", PathRule::UnsupportedPath)],
    );
}

#[test]
fn a_repository_that_a_change_makes_or_completes() {
    let made = || new().add("docs/HEAD").add("docs/objects/x").add("docs/refs/x").add("docs/config");
    breaks(made(), &everything(), &[("docs/HEAD", PathRule::BareRepository)]);
    let completed = new().keep("docs/HEAD").keep("docs/objects/x").add("docs/refs/x");
    breaks(completed, &everything(), &[("docs/refs/x", PathRule::BareRepository)]);
    let mut by_submodule = new().keep("docs/objects/x").add("docs/head");
    by_submodule.0.submodules.push(path("docs/refs"));
    breaks(by_submodule, &everything(), &[("docs/head", PathRule::BareRepository)]);
    let linked = new().link("docs/HEAD", "refs/heads/main").link("docs/objects", "x").link("docs/refs", "x");
    breaks(linked, &everything(), &[("docs/HEAD", PathRule::BareRepository)]);
    let untouched = new().keep("docs/HEAD").keep("docs/objects/x").keep("docs/refs/x");
    breaks(untouched.add("src/a"), &everything(), &[]);

    let file = Some(Mode::File);
    let emptied = new().keep("docs/HEAD").keep("docs/objects/x").change("docs/refs/x", file, None);
    breaks(emptied.add("docs/config"), &everything(), &[("docs/refs/x", PathRule::BareRepository)]);

    let rules = PathRules::compile(&everything()).unwrap();
    let seen: Vec<_> =
        rules.judge_changes(&made().0.changes).iter().map(|v| (v.path.to_string(), v.rule)).collect();
    assert_eq!(seen, [("docs/HEAD".to_owned(), PathRule::BareRepository)]);
}

#[test]
fn a_new_name_by_which_ntfs_opens_a_file_of_git_is_forbidden() {
    for name in ["gitmod~1", "GITATT~1", "src/gitign~2", "MAILMA~1", "gi7d29~1"] {
        breaks(new().add(name), &everything(), &[(name, PathRule::Forbidden)]);
        breaks(new().edit(name), &everything(), &[]);
    }
    breaks(new().add("notes~1").add("gitmod~1/a"), &everything(), &[]);
}

#[test]
fn new_names_that_differ_only_in_unicode_normalization_are_twins() {
    let [nfc, nfd] = ["src/caf\u{e9}", "src/cafe\u{301}"];
    breaks(new().add(nfc).add(nfd), &everything(), &[(nfd, PathRule::CaseTwin), (nfc, PathRule::CaseTwin)]);
    breaks(new().keep(nfc).add(nfd), &everything(), &[(nfd, PathRule::CaseTwin)]);
}

#[test]
fn special_files_and_nested_repositories() {
    let mut tree = new();
    tree.0.unreadable.push(path("src/foreign"));
    tree.0.special_files.push(path("src/pipe"));
    tree.0.nested_repositories.push(path("src/.git"));
    breaks(
        tree,
        &everything(),
        &[
            ("src/.git", PathRule::NestedRepository),
            ("src/foreign", PathRule::SpecialFile),
            ("src/pipe", PathRule::SpecialFile),
        ],
    );
}

#[test]
fn submodules_are_left_alone() {
    let moved = new().change("lib", Some(Mode::Submodule), Some(Mode::Submodule));
    breaks(moved, &everything(), &[("lib", PathRule::Submodule)]);
    let new_one = new().change("lib", None, Some(Mode::Submodule));
    breaks(new_one, &terms(&["lib/"], &[], &[]), &[("lib", PathRule::Submodule)]);
    let mut inside = new().add("lib/a").add("library");
    inside.0.submodules.push(path("lib"));
    breaks(inside, &everything(), &[("lib/a", PathRule::Submodule)]);
}

#[test]
fn files_have_a_size_and_it_is_known() {
    let mut tree = new().add("a").add("b").add("c");
    tree.0.sizes.insert(path("a"), MAX_FILE_BYTES);
    tree.0.sizes.insert(path("b"), MAX_FILE_BYTES + 1);
    tree.0.sizes.remove(&path("c"));
    breaks(tree, &everything(), &[("b", PathRule::TooLarge), ("c", PathRule::TooLarge)]);
}

#[test]
fn ignored_files_count_only_if_forbidden() {
    let mut tree = new();
    tree.0.ignored = vec![path("target/x"), path(".env"), path("a\nb")];
    breaks(tree, &terms(&["src/**"], &[], &[]), &[(".env", PathRule::Forbidden)]);
}

#[test]
fn a_pattern_that_cannot_be_used_is_named() {
    let error = PathRules::compile(&terms(&["src/**", "a[+-9]b"], &[], &[])).unwrap_err();
    assert!(error.to_string().starts_with("`a[+-9]b` cannot be used"), "{error}");
}

#[test]
fn a_large_tree_with_few_changes() {
    let mut tree = new().add("Dir7/new").edit("dir9/file3").add("dir8/new");
    for file in 0..20_000 {
        tree.0.paths.push(path(format!("dir{}/deeper/and/deeper/file{file}", file % 100)));
    }
    breaks(tree, &everything(), &[("Dir7/new", PathRule::CaseTwin)]);
}

#[test]
fn paths_that_would_take_too_long_to_judge_are_not_allowed() {
    let deep = |at: usize| format!("{at}/{}x", "a/".repeat(1_900));
    // One deep path is judged like any other.
    breaks(Tree::default().edit(deep(0)), &everything(), &[]);
    let many = (0..100).fold(Tree::default().edit("a/b"), |tree, at| tree.edit(deep(at)));
    let broken = many.broken(&everything());
    assert_eq!(broken.len(), 100);
    assert!(broken.iter().all(|(path, rule)| path != "a/b" && *rule == PathRule::NotAllowed));
}

#[test]
fn patterns_with_too_many_wildcards_are_refused() {
    let pattern = "*a".repeat(10);
    let patterns = |count: usize| vec![pattern.as_str(); count];
    assert!(PathRules::compile(&terms(&patterns(100), &[], &[])).is_ok());
    for (allowed, forbidden, lifted) in [(101, 0, 0), (50, 51, 0), (50, 0, 51)] {
        let terms = terms(&patterns(allowed), &patterns(forbidden), &patterns(lifted));
        let error = PathRules::compile(&terms).unwrap_err();
        assert!(error.why.contains("wildcards"), "{error}");
    }
}
