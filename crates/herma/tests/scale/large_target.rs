//! A target with many or large files: what a run on it costs in memory, and in time beside a clone.

#![allow(clippy::disallowed_types, reason = "git and herma are started from outside and watched")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A repository that `git fast-import` made: `files` small files, and `large` ones of so many MiB.
pub(crate) fn make(dir: &Path, files: usize, large: &[usize]) {
    fs::create_dir(dir).unwrap();
    git(dir, &["init", "-q", "-b", "main"]);
    let mut import = command(dir, &["-c", "core.bigFileThreshold=4m", "fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = std::io::BufWriter::new(import.stdin.take().unwrap());
    let head = "commit refs/heads/main\ncommitter owner <owner@herma.invalid> 1700000000 +0000\ndata 0\n";
    to.write_all(head.as_bytes()).unwrap();
    for file in 0..files {
        let line = format!("{:016x}\n", (file as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = line.repeat(20 + file % 60);
        let path = format!("d{:03}/s{}/f{file:06}.txt", file / 500, file / 50 % 10);
        write!(to, "M 100644 inline {path}\ndata {}\n{text}\n", text.len()).unwrap();
    }
    let block: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(0x9e37_79b9) >> 11).to_le_bytes()[0]).collect();
    for (at, mebibytes) in large.iter().enumerate() {
        write!(to, "M 100644 inline large{at}.bin\ndata {}\n", mebibytes << 20).unwrap();
        for _ in 0..*mebibytes {
            to.write_all(&block).unwrap();
        }
        to.write_all(b"\n").unwrap();
    }
    to.write_all(b"M 100644 inline fix.txt\ndata 4\nbug\n\n").unwrap();
    drop(to.into_inner().unwrap());
    assert!(import.wait().unwrap().success());
    git(dir, &["-c", "core.bigFileThreshold=4m", "checkout", "-q", "-f", "main"]);
}

/// A contract and a script for it, beside it.
pub(crate) fn contract(dir: &Path, target: &str) -> (PathBuf, PathBuf) {
    let (contract, script) = (dir.join("contract.md"), dir.join("script.yaml"));
    let text = format!(
        "---\nid: large\ntitle: large\ntarget: {{ repo: ./{target} }}\nstage: 3\nallowed_paths: [fix.txt]\n\
         verify: [\"grep -q fixed fix.txt\"]\n---\nFix it.\n"
    );
    fs::write(&contract, text).unwrap();
    fs::write(&script, "steps:\n  - write: { path: fix.txt, text: \"fixed\\n\" }\n").unwrap();
    (contract, script)
}

/// A run that was watched from outside.
pub(crate) struct Watched {
    /// Both streams.
    pub(crate) said: String,
    /// The largest sum of the resident memory of herma and of every git that it started.
    pub(crate) peak_bytes: u64,
    #[allow(dead_code, reason = "only the long form compares")]
    /// From the first probe to the start of the engine: base, workspace and verification checkout are made.
    pub(crate) preparation: Duration,
}

/// Runs herma to a pass, and adds up memory meanwhile.
pub(crate) fn watch(mut herma: Command) -> Watched {
    let output = tempfile::NamedTempFile::new().unwrap();
    let stdout = output.reopen().unwrap();
    let child = herma.stderr(stdout.try_clone().unwrap()).stdout(stdout).spawn();
    let (mut child, mut peak) = (child.unwrap(), 0);
    let (mut probing, mut prepared) = (None, None);
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        peak = peak.max(resident(child.id()));
        let said = fs::read_to_string(output.path()).unwrap_or_default();
        probing = probing.or_else(|| said.contains("probing the confinement").then(Instant::now));
        prepared = prepared.or_else(|| said.contains("the engine works").then(Instant::now));
        std::thread::sleep(Duration::from_millis(30));
    };
    let said = fs::read_to_string(output.path()).unwrap();
    assert!(ended.success(), "{said}");
    let preparation = prepared.unwrap().duration_since(probing.unwrap());
    Watched { said, peak_bytes: peak, preparation }
}

/// How long `git clone` takes, without hard links.
#[allow(dead_code, reason = "only the long form compares")]
pub(crate) fn clone(from: &Path, to: &Path) -> Duration {
    let began = Instant::now();
    let (from, to_text) = (from.to_str().unwrap(), to.to_str().unwrap());
    git(Path::new("/"), &["clone", "-q", "--no-hardlinks", from, to_text]);
    let took = began.elapsed();
    fs::remove_dir_all(to).unwrap();
    took
}

/// The resident memory of a herma and of every git below it.
fn resident(root: u32) -> u64 {
    let mut parents: BTreeMap<u32, (u32, String, u64)> = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let parent = field("PPid:").and_then(|parent| parent.parse().ok()).unwrap_or(0);
        let kib =
            field("VmRSS:").and_then(|kib| kib.trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0);
        parents.insert(pid, (parent, field("Name:").unwrap_or_default().to_owned(), kib << 10));
    }
    let is_below = |pid: u32| {
        let above = |pid: &u32| parents.get(pid).map(|(parent, ..)| *parent);
        std::iter::successors(Some(pid), above).take(32).any(|above| above == root)
    };
    let of_herma = |(pid, (_, name, _)): &(&u32, &(u32, String, u64))| {
        (**pid == root || name == "git") && is_below(**pid)
    };
    parents.iter().filter(of_herma).map(|(_, (_, _, bytes))| bytes).sum()
}

fn git(dir: &Path, args: &[&str]) {
    assert!(command(dir, args).status().unwrap().success(), "git {args:?}");
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").args(args);
    git
}
