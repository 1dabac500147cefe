//! A stand-in for the herma binary in this crate's tests: it has the hidden subcommands, and one that starts a job
//! and waits to be killed.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output, as the hidden subcommands do")]

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use herma_core::RunId;
use herma_destination::{
    Destination, Docker, DockerOptions, Host, Job, JobPaths, Overlay, Prepared, Sandbox, forward, keeper,
    launcher, overlay, probe,
};

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let own = args.next().unwrap_or_default();
    let word = args.next().unwrap_or_default();
    if word != launcher::SUBCOMMAND {
        return perform(&word, args);
    }
    match launcher::run(&own, args) {
        Ok(command) => perform(&command[0], command[1..].iter().cloned()),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(launcher::NOT_STARTED)
        }
    }
}

fn perform(word: &OsString, args: impl Iterator<Item = OsString>) -> ExitCode {
    if word == forward::SUBCOMMAND {
        return forward::run(args);
    }
    if word == keeper::SUBCOMMAND {
        return keeper::run();
    }
    if word == overlay::SUBCOMMAND {
        eprintln!("{}", overlay::run(args));
        return ExitCode::from(launcher::NOT_STARTED);
    }
    let done = if word == probe::SUBCOMMAND { answer(args) } else { start(word, args) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(mut args: impl Iterator<Item = OsString>) -> Result<(), Box<dyn Error>> {
    let plan = args.next().ok_or("no plan")?;
    if plan == probe::WAIT {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    let plan = serde_json::from_slice(&std::fs::read(plan)?)?;
    probe::run_inside(&plan, |result| {
        println!("{}", serde_json::to_string(result)?);
        Ok(())
    })?;
    Ok(())
}

/// `host|sandbox|waiting|overlay|docker=IMAGE,SOCKET,FILES[,RUNTIME] RUN WORKSPACE COMMAND...`; `waiting` only prepares the
/// job.
fn start(kind: &OsString, mut args: impl Iterator<Item = OsString>) -> Result<(), Box<dyn Error>> {
    let herma = std::env::current_exe()?;
    let destination: Box<dyn Destination> = match kind.to_str() {
        Some("host") => Box::new(Host::new(herma)),
        Some("sandbox" | "waiting" | "overlay") => {
            Box::new(Sandbox::find(herma, "/usr/local/bin:/usr/bin:/bin".as_ref()))
        }
        Some(other) => Box::new(docker(herma, other)?),
        None => return Err("unknown word".into()),
    };
    let run_id = args.next().ok_or("no run")?.to_str().ok_or("no run")?.parse()?;
    let workspace: PathBuf = args.next().ok_or("no workspace")?.into();
    if kind == "overlay" {
        return start_with_overlay(destination.as_ref(), run_id, &workspace, args.collect());
    }
    let job = Job::new(run_id, args.collect(), JobPaths::new(workspace));
    if kind == "waiting" {
        let _prepared = Prepared::begin(destination.as_ref(), job)?;
        std::thread::sleep(Duration::from_mins(10));
        return Ok(());
    }
    let mut process = destination.start(&job)?;
    process.wait(Duration::from_mins(10))?;
    Ok(())
}

/// With the overlay `deps` in the directory `workspace` of this one.
fn start_with_overlay(
    destination: &dyn Destination,
    run_id: RunId,
    dir: &Path,
    argv: Vec<OsString>,
) -> Result<(), Box<dyn Error>> {
    let root = dir.join("workspace");
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| dir.join(name));
    let overlay = Overlay { lower, upper, work, root: root.clone(), place: "deps".into() };
    let job = Job::new(run_id, argv, JobPaths::new(root)).with_overlays(vec![overlay]);
    destination.start(&job)?.wait(Duration::from_mins(10))?;
    Ok(())
}

fn docker(herma: PathBuf, word: &str) -> Result<Docker, Box<dyn Error>> {
    let mut parts = word.strip_prefix("docker=").ok_or("unknown word")?.split(',');
    let mut next = || parts.next().ok_or("docker=IMAGE,SOCKET,FILES");
    let (image, socket, files) = (next()?.parse()?, next()?.to_owned(), next()?.into());
    let runtime = parts.next().map(str::to_owned);
    Ok(Docker::new(herma, DockerOptions { image: Some(image), socket: Some(socket), runtime, files }))
}
