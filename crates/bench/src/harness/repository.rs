//! A governed run against the bare equivalent: clone, apply, test, diff by hand.

use std::fs;
use std::path::{Path, PathBuf};

use herma_destination::Tool;
use herma_home::spread_out;

use super::{Subject, side_by_side};
use crate::error::BenchError;
use crate::output::BenchRow;

/// The same work by hand, in a directory of this name.
const BY_HAND: &str = "git clone -q repo \"$1\" && cd \"$1\" && git apply ../fix.patch && sh test.sh && git diff > ../hand.diff";

/// Makes the repository, as others have them: committed, packed, and older than its index by more than a second, so that
/// git need not read every file to know that it has not changed.
const MAKE: &str = "git init -q repo && cd repo && git add -A && git -c user.name=bench -c user.email=bench@herma.invalid \
                    commit -q -m base && git repack -q -a -d && echo changed >> src/d0/f0.txt && git diff > ../fix.patch \
                    && git checkout -q src/d0/f0.txt && sleep 1.1 && git status > /dev/null";

const CONTRACT: &str = "---\nid: bench\ntitle: change one file\ntarget: { repo: ./repo }\nstage: 3\n\
                        allowed_paths: [src/d0/f0.txt]\nverify: [\"sh test.sh\"]\n---\nChange src/d0/f0.txt.\n";

const SCRIPT: &str = "steps: [{ append: { path: src/d0/f0.txt, text: \"changed\\n\" } }]\n";

/// A small suite, as shell scripts have them: two dozen cases, then a few processes for each directory. It takes a few
/// tens of milliseconds on ten files and grows with the repository, as suites do; most take far longer.
const TEST: &str = r#"grep -q changed src/d0/f0.txt || exit 1
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
    [ "$(echo "Case  $n" | tr -s ' ' '-')" = "Case-$n" ] || exit 1
done
for d in src/*; do
    grep -q file "$d"/* || exit 1
    [ "$(cat "$d"/* | wc -l)" -gt 0 ] || exit 1
done
"#;

/// A repository and the two ways to work on it.
struct Bench<'a> {
    dir: PathBuf,
    sh: Tool,
    subject: &'a Subject,
}

/// Measures a repository with that many files.
pub(super) fn measure(
    subject: &Subject,
    files: u64,
    limit: f64,
    repeat: u32,
) -> Result<BenchRow, BenchError> {
    let bench = Bench::prepare(subject, files)?;
    let mut round = 0;
    let (governed_ms, bare_ms) = side_by_side(
        repeat,
        || bench.governed(),
        || {
            round += 1;
            bench.shell(BY_HAND, &[&format!("hand-{round}")])
        },
    )?;
    fs::remove_dir_all(&bench.dir).map_err(BenchError::io("cannot remove a repository"))?;
    let ratio = governed_ms / bare_ms;
    Ok(BenchRow {
        name: "governed run".to_owned(),
        files,
        governed_ms,
        bare_ms,
        ratio,
        limit,
        peak_kib: None,
    })
}

impl<'a> Bench<'a> {
    fn prepare(subject: &'a Subject, files: u64) -> Result<Self, BenchError> {
        let failed = || BenchError::io("cannot make a repository");
        let dir = subject.scratch.join(format!("repository-{files}"));
        fs::create_dir(&dir).map_err(failed())?;
        // Clones are placed like runs: what earlier rounds removed must slow down neither.
        spread_out(&dir);
        write_files(&dir.join("repo"), files).map_err(failed())?;
        fs::write(dir.join("contract.md"), CONTRACT).map_err(failed())?;
        fs::write(dir.join("script.yaml"), SCRIPT).map_err(failed())?;
        let sh = Tool::find("sh", &subject.search_path)?;
        let bench = Self { dir, sh, subject };
        bench.shell(MAKE, &[])?;
        Ok(bench)
    }

    fn shell(&self, command: &str, args: &[&str]) -> Result<(), BenchError> {
        let call = self.sh.call().arg("-c").arg(command).arg("sh").args(args.iter().copied());
        let call = call.cwd(&self.dir).env("PATH", &self.subject.search_path).env("HOME", "/nonexistent");
        Ok(call.checked().map(drop)?)
    }

    /// A whole run through the binary, as a person starts it.
    fn governed(&self) -> Result<(), BenchError> {
        let args = ["run", "contract.md", "--script", "script.yaml", "--json"];
        self.subject.herma(&self.dir, &args).map(drop)
    }
}

/// Files of about 4 KiB, ten to a directory.
fn write_files(repo: &Path, files: u64) -> std::io::Result<()> {
    fs::create_dir_all(repo)?;
    fs::write(repo.join("test.sh"), TEST)?;
    for n in 0..files.saturating_sub(1) {
        let dir = repo.join(format!("src/d{}", n / 10));
        if n % 10 == 0 {
            fs::create_dir_all(&dir)?;
        }
        let lines = format!("file {n}: a line of text that fills it a little more\n").repeat(80);
        fs::write(dir.join(format!("f{}.txt", n % 10)), lines)?;
    }
    Ok(())
}
