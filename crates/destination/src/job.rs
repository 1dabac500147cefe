//! A process to start: its command, paths, mounts and variables.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use herma_core::RunId;

use crate::limits::Limits;
use crate::overlay::Overlay;
use crate::variable_names::RUN_VARIABLE;

/// The directories that a process may write and the sockets that it may connect to, as host paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPaths {
    /// The workspace; the process starts in it.
    pub workspace: PathBuf,
    /// The engine's own directory for this run; verification has none.
    pub engine_dir: Option<PathBuf>,
    /// A directory that is the home inside, in place of an empty one in memory: the home of an environment.
    pub home: Option<PathBuf>,
    /// The socket of the run's router; none if the process may call no model.
    pub router: Option<PathBuf>,
    /// The socket of the run's egress proxy; none if the process may reach no host.
    pub egress: Option<PathBuf>,
    /// The socket of the tool-call policy service; none if the process makes no governed calls.
    pub governance: Option<PathBuf>,
}

/// The same paths, and herma's binary, as seen from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The workspace.
    pub workspace: PathBuf,
    /// The engine's own directory, if there is one.
    pub engine_dir: Option<PathBuf>,
    /// The router's socket, if there is one.
    pub router: Option<PathBuf>,
    /// The loopback port that is relayed to the router, if the destination has one.
    pub router_port: Option<u16>,
    /// The loopback port that is relayed to the egress proxy, if the destination has one.
    pub egress_port: Option<u16>,
    /// The CA bundle for TLS clients, where they would not find one by themselves.
    pub certificates: Option<PathBuf>,
    /// The socket of the tool-call policy service, if there is one.
    pub governance: Option<PathBuf>,
    /// herma's own binary.
    pub herma: PathBuf,
}

/// A file or directory that is visible inside and cannot be written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its path on the host.
    pub host: PathBuf,
    /// Its path inside.
    pub inside: PathBuf,
}

/// The standard input of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Null,
    /// This file of the host.
    File(PathBuf),
    /// A pipe that herma writes to while the process runs.
    Pipe,
}

/// One process to start.
#[derive(Clone, Debug)]
pub struct Job {
    /// The run that it belongs to; every process of the job carries this id.
    pub run_id: RunId,
    /// The command and its arguments. A name without a slash is looked up inside.
    pub argv: Vec<OsString>,
    /// Variables beyond those that herma sets itself; they win over those.
    pub env: Vec<(String, String)>,
    /// Directories inside that come before the usual ones in `PATH`.
    pub search_path: Vec<PathBuf>,
    /// The directories and sockets of the job.
    pub paths: JobPaths,
    /// Read-only mounts beyond the system.
    pub mounts: Vec<Mount>,
    /// Directories below the workspace and the home that show others, with changes of the job's own.
    pub overlays: Vec<Overlay>,
    /// Directories at the top of the workspace, by name, that appear empty and read-only inside.
    pub hidden: Vec<String>,
    /// Its standard input.
    pub stdin: Stdin,
    /// How much it may use.
    pub limits: Limits,
    /// Whether the command is herma itself, or calls it. The sandbox shows the binary to every job, because its
    /// launcher is herma.
    pub needs_herma: bool,
}

impl JobPaths {
    /// A workspace and nothing else.
    #[must_use]
    pub fn new(workspace: PathBuf) -> Self {
        Self { workspace, engine_dir: None, home: None, router: None, egress: None, governance: None }
    }

    /// The same with the engine's directory.
    #[must_use]
    pub fn with_engine_dir(self, dir: PathBuf) -> Self {
        Self { engine_dir: Some(dir), ..self }
    }

    /// The same with the home of an environment.
    #[must_use]
    pub fn with_home(self, dir: PathBuf) -> Self {
        Self { home: Some(dir), ..self }
    }

    /// The same with the socket of the run's egress proxy.
    #[must_use]
    pub fn with_egress(self, socket: PathBuf) -> Self {
        Self { egress: Some(socket), ..self }
    }
}

impl JobPaths {
    /// Rejects an overlay outside of the workspace and the home, or with its changes inside of them.
    fn holds(&self, overlay: &Overlay) -> Result<(), BadJob> {
        let Overlay { lower, upper, work, root, place } = overlay;
        for (role, path) in
            [("a lower directory", lower), ("an upper directory", upper), ("a work directory", work)]
        {
            directory(role, path)?;
        }
        let own = [Some(&self.workspace), self.home.as_ref()];
        let is_ours = |path: &PathBuf| own.iter().flatten().any(|dir| path.starts_with(dir));
        let bad = |why| Err(BadJob::Overlay { place: place.clone(), why });
        if !own.contains(&Some(root)) {
            return bad("its root is neither the workspace nor the home");
        }
        if [lower, upper, work].into_iter().any(is_ours) {
            return bad("the job could change what it is made of");
        }
        Ok(())
    }
}

