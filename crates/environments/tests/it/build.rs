//! Builds in the real sandbox: what commands see, what is captured, and how failures are reported.

use std::fs;
use std::path::Path;

use herma_core::environment::Registry;
use herma_environments::build::{BuildError, CommandFailure, FailureReason};
use herma_environments::layers::TreeError;
use herma_environments::registries::{ClientConfiguration, RegistryAccess};
use herma_environments::tools::HostEnvironment;

use crate::kit::{Bench, Repository, definition, obey_permissions, read};

const FILES: &[(&str, &str)] =
    &[("package.json", "{}"), ("src/index.js", "source"), (".gitignore", "node_modules/\n*.log\n")];

fn failure(error: BuildError) -> CommandFailure {
    match error {
        BuildError::Command(failure) => *failure,
        other => panic!("{other}"),
    }
}

fn npm() -> RegistryAccess {
    let host = HostEnvironment { home: "/nonexistent".into(), ..HostEnvironment::default() };
    let clients = ClientConfiguration { host: &host, etc: "/nonexistent".into(), own_network: [].into() };
    RegistryAccess::find(Registry::Npm, &clients).unwrap()
}

#[test]
fn fetch_sees_the_inputs_alone_and_setup_sees_the_base_and_what_was_fetched() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let definition = definition(
        "registries: [npm]
fetch:
  - test -f package.json && test ! -e src && test ! -e .gitignore
  - mkdir node_modules && echo fetched > node_modules/a && echo cached > $HOME/cache
setup:
  - test -f src/index.js && test \"$(cat node_modules/a)\" = fetched && test \"$(cat ~/cache)\" = cached
  - echo set-up > node_modules/b && echo more > $HOME/more && echo gone > untracked.txt
env: { GREETING: hello }
",
    );
    let built = bench.build(&repository, &definition, &[], &[npm()]).unwrap();
    let (fetch, setup) = (&built.fetch, built.setup.as_ref().unwrap());
    assert_eq!(read(&fetch.checkout().join("node_modules/a")), "fetched\n");
    assert!(!fetch.checkout().join("package.json").exists());
    assert_eq!(read(&setup.checkout().join("node_modules/a")), "fetched\n");
    assert_eq!(read(&setup.checkout().join("node_modules/b")), "set-up\n");
    assert_eq!(read(&setup.home().join("cache")), "cached\n");
    assert_eq!(read(&setup.home().join("more")), "more\n");
    assert!(!fetch.home().join("more").exists(), "setup changes nothing in the fetch layer");
    assert!(fetch.is_intact().unwrap() && setup.is_intact().unwrap());
    let left_out: Vec<String> = setup.record().left_out.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, ["untracked.txt"]);
    let inputs: Vec<String> = setup.record().inputs.iter().map(|input| input.path.to_string()).collect();
    assert_eq!(inputs, ["package.json"]);
    assert_eq!(setup.record().base_tree.as_deref(), Some(repository.tree.as_str()));
    assert!(read(&setup.log()).contains("$ test -f src/index.js"));
}

#[test]
fn an_environment_is_built_once_and_setup_is_shared_only_if_it_saw_no_source() {
    let (bench, one) = (Bench::new(), Repository::new(FILES));
    let other_source = Repository::new(&[FILES[0], ("src/index.js", "other source"), FILES[2]]);
    let other_input = Repository::new(&[("package.json", "{ }"), FILES[1], FILES[2]]);
    let on_base = definition("registries: [npm]\nfetch: ['true']\nsetup: ['cp src/index.js $HOME/seen']\n");
    let built = bench.build(&one, &on_base, &[], &[npm()]).unwrap();
    assert_eq!(bench.commands(), 2);
    bench.build(&one, &on_base, &[], &[npm()]).unwrap();
    assert_eq!(bench.commands(), 2, "a second build of the same runs nothing");
    let other = bench.build(&other_source, &on_base, &[], &[npm()]).unwrap();
    assert_eq!(bench.commands(), 3, "equal inputs share the fetch layer alone");
    assert_eq!(other.fetch.record().key, built.fetch.record().key);
    assert_eq!(read(&other.top().home().join("seen")), "other source");
    bench.build(&other_input, &on_base, &[], &[npm()]).unwrap();
    assert_eq!(bench.commands(), 5, "other inputs are another environment");

    let on_inputs =
        definition("registries: [npm]\nfetch: ['true']\nsetup: ['test ! -e src']\nsetup_on: inputs\n");
    let built = bench.build(&one, &on_inputs, &[], &[npm()]).unwrap();
    let shared = bench.build(&other_source, &on_inputs, &[], &[npm()]).unwrap();
    assert_eq!(built.top().record().key, shared.top().record().key);
    assert_eq!(bench.commands(), 7);
}

