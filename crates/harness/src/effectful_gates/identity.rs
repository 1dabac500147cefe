//! Asks the engine's program for its identity, inside the destination, and compares it with the admitted one.

use std::fs::DirBuilder;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use herma_core::CancellationToken;
use herma_core::blocker::Blocker;
use herma_core::gate::Finding;
use herma_destination::{Destination, Job, JobPaths, Prepared, Stdin, wait_unless};
use herma_engines::{Engine, Launch};

use crate::context::RunContext;
use crate::error::Stop;
use crate::gates::Ready;

/// The timeout of the identification.
const IDENTITY_TIMEOUT: Duration = Duration::from_secs(10);

/// How much it may print meanwhile.
const OUTPUT_CAP: usize = 64 << 10;

/// A program to identify. Its confinement is prepared, and none of it runs.
pub(super) struct Question<'a> {
    engine: &'a dyn Engine,
    prepared: Result<Prepared<'a>, String>,
    /// Its directories. Those of the run are made only after the decision.
    root: PathBuf,
}

/// Prepares the identification of the engine; none for an engine that is part of herma itself.
pub(super) fn prepare<'a>(
    ctx: &RunContext<'a>,
    ready: &'a Ready,
    shape: &Job,
) -> Result<Option<Question<'a>>, Stop> {
    let engine = ctx.engine()?;
    if engine.built_in() {
        return Ok(None);
    }
    Question::prepare(engine, ready.destination.as_ref(), shape, ctx.dirs.root().join("identity")).map(Some)
}

/// The gate: the program reports the admitted identity.
pub(super) fn identity(ctx: &RunContext<'_>, ready: &Ready, question: Option<Question<'_>>) -> Finding {
    let Some(question) = question else {
        return Finding::NotApplicable(format!("`{}` is part of herma itself", ctx.plan.engine));
    };
    let root = question.root.clone();
    let said = question.ask(IDENTITY_TIMEOUT, &ctx.submission.cancellation);
    ctx.remove_aside(root);
    compare(said, ready.identity.as_deref())
}

fn compare(said: Result<String, String>, admitted: Option<&str>) -> Finding {
    let mismatch = |why: String| Finding::Missing(Blocker::EngineIdentityMismatch.because(why));
    match (said, admitted) {
        (Ok(said), Some(admitted)) if said == admitted => Finding::Passed,
        (Ok(said), Some(admitted)) => {
            mismatch(format!("the program says it is `{said}`, admitted is `{admitted}`"))
        }
        (Ok(said), None) => mismatch(format!("the program says it is `{said}`, and no identity is admitted")),
        (Err(why), _) => mismatch(format!("the program does not say who it is: {why}")),
    }
}

impl<'a> Question<'a> {
    fn prepare(
        engine: &'a dyn Engine,
        destination: &'a dyn Destination,
        shape: &Job,
        root: PathBuf,
    ) -> Result<Self, Stop> {
        let (workspace, engine_dir) = (root.join("workspace"), root.join("engine"));
        for dir in [&root, &workspace, &engine_dir] {
            DirBuilder::new().mode(0o700).create(dir)?;
        }
        // No model is asked who an engine is.
        let paths = JobPaths::new(workspace).with_engine_dir(engine_dir);
        let launch = engine.identify(&destination.view(&paths));
        let prepared = launch.ok_or_else(|| "there is no way to ask it".to_owned()).and_then(|launch| {
            let Launch { argv, env, .. } = launch;
            let job = Job { argv, env, paths, stdin: Stdin::Null, needs_herma: false, ..shape.clone() };
            Prepared::begin(destination, job).map_err(|why| without_path(engine, &why.to_string()))
        });
        Ok(Self { engine, prepared, root })
    }

    /// The identity that the program reports, or why it is unknown.
    fn ask(self, timeout: Duration, cancellation: &CancellationToken) -> Result<String, String> {
        let Self { engine, prepared, .. } = self;
        let mut process = prepared?.start().map_err(|why| without_path(engine, &why.to_string()))?;
        let (stdout, stderr) = (listen(process.take_stdout()), listen(process.take_stderr()));
        let ended = wait_unless(process.as_mut(), timeout, || cancellation.is_cancelled());
        // Its remaining processes die with it; only then do its streams end.
        process.kill_all().map_err(|why| format!("it could not be ended: {why}"))?;
        drop(stderr.join());
        let output = stdout.join().map_err(|_| "its answer could not be read".to_owned())?;
        // The size comes first: herma does not read beyond the cap, so the end of such a program is a race.
        if output.as_ref().is_ok_and(|bytes| bytes.len() > OUTPUT_CAP) {
            return Err(format!("it prints more than {OUTPUT_CAP} bytes"));
        }
        match ended.map_err(|why| why.to_string())? {
            None => return Err(format!("no answer within {} seconds", timeout.as_secs())),
            Some(exit) if !exit.success() => {
                return Err(match exit.code {
                    Some(code) => format!("it ended with exit code {code}"),
                    None => "it was killed".to_owned(),
                });
            }
            Some(_) => {}
        }
        let output = output.map_err(|why| why.to_string())?;
        engine.identity(&output).ok_or_else(|| "its answer has not the form of one".to_owned())
    }
}

