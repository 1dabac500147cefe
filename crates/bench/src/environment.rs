//! A run with a large environment against the same run with an empty one, and a copy of it against `cp -a`, in turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use herma_core::{RunId, Timestamp};
use herma_destination::{Destination as _, Sandbox, Tool};
use herma_environments::layers::{CopyKind, copy_tree};
use herma_home::{remove_tree, spread_out};

use crate::error::BenchError;
use crate::harness::{Subject, median, side_by_side};
use crate::output::BenchRow;

/// The environments' files. Directories have so many each.
const FILES: u64 = 50_000;
const QUICK_FILES: u64 = 2_000;
const FILES_OF_DIRECTORY: u64 = 100;

/// How many times as long a run may take where overlays or reflinks work, and a copy where they do not.
const RUN_LIMIT: f64 = 1.5;
const COPY_LIMIT: f64 = 1.2;

const MAKE: &str = "git init -q repo && cd repo && mkdir src && for n in $(seq 100); do echo file > src/f$n.txt; done && \
                    echo node_modules > .gitignore && echo 'grep -q changed src/f1.txt' > test.sh && git add -A && \
                    git -c user.name=bench -c user.email=bench@herma.invalid commit -q -m base";

const SCRIPT: &str = "steps: [{ append: { path: src/f1.txt, text: \"changed\\n\" } }]\n";

/// A repository, and contracts with both environments.
struct Bench<'a> {
    dir: PathBuf,
    subject: &'a Subject,
}

/// Measures each at least `repeat` times.
pub(crate) fn measure(
    subject: &Subject,
    repeat: u32,
    quick: bool,
    progress: &dyn Fn(&str),
) -> Result<Vec<BenchRow>, BenchError> {
    let files = if quick { QUICK_FILES } else { FILES };
    progress(&format!("an environment of {files} files"));
    let bench = Bench::prepare(subject, files)?;
    let (governed_ms, bare_ms) =
        side_by_side(repeat, || bench.governed("large.md"), || bench.governed("empty.md"))?;
    progress("a copy of it");
    let layer = bench.layer()?;
    let (copy_ms, cp_ms, kind) = bench.copies(&layer.join("checkout"), repeat)?;
    let shared = kind == CopyKind::Reflinked || bench.mounts_overlays(&layer)?;
    let row = |name: &str, governed_ms: f64, bare_ms: f64, limit: f64| BenchRow {
        name: name.to_owned(),
        files,
        governed_ms,
        bare_ms,
        ratio: governed_ms / bare_ms,
        limit,
        peak_kib: None,
    };
    let limit = if shared { RUN_LIMIT } else { f64::INFINITY };
    Ok(vec![
        row("run, to an empty environment", governed_ms, bare_ms, limit),
        row("copy, to `cp -a`", copy_ms, cp_ms, COPY_LIMIT),
    ])
}

impl<'a> Bench<'a> {
    fn prepare(subject: &'a Subject, files: u64) -> Result<Self, BenchError> {
        let failed = || BenchError::io("cannot make a repository");
        let dir = subject.scratch.join("environment");
        fs::create_dir(&dir).map_err(failed())?;
        spread_out(&dir);
        let directories = files / FILES_OF_DIRECTORY;
        // Files of 4 KiB.
        let make = format!(
            "for d in $(seq {directories}); do mkdir -p node_modules/p$d && head -c {} /dev/zero | \
             split -a 3 -b 4096 - node_modules/p$d/f; done",
            FILES_OF_DIRECTORY * 4096
        );
        for (name, setup) in [("large.md", make.as_str()), ("empty.md", "true")] {
            fs::write(dir.join(name), contract(setup)).map_err(failed())?;
        }
        fs::write(dir.join("script.yaml"), SCRIPT).map_err(failed())?;
        let bench = Self { dir, subject };
        let sh = Tool::find("sh", &subject.search_path)?;
        let call = sh.call().arg("-c").arg(MAKE).cwd(&bench.dir).env("PATH", &subject.search_path);
        call.env("HOME", "/nonexistent").checked()?;
        Ok(bench)
    }

    /// A whole run through the binary. The first one builds the environment.
    fn governed(&self, contract: &str) -> Result<(), BenchError> {
        self.subject.herma(&self.dir, &["run", contract, "--script", "script.yaml", "--json"]).map(drop)
    }

    /// The layer with the files.
    fn layer(&self) -> Result<PathBuf, BenchError> {
        let failed = || BenchError::io("cannot read the layers");
        let layers = fs::read_dir(self.subject.home.join("environments")).map_err(failed())?;
        let mut layers = layers.flatten().map(|entry| entry.path());
        let found = layers.find(|layer| layer.join("checkout/node_modules").is_dir());
        found.ok_or_else(|| failed()(std::io::Error::from(std::io::ErrorKind::NotFound)))
    }

    /// Copies the files in turns with `cp -a`. Only the copies are timed, and not their removal.
    fn copies(&self, from: &Path, repeat: u32) -> Result<(f64, f64, CopyKind), BenchError> {
        let failed = || BenchError::io("cannot copy the environment");
        let cp = Tool::find("cp", &self.subject.search_path)?;
        let to = self.dir.join("copy");
        let (mut ours, mut theirs, mut kind) = (Vec::new(), Vec::new(), CopyKind::Copied);
        for round in 0..=repeat {
            let started = Instant::now();
            fs::create_dir(&to).map_err(failed())?;
            kind = copy_tree(from, &to).map_err(failed())?;
            let own = started.elapsed();
            remove_tree(&to).map_err(failed())?;
            let started = Instant::now();
            cp.call().arg("-a").arg(from).arg(&to).checked()?;
            let by_cp: Duration = started.elapsed();
            remove_tree(&to).map_err(failed())?;
            // The first round warms the caches.
            if round > 0 {
                ours.push(own);
                theirs.push(by_cp);
            }
        }
        Ok((median(ours), median(theirs), kind))
    }

    fn mounts_overlays(&self, layer: &Path) -> Result<bool, BenchError> {
        let scratch = self.dir.join("trial");
        let failed = || BenchError::io("cannot try an overlay");
        fs::create_dir(&scratch).map_err(failed())?;
        let sandbox = Sandbox::find(self.subject.herma.clone(), &self.subject.search_path);
        let run = RunId::new(Timestamp::UNIX_EPOCH, [0; 10]);
        let works = sandbox.can_overlay(run, layer, &scratch).map_err(failed())?;
        remove_tree(&scratch).map_err(failed())?;
        Ok(works)
    }
}

fn contract(setup: &str) -> String {
    format!(
        "---\nid: bench\ntitle: change one file\ntarget: {{ repo: ./repo }}\nstage: 3\nallowed_paths: [src/f1.txt]\n\
         verify: [\"sh test.sh\"]\nenvironment:\n  setup:\n    - |\n      {setup}\n---\nChange src/f1.txt.\n"
    )
}