#[test]
fn cache_names_files_that_git_does_not_ignore() {
    let (bench, repository) = (Bench::new(), Repository::new(&[("Makefile", "all:\n")]));
    let definition = definition("setup: ['mkdir -p build/x out && touch build/x/a out/b']\ncache: [build]\n");
    let built = bench.build(&repository, &definition, &[], &[]).unwrap();
    assert!(built.top().checkout().join("build/x/a").exists());
    assert!(!built.top().checkout().join("out").exists());
}

#[test]
fn changed_tracked_files_are_an_error_that_names_them() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let on_base = definition("setup: ['echo >> src/index.js']\n");
    let error = bench.build(&repository, &on_base, &[], &[]).unwrap_err();
    assert!(
        matches!(&error, BuildError::TrackedFilesChanged(files) if files[0].to_string() == "src/index.js")
    );
    assert!(error.to_string().contains("src/index.js"));
    let in_fetch = definition("registries: [npm]\nfetch: ['rm package.json']\n");
    let error = bench.build(&repository, &in_fetch, &[], &[npm()]).unwrap_err();
    assert!(matches!(error, BuildError::TrackedFilesChanged(_)));
    assert!(
        bench.store.list().unwrap().iter().all(|layer| layer.record.definition != in_fetch.digest().unwrap())
    );
}

#[test]
fn a_failure_names_the_command_its_last_lines_and_the_denied_hosts() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let token = format!("gh{}{}", "p_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY12aB");
    let text = format!(
        "registries: [npm]\nfetch: ['python3 -c \"import urllib.request as r; \
         r.urlopen(\\\"https://not-listed.example/\\\")\"; echo first; echo {token}; exit 3']\n"
    );
    let failure = failure(bench.build(&repository, &definition(&text), &[], &[npm()]).unwrap_err());
    assert!(matches!(failure.reason, FailureReason::Exited(exit) if exit.code == Some(3)));
    assert_eq!(failure.denied, ["not-listed.example:443 (not_listed)"]);
    assert!(failure.last_lines.iter().any(|line| line == "first"));
    assert!(failure.last_lines.iter().all(|line| !line.contains(&token)), "{:?}", failure.last_lines);
    assert!(failure.to_string().contains("add the registry to `registries`"), "{failure}");
    assert!(bench.store.list().unwrap().is_empty());
}

#[test]
fn a_secret_is_found_although_another_stream_writes_in_between() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let (start, end) = (format!("gh{}", "p_aB3dE5fG7hJ9kL2m"), "N4pQ6rS8tU1vW0xY12aB");
    let definition = definition(&format!(
        "setup: ['printf {start}; sleep 0.3; echo other >&2; sleep 0.3; echo {end}; exit 1']\n"
    ));
    let failure = failure(bench.build(&repository, &definition, &[], &[]).unwrap_err());
    // The first line is the command, whose parts are no secret.
    let said = &failure.last_lines[1..];
    assert!(said.iter().any(|line| line == "other"), "{said:?}");
    assert!(said.iter().all(|line| !line.contains(&start) && !line.contains(end)), "{said:?}");
}

#[test]
fn setup_has_no_network_and_no_command_sees_a_credential_or_writes_outside() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let outside = bench.dir.path().join("outside");
    let definition = definition(&format!(
        "setup:
  - '! python3 -c \"import socket; socket.create_connection((\\\"203.0.113.1\\\", 443), 2)\"'
  - '! touch {outside}'
  - 'test -z \"$(env | grep -i proxy)\"'
  - 'test ! -e /root/.npmrc && test ! -e /home/agent/.netrc && test \"$HOME\" = /home/agent'
",
        outside = outside.display()
    ));
    bench.build(&repository, &definition, &[], &[]).unwrap();
    assert!(!outside.exists());
}

