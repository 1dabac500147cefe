//! Real projects, obtained from the registries: detection, build and the project's own tests in the sandbox.
//! `scripts/long projects` runs them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]
#![allow(dead_code, reason = "the kit is shared with the other tests")]

#[path = "it/kit.rs"]
mod kit;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use herma_core::RepoPath;
use herma_core::environment::Registry;
use herma_core::report::Mode;
use herma_destination::{Destination as _, Job, JobPaths, Tool};
use herma_environments::detect::{Proposal, RepositoryFiles, detect};
use herma_environments::prepare::PreparedEnvironment;
use herma_environments::registries::ClientConfiguration;
use herma_environments::tools::HostEnvironment;
use herma_git::{Git, GitDir, NewFile, ObjectFormat, lay_out};

use crate::kit::{Bench, PATH, Repository, run_id};

enum Source {
    /// A source distribution, by its requirement.
    Pypi(&'static str),
    /// A published crate: name and version.
    Crate(&'static str, &'static str),
    /// A Go module: path and version.
    GoModule(&'static str, &'static str),
    /// A Debian source package.
    Debian(&'static str),
}

#[allow(clippy::disallowed_methods, reason = "the machine's own tools and registries are what is tried")]
fn host() -> HostEnvironment {
    let variables: BTreeMap<String, String> = std::env::vars().collect();
    let home = PathBuf::from(variables.get("HOME").cloned().unwrap_or_default());
    let search_path = OsString::from(variables.get("PATH").cloned().unwrap_or_default());
    HostEnvironment { search_path, home, variables, ..HostEnvironment::default() }
}

/// Runs a program of the host in a directory.
fn run(host: &HostEnvironment, dir: &Path, program: &str, args: &[&str]) {
    let tool = Tool::find(program, &host.search_path).unwrap();
    let call = tool.call().cwd(dir).args(args.iter().copied()).envs(host.variables.iter());
    call.checked().unwrap_or_else(|e| panic!("{program} {args:?}: {e}"));
}

/// Downloads a project and unpacks it below `dir`; returns its root.
fn obtain(source: &Source, host: &HostEnvironment, dir: &Path) -> PathBuf {
    let tree = dir.join("tree");
    fs::create_dir(&tree).unwrap();
    let unpack =
        |archive: &str| run(host, dir, "tar", &["-xf", archive, "-C", "tree", "--strip-components=1"]);
    match source {
        Source::Pypi(requirement) => {
            run(
                host,
                dir,
                "python3",
                &["-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", requirement],
            );
            unpack(&archive_in(dir, ".tar.gz"));
        }
        Source::Crate(name, version) => {
            let manifest = format!(
                "[package]\nname = \"user\"\nedition = \"2024\"\n\n[dependencies]\n{name} = \"={version}\"\n"
            );
            fs::write(dir.join("Cargo.toml"), manifest).unwrap();
            fs::create_dir(dir.join("src")).unwrap();
            fs::write(dir.join("src/lib.rs"), "").unwrap();
            run(host, dir, "cargo", &["vendor", "-q", "--versioned-dirs", "vendor"]);
            let root = dir.join(format!("vendor/{name}-{version}"));
            // Files that cargo adds.
            for name in ["Cargo.toml.orig", ".cargo_vcs_info.json", ".cargo-checksum.json", ".cargo-ok"] {
                let _ = fs::remove_file(root.join(name));
            }
            return root;
        }
        Source::GoModule(path, version) => {
            let modules = dir.join("modules");
            let mut host = host.clone();
            host.variables.insert("GOMODCACHE".to_owned(), modules.to_str().unwrap().to_owned());
            // Files of the module cache are read-only otherwise, which keeps the directory from being removed.
            host.variables.insert("GOFLAGS".to_owned(), "-modcacherw".to_owned());
            run(&host, dir, "go", &["mod", "download", &format!("{path}@{version}")]);
            return modules.join(format!("{path}@{version}"));
        }
        Source::Debian(name) => {
            let sources = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap();
            for part in ["parts", "lists/partial", "cache/archives/partial"] {
                fs::create_dir_all(dir.join(part)).unwrap();
            }
            let sources = sources.replace("Types: deb\n", "Types: deb-src\n");
            fs::write(dir.join("parts/debian.sources"), sources).unwrap();
            let at = |key: &str, part: &str| format!("{key}={}", dir.join(part).display());
            let places = [
                at("Dir::Etc::SourceParts", "parts"),
                at("Dir::State::Lists", "lists"),
                at("Dir::Cache", "cache"),
            ];
            let [parts, lists, cache] = &places;
            let options =
                ["-o", "Dir::Etc::SourceList=/dev/null", "-o", parts, "-o", lists, "-o", cache, "-qq"];
            run(host, dir, "apt-get", &[&options[..], &["update"]].concat());
            run(
                host,
                dir,
                "apt-get",
                &[&options[..], &["source", "--download-only", "--tar-only", name]].concat(),
            );
            unpack(&archive_in(dir, ".orig.tar."));
        }
    }
    tree
}

fn archive_in(dir: &Path, part: &str) -> String {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(part)).min_by_key(String::len).expect("an archive")
}

/// The project as the base of a run.
fn import(root: &Path, dir: &Path) -> Repository {
    let mut pending = vec![root.to_owned()];
    let mut found: Vec<(RepoPath, Mode, Vec<u8>)> = Vec::new();
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                pending.push(path);
                continue;
            }
            let below = RepoPath::new(path.strip_prefix(root).unwrap().as_os_str().as_bytes()).unwrap();
            if kind.is_symlink() {
                found.push((
                    below,
                    Mode::Symlink,
                    fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
                ));
            } else {
                let is_program = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
                let mode = if is_program { Mode::Executable } else { Mode::File };
                found.push((below, mode, fs::read(&path).unwrap()));
            }
        }
    }
    let files: Vec<NewFile<'_>> =
        found.iter().map(|(path, mode, content)| NewFile { path, mode: *mode, content }).collect();
    let git = Git::find(PATH.as_ref()).unwrap();
    let git_dir = GitDir::create(&git, &dir.join("git"), ObjectFormat::Sha1, None).unwrap();
    let tree = git_dir.import(&files).unwrap().tree;
    let entries = git_dir.entries(&tree).unwrap();
    Repository { _dir: tempfile::tempdir().unwrap(), git_dir, tree, entries }
}

