//! Fetches a package inside the sandbox: no network but the registry, no script of the package is run.

use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use herma_destination::{Exit, Job, Limits, Rooms, Stdin};
use herma_egress::Allowlist;
use herma_egress::proxy::{Handle, Listen, Options, Service};
use herma_engines::Package;
use herma_model::RunId;
use herma_model::engine::DestinationKind;

use super::error::InstallError;
use super::npm::Npm;
use super::watch::Denials;
use crate::home::RunDirs;
use crate::installation::Installation;

/// How long fetching may take.
const PATIENCE: Duration = Duration::from_mins(15);
/// How much of what npm says is kept.
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
    npm: &Npm,
    (package, version): (&Package, &str),
    own_network: bool,
) -> Result<(), InstallError> {
    let destination = installation
        .destination(DestinationKind::Sandbox, None)
        .map_err(|unready| InstallError::Start(unready.into()))?;
    for dir in [dirs.workspace(), dirs.engine(), dirs.egress()] {
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|e| InstallError::io("the rooms of the job", e))?;
    }
    let denials = Arc::new(Denials::default());
    let way = open_way(installation, npm, &dirs.egress(), own_network, &denials)?;
    let rooms = Rooms {
        workspace: dirs.workspace(),
        engine_dir: Some(dirs.engine()),
        router: None,
        egress: Some(dirs.egress().join(SOCKET)),
    };
    let view = destination.view(&rooms);
    let own = view.engine_dir.clone().unwrap_or_default();
    let mut argv = vec![
        npm.program.clone().into_os_string(),
        "install".into(),
        "--prefix".into(),
        view.workspace.clone().into_os_string(),
        // What a package would run is not run: nobody has admitted it.
        "--ignore-scripts".into(),
        "--omit=dev".into(),
        "--no-audit".into(),
        "--no-fund".into(),
        "--loglevel=error".into(),
    ];
    argv.extend(package.wanted(version).into_iter().map(Into::into));
    let mut env = vec![
        ("npm_config_registry".to_owned(), npm.registry.clone()),
        ("npm_config_cache".to_owned(), own.join("cache").display().to_string()),
        ("npm_config_userconfig".to_owned(), own.join("npmrc").display().to_string()),
        ("npm_config_update_notifier".to_owned(), "false".to_owned()),
        // The same package is the same tree, whichever mirror it comes from.
        ("npm_config_omit_lockfile_registry_resolved".to_owned(), "true".to_owned()),
    ];
    env.extend(npm.cafile.iter().map(|file| ("npm_config_cafile".to_owned(), file.display().to_string())));
    let mut process = destination.start(&Job {
        run_id: job,
        argv,
        env,
        path: npm.path.clone(),
        rooms,
        mounts: npm.mounts.clone(),
        stdin: Stdin::Null,
        limits: Limits::default(),
        herma: false,
    })?;
    let said = [process.take_stdout(), process.take_stderr()].map(listen);
    let ended = process.wait(PATIENCE);
    process.kill_all().map_err(|e| InstallError::io("npm could not be ended", e))?;
    drop(way);
    let said: Vec<String> = said.into_iter().filter_map(|heard| heard.join().ok()).collect();
    let not_fetched = |why: String| Err(InstallError::NotFetched { package: package.name, why });
    match ended.map_err(|e| InstallError::io("npm was lost from sight", e))? {
        Some(exit) if exit.success() => Ok(()),
        Some(exit) => not_fetched(why(exit, &said.concat(), &denials.told())),
        None => not_fetched(format!("npm did not end within {} minutes", PATIENCE.as_secs() / 60)),
    }
}

/// A proxy that leads to the registry and nowhere else.
fn open_way(
    installation: &Installation,
    npm: &Npm,
    dir: &Path,
    own_network: bool,
    denials: &Arc<Denials>,
) -> Result<Handle, InstallError> {
    let allowlist = Allowlist::parse(std::slice::from_ref(&npm.host))
        .map_err(|bad| InstallError::Way(bad.to_string()))?;
    let options = Options {
        own_network,
        ..Options::new(allowlist, Arc::clone(&installation.clock), Arc::<Denials>::clone(denials))
    };
    let handle = Service::start(options).map_err(|e| InstallError::Way(e.to_string()))?;
    // A home may lie deeper than the system takes the path of a socket.
    let opened = File::open(dir).map_err(|e| InstallError::io("the rooms of the job", e))?;
    let socket = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(SOCKET);
    handle.listen(&Listen::Unix(socket)).map_err(|e| InstallError::Way(e.to_string()))?;
    Ok(handle)
}

/// Why npm gave up: what it was denied, else its own last words.
fn why(exit: Exit, said: &str, denied: &str) -> String {
    if !denied.is_empty() {
        return format!("npm was denied {denied}");
    }
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("; ");
    match exit.code {
        Some(code) => format!("npm ended with {code}: {last}"),
        None => format!("npm was killed: {last}"),
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
