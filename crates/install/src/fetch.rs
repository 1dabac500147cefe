//! Fetches a package inside the sandbox: no network but the registry, no script of the package is run.

use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use herma_core::{CancellationToken, Clock, RunId};
use herma_destination::{Destination, Exit, Job, JobPaths, wait_unless};
use herma_egress::Allowlist;
use herma_egress::proxy::{Handle, Listen, Options, Service};
use herma_engines::Source;
use herma_home::RunDirs;

use crate::denials::Denials;
use crate::error::InstallError;
use crate::fetcher::Fetcher;

/// How long fetching may take.
const FETCH_TIMEOUT: Duration = Duration::from_mins(15);
/// How much of its output is kept.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// How many of its last lines are reported.
const LAST_LINES: usize = 6;
/// The socket's name in the job's directory of the proxy.
const SOCKET: &str = "egress.sock";

/// Where a package is fetched.
pub(crate) struct FetchSite<'a> {
    pub(crate) sandbox: &'a dyn Destination,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) cancellation: &'a CancellationToken,
}

/// Fetches a version of a package into the job's workspace.
pub(crate) fn fetch(
    site: &FetchSite<'_>,
    dirs: &RunDirs,
    job: RunId,
    fetcher: &dyn Fetcher,
    (package, version): (&Source<'_>, &str),
    own_network: bool,
) -> Result<(), InstallError> {
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
    let FetchSite { sandbox, clock, cancellation } = *site;
    let denials = Arc::new(Denials::default());
    let proxy = start_proxy(clock, fetcher, &dirs.egress(), own_network, &denials)?;
    let paths = JobPaths::new(dirs.workspace())
        .with_engine_dir(dirs.engine())
        .with_egress(dirs.egress().join(SOCKET));
    let view = sandbox.view(&paths);
    let job = Job::new(job, fetcher.argv(&view, package.wanted(version)), paths)
        .with_env(fetcher.env(&view))
        .with_search_path(fetcher.path().to_vec())
        .with_mounts(fetcher.mounts().to_vec());
    let mut process = sandbox.start(&job)?;
    let said = [process.take_stdout(), process.take_stderr()].map(read_tail);
    let ended = wait_unless(process.as_mut(), FETCH_TIMEOUT, || cancellation.is_cancelled());
    process.kill_all().map_err(|e| InstallError::io("what fetches could not be ended", e))?;
    drop(proxy);
    let said: Vec<String> = said.into_iter().filter_map(|heard| heard.join().ok()).collect();
    let not_fetched = |why: String| {
        Err(InstallError::NotFetched { package: package.name.to_owned(), origin: package.origin, why })
    };
    match ended.map_err(|e| InstallError::io("what fetches was lost from sight", e))? {
        None if cancellation.is_cancelled() => Err(InstallError::Cancelled),
        Some(exit) if exit.success() => Ok(()),
        Some(exit) => not_fetched(why(name, exit, &said.concat(), &denials.summary())),
        None => not_fetched(format!("{name} did not end within {} minutes", FETCH_TIMEOUT.as_secs() / 60)),
    }
}

/// Starts an egress proxy that allows only the registry.
fn start_proxy(
    clock: &Arc<dyn Clock>,
    fetcher: &dyn Fetcher,
    dir: &Path,
    own_network: bool,
    denials: &Arc<Denials>,
) -> Result<Handle, InstallError> {
    let allowlist = Allowlist::parse(&fetcher.hosts()).map_err(|bad| InstallError::Way(bad.to_string()))?;
    let options =
        Options { own_network, ..Options::new(allowlist, Arc::clone(clock), Arc::<Denials>::clone(denials)) };
    let handle = Service::start(options).map_err(|e| InstallError::Way(e.to_string()))?;
    // The path of a socket is limited to 107 bytes; a home can be deeper.
    let opened = File::open(dir).map_err(|e| InstallError::io("the directories of the job", e))?;
    let socket = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(SOCKET);
    handle.listen(&Listen::Unix(socket)).map_err(|e| InstallError::Way(e.to_string()))?;
    Ok(handle)
}

/// Why fetching failed: the denied connections, else the last lines of output.
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

/// Reads a stream to its end, and keeps its tail.
fn read_tail(stream: Option<Box<dyn Read + Send>>) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
        let Some(mut stream) = stream else { return String::new() };
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            kept.extend_from_slice(buffer.get(..n).unwrap_or_default());
            let over = kept.len().saturating_sub(MAX_OUTPUT_BYTES);
            kept.drain(..over);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}
