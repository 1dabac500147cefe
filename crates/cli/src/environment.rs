//! The environment, read once. Every variable that herma looks at is declared here.

mod lookup;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::Fault;
use herma_core::secret::Secret;
use herma_destination::{Pager, RUN_VARIABLE};
use herma_engines::{env, fake};
use herma_environments::tools::CLIENT_VARIABLES;
use herma_harness::{SOCKET_VARIABLE, SecretSource, Settings, StoreVariables, WORKSPACE_VARIABLE};
use herma_home::{HomeError, HomePlace};

use self::lookup::EnvironmentLookup;
use crate::failure::Failure;

/// A longer user name is truncated: people read it in records.
const MAX_USER: usize = 64;

/// A variable that herma looks at.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub what: &'static str,
}

/// Every variable that herma looks at.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "HERMA_HOME",
        what: "where herma keeps keys, store, runs and bundles; `$XDG_STATE_HOME/herma` or `~/.local/state/herma` \
               otherwise. herma uses a directory that is new, empty, or a herma home (it has the file `herma-home`), that \
               is its user's own, and that no other user can read; it changes no permissions of a directory that it did \
               not make, and makes one directory at most: the one above must exist",
    },
    Variable {
        name: "XDG_STATE_HOME",
        what: "where the directory `herma` is, herma's home, if HERMA_HOME is not set. It must exist",
    },
    Variable {
        name: "HOME",
        what: "the user's home; without it the one that the system has for the user. It must exist; herma makes \
               `.local/state/herma` below it where that is its home",
    },
    Variable {
        name: "USER",
        what: "the requester of an approval, if no approver signs the request; otherwise LOGNAME or the uid",
    },
    Variable { name: "LOGNAME", what: "as USER, if USER is not set" },
    Variable { name: "PATH", what: "directories in which git, bubblewrap and toolchains are found" },
    Variable {
        name: "HERMA_APPROVER_TOKEN",
        what: "an approver's token, for automation: its signatures count as that approver's. herma never prints it \
               and never passes it on; set it where no agent runs",
    },
    Variable {
        name: "HERMA_STORE",
        what: "the [store](store.md): `sqlite:PATH` or `postgres://USER@HOST:PORT/DATABASE`, without a password; `store.url` in \
               `settings.yaml` or the file `store.db` in the home otherwise",
    },
    Variable {
        name: "HERMA_STORE_PASSWORD_FILE",
        what: "the file with the password of the store that HERMA_STORE names; only its owner may read it",
    },
    Variable {
        name: "HERMA_STORE_PASSWORD",
        what: "the password itself, where there is no file for it. herma never prints it and never passes it on",
    },
    Variable {
        name: env::SOCKET_VARIABLE,
        what: "where the run's router listens. herma sets it for the agent of a run whose contract names a model, and \
               `fake` reads it",
    },
    Variable {
        name: env::TOKEN_VARIABLE,
        what: "the run's token for the router, set and read in the same way. It ends with the run",
    },
    Variable { name: env::MODEL_VARIABLE, what: "the contract's model, set and read in the same way" },
    Variable {
        name: RUN_VARIABLE,
        what: "the run that this process belongs to, set by herma. A herma process that finds it starts no run",
    },
    Variable { name: SOCKET_VARIABLE, what: "the socket for child runs inside a run, set by herma" },
    Variable { name: WORKSPACE_VARIABLE, what: "the workspace of the run, set in the same way" },
    Variable {
        name: "DOCKER_HOST",
        what: "where Docker listens, for the destination `docker`: a Unix socket of this machine, as in \
               `unix:///var/run/docker.sock`, which it is if this is not set",
    },
    Variable {
        name: "GOPROXY, PIP_INDEX_URL, JAVA_HOME, …",
        what: "registries and installations of tools, as package managers and version managers read them, for \
               [environments](environments.md): `npm_config_registry`, `PIP_INDEX_URL`, `PIP_EXTRA_INDEX_URL`, `PIP_CONFIG_FILE`, \
               `UV_DEFAULT_INDEX`, `UV_INDEX_URL`, `CARGO_HOME`, `GOPROXY`, `GOSUMDB`, `GONOSUMDB`, `GOPRIVATE`, `GONOPROXY`, and \
               `JAVA_HOME`, `GOROOT`, `DOTNET_ROOT`, `NVM_DIR`, `FNM_DIR`, `VOLTA_HOME`, `MISE_DATA_DIR`, `ASDF_DATA_DIR`, \
               `PYENV_ROOT`, `RBENV_ROOT`, `RUSTUP_HOME`, `SDKMAN_DIR`",
    },
    Variable {
        name: "HERMA_LOG",
        what: "log records on stderr, if no `-v` is given: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`) for all \
               crates that log, `CRATE=LEVEL` for `harness`, `router` or `store`, or several of them separated by commas",
    },
    Variable {
        name: "HERMA_LOG_FORMAT",
        what: "`text` or `json`, if no `--log-format` is given; `text` otherwise",
    },
    Variable { name: "NO_COLOR", what: "if set and not empty, output has no colour" },
    Variable {
        name: "PAGER",
        what: "the command that long output of `show`, `logs` and `diff` goes through on a terminal; `less` if it is not set, and \
               none if it is `cat`. `--no-pager` prints directly",
    },
    Variable { name: "LESS", what: "options of `less`; herma sets `FRX` if it is not set" },
    Variable { name: "TERM", what: "with the value `dumb`, no pager is started" },
    Variable {
        name: "HERMA_FAULT",
        what: "a fault that `herma run` and `herma demo` meet, for tests: `kill:STEP`, `kill-after:approval-mark`, \
               `drop-event:EVENT`, `fail-write:FILE`, `backdate:FILE` or `dirty-copy`. It can only make a run worse",
    },
];