#[test]
fn a_command_that_hangs_forks_a_daemon_or_fills_the_disk_leaves_no_layer() {
    let mut bench = Bench::new();
    let repository = Repository::new(FILES);
    bench.timeout = std::time::Duration::from_secs(4);
    let hangs =
        failure(bench.build(&repository, &definition("setup: ['sleep 600']\n"), &[], &[]).unwrap_err());
    assert_eq!(hangs.reason, FailureReason::TimedOut);
    bench.timeout = std::time::Duration::from_mins(2);
    let daemon = definition(
        "setup: ['(while :; do echo x > $HOME/alive; sleep 0.1; done) >/dev/null 2>&1 & exit 0']\n",
    );
    let built = bench.build(&repository, &daemon, &[], &[]).unwrap();
    assert!(built.top().is_intact().unwrap());
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(built.top().is_intact().unwrap(), "no process of the build is alive");
    bench.limits.disk = herma_core::units::Bytes(8 << 20);
    let fills =
        definition("setup: ['while :; do head -c 4000000 /dev/zero >> $HOME/full; sleep 0.2; done']\n");
    let failure = failure(bench.build(&repository, &fills, &[], &[]).unwrap_err());
    assert!(matches!(failure.reason, FailureReason::Exceeded(_)), "{failure}");
    let built: usize =
        bench.store.list().unwrap().iter().filter(|layer| layer.record.fetch_key.is_some()).count();
    assert_eq!(built, 1, "only the daemon's layer is there");
}

#[test]
fn links_that_commands_leave_lead_nowhere_on_the_host() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    // The config of npm is written into the home after the fetch: through no link.
    let definition = definition(&format!(
        "registries: [npm]\nfetch: ['rm -f ~/.npmrc; ln -s {}/file ~/.npmrc; mkdir node_modules; ln -s {} node_modules/out']\n",
        outside.path().display(),
        outside.path().display()
    ));
    let built = bench.build(&repository, &definition, &[], &[npm()]).unwrap();
    assert_eq!(read(&outside.path().join("file")), "outside");
    let (home, checkout) = (bench.dir.path().join("home"), bench.dir.path().join("checkout"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&checkout).unwrap();
    built.top().write_view(&home, &checkout).unwrap();
    assert!(is_link(&checkout.join("node_modules/out")));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

#[test]
fn hard_links_and_holes_count_against_the_size_of_a_layer() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let definition = definition(
        "setup:
  - truncate -s 10G $HOME/file
  - for n in 1 2 3 4 5 6 7 8 9; do ln $HOME/file $HOME/link$n; done
",
    );
    let error = bench.build(&repository, &definition, &[], &[]).unwrap_err();
    assert!(matches!(&error, BuildError::Tree(TreeError::TooManyBytes { .. })), "{error}");
    assert!(error.to_string().contains("`home/link"), "{error}");
}

#[test]
fn a_cancelled_build_leaves_no_layer() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let definition = definition("setup: ['true']\n");
    // Cancelled once the command runs, so that the walks over its files see it.
    let is_cancelled = || bench.commands() > 0;
    let error = bench.build_unless(&is_cancelled, &repository, &definition, &[], &[]).unwrap_err();
    assert!(matches!(error, BuildError::Cancelled), "{error}");
    assert!(bench.store.list().unwrap().iter().all(|layer| layer.record.fetch_key.is_none()));
}