impl Job {
    /// A command with empty stdin, default limits, and no mounts or variables of its own.
    #[must_use]
    pub fn new(run_id: RunId, argv: Vec<OsString>, paths: JobPaths) -> Self {
        Self {
            run_id,
            argv,
            env: Vec::new(),
            search_path: Vec::new(),
            paths,
            mounts: Vec::new(),
            overlays: Vec::new(),
            hidden: Vec::new(),
            stdin: Stdin::Null,
            limits: Limits::default(),
            needs_herma: false,
        }
    }

    /// The same with these variables.
    #[must_use]
    pub fn with_env(self, env: Vec<(String, String)>) -> Self {
        Self { env, ..self }
    }

    /// The same with these directories in front of `PATH`.
    #[must_use]
    pub fn with_search_path(self, search_path: Vec<PathBuf>) -> Self {
        Self { search_path, ..self }
    }

    /// The same with these read-only mounts.
    #[must_use]
    pub fn with_mounts(self, mounts: Vec<Mount>) -> Self {
        Self { mounts, ..self }
    }

    /// The same with these overlays.
    #[must_use]
    pub fn with_overlays(self, overlays: Vec<Overlay>) -> Self {
        Self { overlays, ..self }
    }

    /// The same with this standard input.
    #[must_use]
    pub fn with_stdin(self, stdin: Stdin) -> Self {
        Self { stdin, ..self }
    }

    /// The same with these limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same with herma's own binary visible inside.
    #[must_use]
    pub fn with_herma(self) -> Self {
        Self { needs_herma: true, ..self }
    }
}