/// Detects, builds, and runs the proposed tests on a fresh checkout; returns their output.
#[allow(clippy::disallowed_macros, reason = "a person reads the times")]
fn prove(source: &Source) -> (Proposal, String) {
    let host = host();
    let dir = tempfile::tempdir().unwrap();
    let root = obtain(source, &host, dir.path());
    let proposal = detect(&RepositoryFiles::list(&root).unwrap());
    let repository = import(&root, dir.path());
    let clients =
        ClientConfiguration { host: &host, etc: "/etc".into(), own_network: BTreeSet::from(Registry::ALL) };
    let prepared = PreparedEnvironment::find(proposal.definition.clone(), &clients, &[]).unwrap();
    let plan = prepared.plan();
    let mut bench = Bench::new();
    bench.timeout = Duration::from_mins(20);
    let began = Instant::now();
    let built =
        bench.build(&repository, plan.definition, plan.tools, plan.registries).unwrap_or_else(|error| {
            panic!("{proposal:#?}\n{error}\n{error:#?}");
        });
    let built_in = began.elapsed();
    let (checkout, home) = (dir.path().join("checkout"), dir.path().join("home"));
    for each in [&checkout, &home] {
        fs::create_dir(each).unwrap();
    }
    lay_out(&repository.git_dir, &repository.entries, &[&checkout]).unwrap();
    built.top().write_view(&home, &checkout).unwrap();
    let settings = plan.job_settings();
    let began = Instant::now();
    let mut output = String::new();
    for command in &proposal.verify {
        let argv = vec!["sh".into(), "-c".into(), format!("exec 2>&1; {command}").into()];
        let paths = JobPaths::new(checkout.clone()).with_home(home.clone());
        let job = Job::new(run_id(), argv, paths)
            .with_env(settings.env.clone())
            .with_search_path(settings.search_path.clone())
            .with_mounts(settings.mounts.clone());
        let mut process = bench.sandbox.start(&job).unwrap();
        let mut stdout = process.take_stdout().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut stdout, &mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let exit = process.wait(Duration::from_mins(20)).unwrap();
        process.kill_all().unwrap();
        output.push_str(&reader.join().unwrap());
        assert!(exit.is_some_and(|exit| exit.success()), "{command}: {exit:?}\n{output}\n{proposal:#?}");
    }
    let last: Vec<&str> = output.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    eprintln!(
        "built in {built_in:.1?}, {} files; tests in {:.1?}: {last:?}; egress {:?}",
        built.top().record().tree.files,
        began.elapsed(),
        built.fetch.record().egress,
    );
    (proposal, output)
}

macro_rules! projects {
    ($($name:ident: $source:expr, $said:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let (proposal, output) = prove(&$source);
                assert!(output.contains($said), "{output}");
                assert!(!proposal.allowed_paths.is_empty() && !proposal.reasons.is_empty(), "{proposal:#?}");
            }
        )*
    };
}

projects! {
    itsdangerous: Source::Pypi("itsdangerous==2.2.0"), " passed";
    click: Source::Pypi("click==8.1.7"), " passed";
    markupsafe: Source::Pypi("markupsafe==2.1.5"), " passed";
    packaging: Source::Pypi("packaging==24.1"), " passed";
    memchr: Source::Crate("memchr", "2.8.3"), "test result: ok";
    semver: Source::Crate("semver", "1.0.23"), "test result: ok";
    cobra: Source::GoModule("github.com/spf13/cobra", "v1.8.1"), "ok  \tgithub.com/spf13/cobra";
    gorilla_mux: Source::Debian("golang-github-gorilla-mux"), "ok  \tgithub.com/gorilla/mux";
    accepts: Source::Debian("node-accepts"), " passing";
    bytes: Source::Debian("node-bytes"), " passing";
    cjson: Source::Debian("cjson"), "100% tests passed";
    jansson: Source::Debian("jansson"), "100% tests passed";
}