#[test]
fn read_only_directories_of_the_checkout_and_the_home_are_captured() {
    let repository = Repository::new(FILES);
    let definition = definition(
        "setup:
  - mkdir -p node_modules/a && echo text > node_modules/a/file && chmod 500 node_modules/a node_modules
  - mkdir $HOME/closed && echo text > $HOME/closed/file && chmod 0 $HOME/closed
",
    );
    let bench = Bench::new();
    // The walks over the files of setup ask whether they are cancelled, once there is a directory for the ignore rules.
    let building = bench.dir.path().join("environments/building");
    let is_capturing = || {
        let dirs = fs::read_dir(&building).unwrap().map(|entry| entry.unwrap().path());
        bench.commands() > 0 && dirs.map(|dir| dir.join("scratch/ignore")).any(|dir| dir.exists())
    };
    let is_cancelled = || {
        if is_capturing() {
            obey_permissions();
        }
        false
    };
    let run = || bench.build_unless(&is_cancelled, &repository, &definition, &[], &[]).unwrap();
    let built = std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    assert_eq!(read(&built.top().checkout().join("node_modules/a/file")), "text\n");
    assert_eq!(read(&built.top().home().join("closed/file")), "text\n");
}

#[test]
fn other_ignore_rules_and_other_addresses_are_other_layers() {
    let (bench, one) = (Bench::new(), Repository::new(FILES));
    let definition = definition(
        "registries: [npm]\nfetch: ['mkdir -p build node_modules && touch build/a node_modules/a']\n",
    );
    let key = |repository: &Repository, registry: RegistryAccess| {
        bench.build(repository, &definition, &[], &[registry]).unwrap().fetch.record().key
    };
    let first = key(&one, npm());
    let source = Repository::new(&[FILES[0], ("src/index.js", "other source"), FILES[2]]);
    assert_eq!(key(&source, npm()), first, "other source is the same layer");
    let ignore = Repository::new(&[FILES[0], FILES[1], (".gitignore", "build/\n")]);
    let other = key(&ignore, npm());
    assert_ne!(other, first, "other ignore rules are another layer");
    let below = Repository::new(&[FILES[0], FILES[1], FILES[2], ("sub/.gitignore", "x\n")]);
    assert_ne!(key(&below, npm()), first, "ignore rules in a directory too");
    let mirror = |path: &str| {
        let url = format!("https://npm.example/{path}/");
        let variables = std::iter::once(("npm_config_registry".to_owned(), url)).collect();
        let host = HostEnvironment { variables, ..HostEnvironment::default() };
        let clients = ClientConfiguration { host: &host, etc: "/nonexistent".into(), own_network: [].into() };
        RegistryAccess::find(Registry::Npm, &clients).unwrap()
    };
    let one_path = key(&one, mirror("one"));
    assert_ne!(one_path, first, "another host is another layer");
    assert_ne!(key(&one, mirror("two")), one_path, "another path on one host is another layer");
}

#[test]
fn a_shared_layer_does_not_depend_on_what_a_base_tracks() {
    let bench = Bench::new();
    let definition =
        definition("registries: [npm]\nfetch: ['mkdir node_modules && echo fetched > node_modules/a']\n");
    // The first base tracks the file that the fetch makes; the second does not.
    let tracks = Repository::new(&[FILES[0], FILES[2], ("node_modules/a", "tracked")]);
    let first = bench.build(&tracks, &definition, &[], &[npm()]).unwrap();
    let second = bench.build(&Repository::new(FILES), &definition, &[], &[npm()]).unwrap();
    assert_eq!(first.fetch.record().key, second.fetch.record().key);
    assert_eq!(read(&second.fetch.checkout().join("node_modules/a")), "fetched\n");
    let (home, checkout) = (bench.dir.path().join("home"), bench.dir.path().join("checkout"));
    for dir in [&home, &checkout] {
        fs::create_dir(dir).unwrap();
    }
    herma_git::lay_out(&tracks.git_dir, &tracks.entries, &[&checkout]).unwrap();
    first.top().write_view(&home, &checkout).unwrap();
    assert_eq!(read(&checkout.join("node_modules/a")), "tracked", "the file of the base wins");
}

#[test]
fn a_failure_shows_no_character_that_controls_a_terminal() {
    let (bench, repository) = (Bench::new(), Repository::new(FILES));
    let definition =
        definition("setup: [\"printf '\\\\033]0;title\\\\007\\\\342\\\\200\\\\256evil'; exit 1\"]\n");
    let failure = failure(bench.build(&repository, &definition, &[], &[]).unwrap_err());
    let text = failure.to_string();
    assert!(text.contains("title") && text.contains("\\u{202e}evil"), "{text}");
    for text in failure.last_lines.iter().chain([&text]) {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    }
}