/// The values of the environment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The settings of the installation.
    pub settings: Settings,
    /// Whether to colour.
    pub color: bool,
    /// The pager; none if output is no terminal, or none is wanted.
    pub pager: Option<Pager>,
    /// The user who runs herma, by an unverified name.
    pub user: String,
    /// The log filter.
    pub log: Option<String>,
    /// The format of log records.
    pub log_format: Option<String>,
    /// A fault for the next run.
    pub fault: Option<Fault>,
    /// The key of an approver, for automation.
    pub approver_token: Option<Secret<String>>,
    /// The run that this process is inside of, as far as the variables say that.
    pub around: RunAround,
}

/// The variables that describe a run around this process. They may be forged: use them to ask, never to decide.
#[derive(Clone, Debug)]
pub struct RunAround {
    /// Whether one is named.
    pub named: bool,
    /// Where it can be asked for a child run.
    pub socket: Option<PathBuf>,
    /// Its workspace.
    pub workspace: Option<PathBuf>,
}

impl Environment {
    /// Reads it.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub(crate) fn read() -> Result<Self, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // A service or a container may have no variable for it; the system knows its users all the same.
        let user_home = set("HOME").map(PathBuf::from).or_else(std::env::home_dir);
        // Many commands need no home; those that do report it.
        let named = set("HERMA_HOME")
            .map(PathBuf::from)
            .or_else(|| set("XDG_STATE_HOME").map(|state| PathBuf::from(state).join("herma")));
        let absolute = |path: &PathBuf| std::path::absolute(path).map_err(Failure::internal);
        let home = match (&named, &user_home) {
            (Some(named), _) => Some(HomePlace::named(absolute(named)?)),
            (None, Some(user_home)) => Some(HomePlace::default_below(absolute(user_home)?)),
            (None, None) => None,
        };
        let user_home = user_home.unwrap_or_else(|| PathBuf::from("/"));
        let herma = std::env::current_exe()
            .map_err(|e| Failure::internal(format!("herma cannot find its own binary: {e}")))?;
        let search_path = set("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
        let fault = match set("HERMA_FAULT") {
            None => None,
            Some(text) => Some(text.to_string_lossy().parse().map_err(Failure::bad_input)?),
        };
        let user = set("USER").or_else(|| set("LOGNAME")).map_or_else(
            || format!("uid {}", rustix::process::getuid().as_raw()),
            |name| name.to_string_lossy().chars().take(MAX_USER).collect(),
        );
        let approver_token =
            set("HERMA_APPROVER_TOKEN").map(|token| Secret::new(token.to_string_lossy().into_owned()));
        let secrets = SecretSource(Arc::new(EnvironmentLookup));
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        let docker_host = text("DOCKER_HOST");
        let client_variables =
            CLIENT_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?))).collect();
        let color = set("NO_COLOR").is_none() && std::io::stdout().is_terminal();
        let is_smart = std::io::stdout().is_terminal() && text("TERM").is_none_or(|term| term != "dumb");
        let pager = Pager {
            command: text("PAGER").unwrap_or_else(|| "less".to_owned()),
            has_less_options: set("LESS").is_some(),
        };
        let pager = Some(pager).filter(|pager| is_smart && pager.command.trim() != "cat");
        Ok(Self {
            settings: Settings {
                home,
                herma,
                user_home,
                search_path,
                secrets,
                docker_host,
                client_variables,
                store: StoreVariables {
                    url: text("HERMA_STORE").map(Secret::new),
                    password: text("HERMA_STORE_PASSWORD").map(Secret::new),
                    password_file: set("HERMA_STORE_PASSWORD_FILE").map(PathBuf::from),
                },
            },
            color,
            pager,
            user,
            log: text("HERMA_LOG"),
            log_format: text("HERMA_LOG_FORMAT"),
            fault,
            approver_token,
            around: RunAround {
                named: set(RUN_VARIABLE).is_some(),
                socket: set(SOCKET_VARIABLE).map(PathBuf::from),
                workspace: set(WORKSPACE_VARIABLE).map(PathBuf::from),
            },
        })
    }

    /// herma's home, which may not exist yet.
    pub(crate) fn home(&self) -> Result<&Path, Failure> {
        self.settings.home.as_ref().map(HomePlace::path).ok_or_else(|| Failure::from(&HomeError::Nowhere))
    }
}

/// A variable whose name the operator wrote into a configuration, such as that of a router's key. It is read when it is
/// asked for, so that a reload sees what it is then.
#[allow(clippy::disallowed_methods, reason = "the environment is read in this file only")]
fn named_by_the_operator(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The way to a model that herma gave this process, where it is the agent of a run.
#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn router_of_this_run() -> Option<fake::Router> {
    let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(fake::Router {
        socket: PathBuf::from(std::env::var_os(env::SOCKET_VARIABLE)?),
        token: Secret::new(text(env::TOKEN_VARIABLE)?),
        model: text(env::MODEL_VARIABLE)?,
    })
}

/// The way to everything else that herma gave this process, where it is the agent of a run.
#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn egress_of_this_run() -> Option<SocketAddr> {
    std::env::var(fake::PROXY_VARIABLE).ok()?.strip_prefix("http://")?.parse().ok()
}
