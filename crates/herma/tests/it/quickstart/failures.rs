//! Failures on the way: each message says what happened and what to do, and the same command continues.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::World;
use crate::kit::{Ended, on_path};

const AGAIN: &str = "run the same command again: it continues where it stopped";

/// The error and the next step as printed, without the paths and ports of this test.
fn said(world: &World, ended: &Ended) -> String {
    let home = world.herma.home().display().to_string();
    let root = world.herma.at("").display().to_string();
    let from = ended.stderr.find("error: ").unwrap_or_else(|| panic!("no error: {ended:#?}"));
    ended.stderr[from..]
        .trim_end()
        .replace(&home, "HOME")
        .replace(&*root, "")
        .replace(AGAIN, "AGAIN")
        .replace("then AGAIN", "AGAIN")
}

/// The same command with the code of its page, which must fail with this code.
fn fails(world: &World, code: i32, more: &[&str]) -> String {
    let page = world.page(more);
    let page_code = page["code"].as_str().unwrap_or("none");
    let ended = world.run(&[&["--yes", "--code", page_code], more].concat());
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    said(world, &ended)
}

/// The same command gets to the last question now. The proofs behind it take a minute; other tests have them.
fn gets_to_the_code(world: &World, more: &[&str]) {
    let ended = world.run(&[&["--yes", "--code", "wrong"], more].concat());
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(said(world, &ended).contains("that is not the code of what is shown"), "{ended:#?}");
}

#[test]
fn without_bubblewrap() {
    let mut world = World::new();
    let (path, tools) = (crate::kit::environment("PATH"), world.herma.at("tools"));
    fs::create_dir(&tools).unwrap();
    symlink(on_path("git"), tools.join("git")).unwrap();
    world.herma.set("PATH", &tools);
    let ended = world.run(&["--yes"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    // The whole picture comes first.
    assert!(ended.stdout.contains("missing  sandbox     bubblewrap is not installed"), "{ended:#?}");
    assert_eq!(
        said(&world, &ended),
        "error: bubblewrap is not installed\nnext: apt install bubblewrap (or dnf, pacman, zypper); AGAIN"
    );
    world.herma.set("PATH", path);
    gets_to_the_code(&world, &[]);
}

#[test]
fn with_a_wrong_key() {
    let mut world = World::new();
    world.herma.set("WRONG_KEY", "sk-wrong-0123456789abcdef0123456789abcdef");
    assert_eq!(
        fails(&world, 3, &["--key-env", "WRONG_KEY"]),
        "error: the provider refused the key (401)\n\
         next: correct the key in WRONG_KEY, or name another source: herma quickstart case --key-file FILE; AGAIN"
    );
    // A wrong key is written nowhere.
    assert!(!world.herma.home().join("router.toml").exists());
    assert_eq!(
        fails(&world, 3, &["!--key-env", "--no-key"]),
        "error: the provider refused the key (401)\n\
         next: start the server, or correct its address with --url; if it needs a key, add --key-file FILE; AGAIN"
    );
    gets_to_the_code(&world, &[]);
}

#[test]
fn without_the_provider() {
    let World { herma, provider, repository } = World::new();
    let other = World::new();
    let url = provider.stop();
    let world = World { herma, provider: other.provider, repository };
    assert_eq!(
        fails(&world, 3, &["--url", &url]),
        "error: the provider was not reached: it refused the connection\n\
         next: start the server, or correct its address with --url; AGAIN"
    );
    gets_to_the_code(&world, &[]);
}

#[test]
fn with_an_unknown_model() {
    let world = World::new();
    assert_eq!(
        fails(&world, 2, &["--model", "smal"]),
        "error: the key reaches no model `smal`\n\
         next: did you mean `small`? it reaches: m, small; AGAIN"
    );
    gets_to_the_code(&world, &["--model", "small"]);
}

#[test]
fn in_a_dirty_repository() {
    let world = World::new();
    let file = world.repository.dir.join("slugify.sh");
    let before = fs::read(&file).unwrap();
    fs::write(&file, "changed\n").unwrap();
    let text = fails(&world, 3, &[]);
    assert!(
        text.starts_with("error: ") && text.contains("slugify.sh") && text.ends_with("; AGAIN"),
        "{text}"
    );
    fs::write(&file, before).unwrap();
    // Everything but the repository is done.
    let output = world.set_up(&[]);
    let states: Vec<_> = super::states(&output).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["current", "current", "current", "current", "current", "done"]);
    world.change();
}

#[test]
fn with_a_wrong_passphrase() {
    let world = World::new();
    // The agent of an installation with an approver.
    world.herma.let_in("alice", None);
    fs::write(world.herma.at("wrong.txt"), "another passphrase\n").unwrap();
    let wrong = world.herma.at("wrong.txt");
    assert_eq!(
        fails(&world, 2, &["--passphrase-file", path(&wrong)]),
        "error: the passphrase does not open the key; nothing was done, try again\nnext: AGAIN"
    );
    for row in world.herma.json(&["admissions", "list", "--json"])["admissions"].as_array().unwrap() {
        assert_eq!(row["status"], "not_admitted", "{row:#}");
    }
    world.set_up(&[]);
}

#[test]
fn with_tests_that_cannot_run() {
    let world = World::new();
    let text = fails(&world, 3, &["--verify", "no-such-program --check"]);
    assert!(text.contains("no-such-program") && text.ends_with("; AGAIN"), "{text}");
    // A wrong value is not kept.
    assert!(!world.herma.home().join("defaults").exists());
    world.set_up(&[]);
}

#[test]
fn with_a_mistyped_engine_or_without_a_program() {
    let world = World::new();
    let ended = world.herma.run(&["quickstart", "cluade"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    let text = said(&world, &ended);
    assert!(
        text.contains("herma has no engine `cluade`") && text.contains("did you mean `claude`?"),
        "{text}"
    );
    let ended = world.herma.run(&["quickstart", "case"]);
    assert_eq!(
        said(&world, &ended),
        "error: `case` is installed from no registry\n\
         next: name its program: herma quickstart case --program PATH; AGAIN"
    );
    assert_eq!(ended.code, Some(2), "{ended:#?}");
}

#[test]
fn with_a_directory_for_a_program() {
    let world = World::new();
    let dir = world.herma.at("home/programs");
    let ended = world.run(&["--yes", "--program", path(&dir)]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert_eq!(
        said(&world, &ended),
        "error: HOME/programs is a directory, and a directory runs only where herma installed it\n\
         next: leave --program out to install the agent, or name its program file; AGAIN"
    );
    gets_to_the_code(&world, &[]);
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
