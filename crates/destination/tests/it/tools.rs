//! herma's own helper programs and the toolchains.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use herma_core::contract::Toolchain;
use herma_destination::tool::{Tool, ToolError};
use herma_destination::toolchain;
use herma_destination::{Destination as _, Job};

use crate::support::{JobDirs, SYSTEM, sandbox, tell};

fn sh() -> Tool {
    Tool::find("sh", SYSTEM.as_ref()).unwrap()
}

#[test]
fn a_tool_gets_only_the_variables_that_are_given() {
    let output = Tool::find("env", SYSTEM.as_ref()).unwrap().call().env("A", "b").checked().unwrap();
    assert_eq!(output.stdout, b"A=b\n");
}

#[test]
fn a_tool_is_found_by_absolute_directories_only() {
    assert!(sh().path().is_absolute());
    for path in ["", "bin", ".:usr/bin", "/nonexistent"] {
        let error = Tool::find("sh", OsStr::new(path)).unwrap_err();
        assert!(matches!(error, ToolError::Missing(_)), "{path}: {error}");
    }
}

#[test]
fn a_failure_names_program_arguments_code_and_stderr() {
    let error = sh().call().args(["-c", "seq 20 >&2; exit 9", "secret"]).checked().unwrap_err().to_string();
    assert!(error.starts_with("`sh -c seq 20 >&2; exit 9` ended with exit status: 9: 13\n14"), "{error}");
    assert!(error.ends_with("20") && !error.contains("secret"), "{error}");
    let output = sh().call().args(["-c", "exit 9"]).output().unwrap();
    assert_eq!(output.status.code(), Some(9), "output judges nothing");
}

#[test]
fn much_input_and_output_at_once_do_not_block() {
    let input = vec![b'x'; 3_000_000];
    let output = sh()
        .call()
        .args(["-c", "tee /dev/stderr"])
        .env("PATH", SYSTEM)
        .stdin(input.clone())
        .checked()
        .unwrap();
    assert!(output.stdout == input && output.stderr == input);
    let output = sh().call().args(["-c", "exit 0"]).stdin(input).checked();
    assert!(output.is_ok(), "input that is not read is no failure");
}

#[test]
fn a_streaming_tool_answers_line_by_line() {
    let mut cat = Tool::find("cat", SYSTEM.as_ref()).unwrap().call().spawn().unwrap();
    let (stdin, stdout) = cat.streams();
    let (stdin, mut stdout) = (stdin.unwrap(), BufReader::new(stdout));
    for question in ["one\n", "two\n"] {
        stdin.write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, question);
    }
    cat.finish().unwrap();
    let failing =
        sh().call().args(["-c", "cat >/dev/null; echo no >&2; exit 4"]).env("PATH", SYSTEM).spawn().unwrap();
    assert!(failing.finish().unwrap_err().to_string().contains("exit status: 4: no"));
}

#[test]
fn the_systems_python_needs_no_mount() {
    let found = toolchain::find(Toolchain::Python, "".as_ref(), Path::new("/nonexistent")).unwrap();
    assert_eq!((found.mounts.len(), found.path.len()), (0, 0));
}

#[test]
fn a_toolchain_with_a_wrong_prefix_or_none_is_not_ready() {
    let ground = JobDirs::new();
    let home = ground.dir.path().join("home");
    let missing = toolchain::find(Toolchain::Rust, "/nonexistent".as_ref(), &home).unwrap_err();
    assert_eq!(missing.what, "rustc is not installed");
    let bin = ground.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for (says, said) in [
        ("relative".to_owned(), "is not there"),
        ("/nonexistent".to_owned(), "is not there"),
        (ground.dir.path().display().to_string(), "contains the user's home"),
    ] {
        std::fs::write(bin.join("rustc"), format!("#!/bin/sh\necho {says}\n")).unwrap();
        std::fs::set_permissions(bin.join("rustc"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let unready = toolchain::find(Toolchain::Rust, bin.as_os_str(), &home).unwrap_err();
        assert!(unready.what.contains(said), "{unready}");
    }
}

#[test]
fn rust_works_inside_once_it_is_mounted() {
    let ground = JobDirs::new();
    // cargo runs the tests, from the toolchain's own directory or through rustup.
    let cargo = Path::new(env!("CARGO"));
    let found =
        toolchain::find(Toolchain::Rust, cargo.parent().unwrap().as_os_str(), Path::new("/nonexistent"))
            .unwrap();
    let job = Job {
        mounts: found.mounts,
        search_path: found.path,
        ..ground.shell("rustc --version && cargo --version")
    };
    let told = tell(&sandbox(), &job);
    assert!(told.stdout.starts_with("rustc ") && told.stdout.contains("\ncargo "), "{told:?}");
    assert!(sandbox().readiness().is_ok());
}
