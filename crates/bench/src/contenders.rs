//! The contenders, one file each: how it is started as a plain proxy in front of the upstream.

mod envoy;
mod litellm;
mod nginx;
mod own;
mod portkey;
mod router;
mod tensorzero;

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use herma_destination::Tool;

use crate::child::Recipe;
use crate::client::Front;

pub(crate) use self::own::upstream;

/// No contender at all.
pub(crate) const DIRECT: &str = "direct";
/// nginx as a plain proxy.
pub(crate) const NGINX: &str = "nginx";
/// The floor of our stack.
pub(crate) const BARE_PROXY: &str = "bare hyper proxy";
/// The router with everything on.
pub(crate) const ROUTER: &str = "herma router";
/// Envoy as a plain proxy.
pub(crate) const ENVOY: &str = "Envoy";
/// Those that do for models what the router does.
pub(crate) const LLM_GATEWAYS: [&str; 3] = ["LiteLLM", "Portkey", "TensorZero"];

/// Where the program of a contender is.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// The herma that is measured.
    Herma,
    /// This program, by a hidden subcommand.
    Own,
    /// A program of this name in PATH.
    InPath(&'static str),
}

/// The programs that contenders are made of.
pub(crate) struct Programs<'a> {
    pub(crate) herma: &'a Path,
    /// This program.
    pub(crate) own: &'a Path,
    /// PATH, for all others.
    pub(crate) search_path: &'a OsStr,
}

/// A gateway to measure.
pub(crate) struct Contender {
    /// Its name in the table.
    pub(crate) name: &'static str,
    program: Program,
    /// Whether it answers within a second of its start.
    pub(crate) starts_at_once: bool,
    /// How long it may take to answer for the first time.
    pub(crate) patience: Duration,
    /// How many streams at once it can pass on as fast as they come, where it is not all that are asked.
    pub(crate) most_streams: Option<usize>,
    /// How it is started, and how it is asked.
    pub(crate) prepare: fn(&Site<'_>) -> (Recipe, Front),
}

/// Where a contender is started.
pub(crate) struct Site<'a> {
    /// Its program.
    pub(crate) program: &'a Path,
    /// Its directory.
    pub(crate) dir: &'a Path,
    /// Where it is to listen.
    pub(crate) listen: SocketAddr,
    /// The upstream.
    pub(crate) upstream: SocketAddr,
}

/// Everybody who can be measured, in the order of the table.
pub(crate) const CONTENDERS: [&Contender; 7] = [
    &nginx::CONTENDER,
    &own::BARE,
    &router::CONTENDER,
    &envoy::CONTENDER,
    &tensorzero::CONTENDER,
    &portkey::CONTENDER,
    &litellm::CONTENDER,
];

impl Contender {
    /// One that is there within a second and keeps up.
    const fn quick(name: &'static str, program: Program, prepare: fn(&Site<'_>) -> (Recipe, Front)) -> Self {
        let patience = Duration::from_secs(10);
        Self { name, program, starts_at_once: true, patience, most_streams: None, prepare }
    }

    /// The path of its program, or the reason why it cannot be measured.
    pub(crate) fn find(&self, programs: &Programs<'_>) -> Result<PathBuf, String> {
        let program = match self.program {
            Program::Herma => return Ok(programs.herma.to_owned()),
            Program::Own => return Ok(programs.own.to_owned()),
            Program::InPath(program) => program,
        };
        // Where systems keep what is meant for their administrator.
        let mut path = OsString::from(programs.search_path);
        path.push(":/usr/local/sbin:/usr/sbin");
        let found = Tool::find(program, &path);
        found.map(|tool| tool.path().to_owned()).map_err(|_| format!("`{program}` is not in PATH"))
    }
}

impl Site<'_> {
    /// The program with these arguments and files.
    fn recipe<const N: usize>(
        &self,
        args: impl IntoIterator<Item = impl Into<OsString>>,
        files: [(&'static str, String); N],
    ) -> Recipe {
        let words = std::iter::once(self.program.into()).chain(args.into_iter().map(Into::into)).collect();
        Recipe { argv: words, env: Vec::new(), files: files.into() }
    }

    /// A file of the contender's directory, as an argument.
    fn file(&self, name: &str) -> OsString {
        self.dir.join(name).into()
    }
}