/// The job cannot be started as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadJob {
    /// There is no command.
    #[error("the job has no command")]
    NoCommand,
    /// A path is relative, leaves its parent, or holds a character that no path may have.
    #[error("{role} `{}` is not a plain absolute path", path.display())]
    BadPath {
        /// The role of the path.
        role: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A directory of `PATH` holds a colon and would be read as two.
    #[error("`{}` cannot be a directory of PATH: it contains a colon", .0.display())]
    Colon(PathBuf),
    /// A path of the job is not a directory.
    #[error("{role} `{}` is not a directory", path.display())]
    NotADirectory {
        /// The role of the path.
        role: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// A socket path of the run is not a socket.
    #[error("{role} `{}` is not a socket", path.display())]
    NotASocket {
        /// The role of the path.
        role: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// The destination mounts no overlays, or this one is not in a directory of the job.
    #[error("nothing can be mounted over `{}`: {why}", place.display())]
    Overlay {
        /// Its place.
        place: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// A mount would cover a path that herma itself lays out.
    #[error("nothing can be mounted at `{}`: herma uses `{taken}` itself", inside.display())]
    Taken {
        /// The path of the mount inside.
        inside: PathBuf,
        /// The path that it would cover or be inside of.
        taken: &'static str,
    },
    /// A name cannot be hidden: it is no directory at the top of the workspace, or the destination hides nothing.
    #[error("the directory `{name}` cannot be hidden: {why}")]
    Hidden {
        /// Its name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// A variable cannot be set.
    #[error("the variable `{0}` cannot be set: {1}")]
    BadVariable(String, &'static str),
}

impl Job {
    /// Rejects jobs that no destination can start.
    pub(crate) fn check(&self) -> Result<(), BadJob> {
        if self.argv.is_empty() {
            return Err(BadJob::NoCommand);
        }
        directory("the workspace", &self.paths.workspace)?;
        if let Some(dir) = &self.paths.engine_dir {
            directory("the engine's directory", dir)?;
        }
        if let Some(dir) = &self.paths.home {
            directory("the home", dir)?;
        }
        if let Some(router) = &self.paths.router {
            socket("the router's socket", router)?;
        }
        if let Some(egress) = &self.paths.egress {
            socket("the egress proxy's socket", egress)?;
        }
        if let Some(governance) = &self.paths.governance {
            socket("the socket for tool calls", governance)?;
        }
        for mount in &self.mounts {
            plain("the source of a mount", &mount.host)?;
            plain("the place of a mount", &mount.inside)?;
        }
        self.overlays.iter().try_for_each(|overlay| self.paths.holds(overlay))?;
        self.hidden.iter().try_for_each(|name| hidden(&self.paths.workspace, name))?;
        for dir in &self.search_path {
            plain("a directory of PATH", dir)?;
            if dir.as_os_str().as_bytes().contains(&b':') {
                return Err(BadJob::Colon(dir.clone()));
            }
        }
        self.env.iter().try_for_each(|(name, value)| variable(name, value))
    }
}

/// Absolute, without `.`, `..` and NUL: the kernel resolves exactly the path that was checked.
fn plain(role: &'static str, path: &Path) -> Result<(), BadJob> {
    let sound = path.is_absolute()
        && !path.as_os_str().as_bytes().contains(&0)
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    sound.then_some(()).ok_or_else(|| BadJob::BadPath { role, path: path.to_owned() })
}

fn directory(role: &'static str, path: &Path) -> Result<(), BadJob> {
    plain(role, path)?;
    path.is_dir().then_some(()).ok_or_else(|| BadJob::NotADirectory { role, path: path.to_owned() })
}

/// Rejects overlays where the destination mounts none.
pub(crate) fn no_overlays(overlays: &[Overlay]) -> Result<(), BadJob> {
    let why = "this destination mounts no overlays";
    overlays.first().map_or(Ok(()), |first| Err(BadJob::Overlay { place: first.place.clone(), why }))
}

/// Follows no symlink, which could be redirected after this check.
fn socket(role: &'static str, path: &Path) -> Result<(), BadJob> {
    plain(role, path)?;
    let there = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    there.then_some(()).ok_or_else(|| BadJob::NotASocket { role, path: path.to_owned() })
}

/// Follows no symlink: a mount over a link covers its target, which may be anywhere.
fn hidden(workspace: &Path, name: &str) -> Result<(), BadJob> {
    let bad = |why| Err(BadJob::Hidden { name: name.to_owned(), why });
    let mut steps = Path::new(name).components();
    if !matches!((steps.next(), steps.next()), (Some(Component::Normal(only)), None) if only == name) {
        return bad("it is not one plain name");
    }
    match workspace.join(name).symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => bad("it is not a directory"),
        Err(_) => bad("it does not exist"),
    }
}

fn variable(name: &str, value: &str) -> Result<(), BadJob> {
    let bad = |why| Err(BadJob::BadVariable(name.to_owned(), why));
    if name == RUN_VARIABLE {
        return bad("herma finds the processes of the run by it");
    }
    if name.is_empty() || name.contains(['=', '\0']) {
        return bad("a name must not be empty or contain `=` or NUL");
    }
    if value.contains('\0') {
        return bad("its value contains NUL");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        let run_id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        Job::new(run_id, vec!["true".into()], JobPaths::new("/tmp".into()))
    }

    #[test]
    fn a_plain_job_is_accepted() {
        assert_eq!(job().check(), Ok(()));
    }

    #[test]
    fn paths_that_are_not_plain_are_refused() {
        for path in ["", "relative", "/tmp/../tmp", "/tmp\0b", "./a"] {
            let mount = Mount { host: path.into(), inside: "/x".into() };
            assert!(Job { mounts: vec![mount], ..job() }.check().is_err(), "host {path:?}");
            let mount = Mount { host: "/x".into(), inside: path.into() };
            assert!(Job { mounts: vec![mount], ..job() }.check().is_err(), "inside {path:?}");
            let paths = JobPaths::new(path.into());
            assert!(Job { paths, ..job() }.check().is_err(), "workspace {path:?}");
        }
        assert!(Job { search_path: vec!["/a:/b".into()], ..job() }.check().is_err());
        let paths = JobPaths { engine_dir: Some("/dev/null".into()), ..job().paths };
        assert!(matches!(Job { paths, ..job() }.check(), Err(BadJob::NotADirectory { .. })));
        for path in ["/dev/null", "/tmp", "/no/such/socket", "router.sock"] {
            let paths = JobPaths { router: Some(path.into()), ..job().paths };
            assert!(Job { paths, ..job() }.check().is_err(), "router {path:?}");
            let paths = JobPaths { egress: Some(path.into()), ..job().paths };
            assert!(Job { paths, ..job() }.check().is_err(), "egress {path:?}");
            let paths = JobPaths { governance: Some(path.into()), ..job().paths };
            assert!(Job { paths, ..job() }.check().is_err(), "governance {path:?}");
        }
    }

    #[test]
    fn only_a_directory_of_the_workspace_is_hidden() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("there/below")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("there", dir.path().join("link")).unwrap();
        let hiding = |name: &str| {
            let paths = JobPaths { workspace: dir.path().to_owned(), ..job().paths };
            Job { paths, hidden: vec![name.to_owned()], ..job() }.check()
        };
        assert_eq!(hiding("there"), Ok(()));
        for name in ["", ".", "..", "/", "/there", "there/", "there/below", "a\0", "file", "link", "nothing"]
        {
            assert!(matches!(hiding(name), Err(BadJob::Hidden { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_job_cannot_rename_its_run_or_smuggle_a_variable() {
        for (name, value) in [(RUN_VARIABLE, "x"), ("", "x"), ("A=B", "x"), ("A", "x\0y"), ("A\0", "x")] {
            let env = vec![(name.to_owned(), value.to_owned())];
            assert!(Job { env, ..job() }.check().is_err(), "{name:?}={value:?}");
        }
        assert!(Job { argv: Vec::new(), ..job() }.check().is_err());
    }
}
