//! Every way to start the command that is measured.

use std::fs;
use std::thread;
use std::time::Duration;

use herma_core::CancellationToken;
use herma_destination::probe::{ProbeSite, probe};
use herma_destination::tool::ToolInvocation;
use herma_destination::{Destination, Job, Sandbox, Tool};

use super::site::{COMMAND, Site};
use crate::error::BenchError;

/// bubblewrap with the namespaces and mounts that any sandbox needs, and nothing of herma's.
pub(super) const BARE: &str = "bare bwrap";
/// A job without a way out.
pub(super) const SANDBOX: &str = "herma sandbox";
/// A job with a way out, as an engine's is.
const WAY_OUT: &str = "herma sandbox, with its way out";
/// The same, with everything that comes before an engine's first process.
pub(super) const ALL_PROBES: &str = "herma sandbox, all probes";
/// `@anthropic-ai/sandbox-runtime`.
pub(super) const SANDBOX_RUNTIME: &str = "sandbox-runtime";
/// `docker run`.
pub(super) const DOCKER: &str = "docker run";

const BARE_WORDS: &str = "--unshare-all --unshare-user --disable-userns --die-with-parent --new-session --clearenv \
                          --cap-drop ALL --uid 1000 --gid 1000 --hostname herma --ro-bind /usr /usr \
                          --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev \
                          --proc /proc --tmpfs /tmp --tmpfs /home/agent";

/// Settings of sandbox-runtime: no network, and a writable workspace.
const SETTINGS: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] } }"#;

/// A command that does nothing is over long before.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the command once and waits for its end.
pub(super) type Start<'a> = Box<dyn Fn() -> Result<(), BenchError> + 'a>;

/// Every way, or why it cannot be measured.
pub(super) fn all<'a>(site: &'a Site<'a>) -> Vec<(&'static str, Result<Start<'a>, String>)> {
    vec![
        (BARE, bare(site)),
        (SANDBOX, Ok(in_the_sandbox(site, Site::job))),
        (WAY_OUT, Ok(in_the_sandbox(site, Site::job_with_a_way_out))),
        (ALL_PROBES, Ok(Box::new(|| after_all_probes(site)))),
        (SANDBOX_RUNTIME, sandbox_runtime(site)),
        (DOCKER, docker(site)),
    ]
}

fn find(name: &str, site: &Site<'_>) -> Result<Tool, String> {
    Tool::find(name, &site.order.search_path).map_err(|_| format!("`{name}` is not in PATH"))
}

fn ran(call: ToolInvocation<'_>) -> Result<(), BenchError> {
    Ok(call.checked().map(drop)?)
}

fn bare<'a>(site: &'a Site<'a>) -> Result<Start<'a>, String> {
    let bwrap = find("bwrap", site)?;
    Ok(Box::new(move || {
        let call = bwrap.call().args(BARE_WORDS.split_whitespace()).arg("--bind").arg(&site.workspace);
        ran(call.args(["/workspace", "--chdir", "/workspace", "--", COMMAND]))
    }))
}

fn in_the_sandbox<'a>(site: &'a Site<'a>, job: fn(&Site<'a>) -> Result<Job, BenchError>) -> Start<'a> {
    let sandbox = site.sandbox();
    Box::new(move || run(&sandbox, &job(site)?))
}

fn run(sandbox: &Sandbox, job: &Job) -> Result<(), BenchError> {
    let failed = || BenchError::io("cannot wait for the sandbox");
    let mut process = sandbox.start(job)?;
    let exit = process.wait(PATIENCE).map_err(failed())?;
    process.kill_all().map_err(failed())?;
    match exit {
        Some(exit) if exit.success() => Ok(()),
        exit => Err(BenchError::Sandbox(format!("`{COMMAND}` ended with {exit:?}"))),
    }
}

/// As a run does it: the sandbox is asked whether it is ready, every probe is tried in directories of its own, and then the
/// command is started.
fn after_all_probes(site: &Site<'_>) -> Result<(), BenchError> {
    let sandbox = site.sandbox();
    let readiness = sandbox.readiness()?;
    let job = site.job_with_a_way_out()?;
    let scratch = site.order.scratch.join("probes");
    let failed = |error: std::io::Error| BenchError::Sandbox(format!("the scratch directory: {error}"));
    fs::create_dir(&scratch).map_err(failed)?;
    let site = ProbeSite {
        scratch: &scratch,
        herma_home: &site.order.scratch,
        user_home: &site.home,
        cancellation: &CancellationToken::default(),
    };
    let found = probe(&sandbox, &readiness, &job, site)?;
    let broken: Vec<&str> = found.broken().iter().map(|probe| probe.name.as_str()).collect();
    if !broken.is_empty() {
        return Err(BenchError::Sandbox(format!("not denied: {}", broken.join(", "))));
    }
    // A run does this aside.
    let removed = thread::spawn(move || fs::remove_dir_all(scratch));
    run(&sandbox, &job)?;
    removed.join().map_err(|_| BenchError::Sandbox("a thread panicked".to_owned()))?.map_err(failed)
}

fn sandbox_runtime<'a>(site: &'a Site<'a>) -> Result<Start<'a>, String> {
    let srt = find("srt", site)?;
    let settings = site.home.join("srt-settings.json");
    fs::write(&settings, SETTINGS).map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let call = srt.call().env("PATH", &site.order.search_path).env("HOME", &site.home);
        ran(call.cwd(&site.workspace).arg("--settings").arg(&settings).arg(COMMAND))
    }))
}

fn docker<'a>(site: &'a Site<'a>) -> Result<Start<'a>, String> {
    let docker = find("docker", site)?;
    let images = to_docker(&docker, site).args(["images", "--quiet", "--no-trunc"]).checked();
    let images = images.map_err(|error| error.to_string())?.stdout;
    let image = String::from_utf8_lossy(&images).lines().next().map(str::to_owned);
    let image = image.ok_or("its daemon holds no image: pull a small one")?;
    Ok(Box::new(move || {
        let call = to_docker(&docker, site).args(["run", "--rm", "--pull", "never", "--network", "none"]);
        ran(call.args(["--entrypoint", COMMAND, &image]))
    }))
}

fn to_docker<'a>(docker: &'a Tool, site: &Site<'_>) -> ToolInvocation<'a> {
    let call = docker.call().env("PATH", &site.order.search_path).env("HOME", &site.home);
    match &site.order.docker_host {
        Some(host) => call.env("DOCKER_HOST", host),
        None => call,
    }
}
