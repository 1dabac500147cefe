//! Fetches a package inside the sandbox: no network but the registry, no script of the package is run.

use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use herma_core::RunId;
use herma_core::engine::DestinationKind;
use herma_destination::{Exit, Job, JobPaths};
use herma_egress::Allowlist;
use herma_egress::proxy::{Handle, Listen, Options, Service};
use herma_engines::Source;
use herma_home::RunDirs;

use super::error::InstallError;
use super::fetcher::Fetcher;
use super::watch::Denials;
use crate::installation::Installation;

/// How long fetching may take.
const PATIENCE: Duration = Duration::from_mins(15);
/// How much of what it says is kept.
const MOST_SAID: usize = 256 << 10;
/// How many of its last lines are told.
const LAST_LINES: usize = 6;
/// The socket's name in the job's directory of the proxy.
const SOCKET: &str = "egress.sock";

/// Fetches a version of a package into the job's workspace.
pub(super) fn fetch(
    installation: &Installation,
    dirs: &RunDirs,
    job: RunId,
    fetcher: &dyn Fetcher,
    (package, version): (&Source<'_>, &str),
    own_network: bool,
) -> Result<(), InstallError> {
    let destination = installation
        .destination(DestinationKind::Sandbox, None)
        .map_err(|unready| InstallError::Start(unready.into()))?;
    for dir in [dirs.workspace(), dirs.engine(), dirs.egress()] {
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|e| InstallError::io("the directories of the job", e))?;
    }
    fetcher
        .lay_out(&dirs.workspace())
        .map_err(|e| InstallError::io("the interpreter that is put beside the package", e))?;
    let name = fetcher.name();
    let denials = Arc::new(Denials::default());
    let way = open_way(installation, fetcher, &dirs.egress(), own_network, &denials)?;
    let paths = JobPaths::new(dirs.workspace())
        .with_engine_dir(dirs.engine())
        .with_egress(dirs.egress().join(SOCKET));
    let view = destination.view(&paths);
    let job = Job::new(job, fetcher.argv(&view, package.wanted(version)), paths)
        .with_env(fetcher.env(&view))
        .with_search_path(fetcher.path().to_vec())
        .with_mounts(fetcher.mounts().to_vec());
    let mut process = destination.start(&job)?;
    let said = [process.take_stdout(), process.take_stderr()].map(listen);
    let ended = process.wait(PATIENCE);
    process.kill_all().map_err(|e| InstallError::io("what fetches could not be ended", e))?;
    drop(way);
    let said: Vec<String> = said.into_iter().filter_map(|heard| heard.join().ok()).collect();
    let not_fetched = |why: String| {
        Err(InstallError::NotFetched { package: package.name.to_owned(), origin: package.origin, why })
    };
    match ended.map_err(|e| InstallError::io("what fetches was lost from sight", e))? {
        Some(exit) if exit.success() => Ok(()),
        Some(exit) => not_fetched(why(name, exit, &said.concat(), &denials.told())),
        None => not_fetched(format!("{name} did not end within {} minutes", PATIENCE.as_secs() / 60)),
    }
}

/// A proxy that leads to the registry and nowhere else.
fn open_way(
    installation: &Installation,
    fetcher: &dyn Fetcher,
    dir: &Path,
    own_network: bool,
    denials: &Arc<Denials>,
) -> Result<Handle, InstallError> {
    let allowlist = Allowlist::parse(&fetcher.hosts()).map_err(|bad| InstallError::Way(bad.to_string()))?;
    let options = Options {
        own_network,
        ..Options::new(allowlist, Arc::clone(&installation.clock), Arc::<Denials>::clone(denials))
    };
    let handle = Service::start(options).map_err(|e| InstallError::Way(e.to_string()))?;
    // A home may lie deeper than the system takes the path of a socket.
    let opened = File::open(dir).map_err(|e| InstallError::io("the directories of the job", e))?;
    let socket = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(SOCKET);
    handle.listen(&Listen::Unix(socket)).map_err(|e| InstallError::Way(e.to_string()))?;
    Ok(handle)
}

/// Why it gave up: what it was denied, else its own last words.
fn why(name: &str, exit: Exit, said: &str, denied: &str) -> String {
    if !denied.is_empty() {
        return format!("{name} was denied {denied}");
    }
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("; ");
    match exit.code {
        Some(code) => format!("{name} ended with {code}: {last}"),
        None => format!("{name} was killed: {last}"),
    }
}

/// Hears a stream to its end, and keeps the last of it.
fn listen(stream: Option<Box<dyn Read + Send>>) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
        let Some(mut stream) = stream else { return String::new() };
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            kept.extend_from_slice(buffer.get(..n).unwrap_or_default());
            let over = kept.len().saturating_sub(MOST_SAID);
            kept.drain(..over);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}