/// The message as evidence may show it: without the path of the program on this machine.
fn without_path(engine: &dyn Engine, said: &str) -> String {
    let path = engine.program().map(|program| program.display().to_string());
    path.map_or_else(|| said.to_owned(), |path| said.replace(&path, "the program"))
}

/// Reads a stream to its end, or to one byte more than is allowed.
fn listen(stream: Option<Box<dyn Read + Send>>) -> JoinHandle<io::Result<Vec<u8>>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            stream.take(OUTPUT_CAP as u64 + 1).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use herma_destination::Sandbox;
    use herma_engines::stub::{NAME, Stub};

    use super::*;

    /// herma's own program, which a build of the workspace puts beside the tests: the sandbox starts every job through it.
    fn herma() -> PathBuf {
        let test = std::env::current_exe().unwrap();
        let herma = test.ancestors().nth(2).unwrap().join("herma");
        assert!(herma.exists(), "{} is not there: run `cargo build -p herma` first", herma.display());
        herma
    }

    /// The identity that herma reads from a program with this body in the sandbox.
    fn asked(body: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let engine = Stub::new(NAME.parse().unwrap(), Some(program));
        let sandbox = Sandbox::find(herma(), "/usr/bin:/bin".as_ref());
        let run_id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let shape = Job::new(run_id, Vec::new(), JobPaths::new(dir.path().to_owned()))
            .with_mounts(engine.mounts(engine.program().unwrap()));
        let root = dir.path().join("identity");
        let question = Question::prepare(&engine, &sandbox, &shape, root).unwrap();
        let said = question.ask(Duration::from_secs(2), &CancellationToken::default());
        if let Err(why) = &said {
            assert!(!why.contains(dir.path().to_str().unwrap()), "{why}");
        }
        said
    }

    const ANSWER: &str = r#"echo '{"engine":"stub","version":"0.1.0"}'"#;

    #[test]
    fn a_program_is_asked_inside_in_empty_rooms_and_cannot_change_itself() {
        let look = r#"test "$1" = --identity && test -z "$(ls /workspace /engine | grep -v :)" || exit 3
                      ! echo >> "$0" || exit 4
                      touch /workspace/x /engine/x || exit 5"#;
        assert_eq!(asked(&format!("{look}\n{ANSWER}")), Ok("stub 0.1.0".to_owned()));
    }

    #[test]
    fn a_missing_identity_is_reported_within_the_timeout() {
        let no = |body: &str| asked(body).unwrap_err();
        assert_eq!(no("echo stub 0.1.0"), "its answer has not the form of one");
        assert_eq!(no(&format!("{ANSWER}; exit 3")), "it ended with exit code 3");
        assert_eq!(no(&format!("{ANSWER}; sleep 60")), "no answer within 2 seconds");
        // Spaces around JSON mean nothing, so only the cap refuses this one.
        let long = format!("head -c 70000 /dev/zero | tr '\\0' ' '; {ANSWER}");
        let too_long = "it prints more than 65536 bytes";
        assert_eq!(no(&long), too_long);
        // Whether it dies of the closed pipe, ignores it or never ends: the error is its size.
        assert_eq!(no("yes"), too_long);
        assert_eq!(no("trap '' PIPE; yes 2>/dev/null; exit 3"), too_long);
        assert_eq!(no("yes | head -c 70000; sleep 60"), too_long);
    }

    #[test]
    fn leftover_processes_and_stderr_do_not_matter() {
        let beside = "yes noise | head -c 300000 >&2 2>/dev/null; sleep 60 & setsid sleep 60 &";
        assert_eq!(asked(&format!("{beside}\n{ANSWER}")), Ok("stub 0.1.0".to_owned()));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_no_answer() {
        assert!(asked("exec /no/such/program").is_err());
    }

    #[test]
    fn only_the_admitted_identity_passes() {
        let said = |text: &str| Ok(text.to_owned());
        assert_eq!(compare(said("stub 0.1.0"), Some("stub 0.1.0")), Finding::Passed);
        let why = |said, admitted| match compare(said, admitted) {
            Finding::Missing(record) => {
                assert_eq!(record.blocker, Blocker::EngineIdentityMismatch);
                record.detail
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(
            why(said("stub 0.2.0"), Some("stub 0.1.0")),
            "the program says it is `stub 0.2.0`, admitted is `stub 0.1.0`"
        );
        assert_eq!(
            why(said("stub 0.1.0"), None),
            "the program says it is `stub 0.1.0`, and no identity is admitted"
        );
        let silent = || Err("no answer within 10 seconds".to_owned());
        for admitted in [None, Some("stub 0.1.0")] {
            assert_eq!(
                why(silent(), admitted),
                "the program does not say who it is: no answer within 10 seconds"
            );
        }
    }
}
