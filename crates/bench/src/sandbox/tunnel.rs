//! The hidden `herma-bench __bench-egress`: the egress proxy as a run has it, but every name leads to one address of
//! the loopback, where it would otherwise let nobody go.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread;

use herma_core::Timestamp;
use herma_core::clock::Clock;
use herma_egress::addresses::Target;
use herma_egress::proxy::{Connect, ConnectError, Limits, Listen, Options, Service};
use herma_egress::resolver::{BoxFuture, Resolve};
use herma_egress::{Allowlist, DecisionRecorder, Name, ProxyDecision, Unrecorded};
use tokio::net::TcpStream;

use crate::serve::argument;

/// The name of the hidden subcommand. A port and the address of the source follow it.
pub(crate) const SUBCOMMAND: &str = "__bench-egress";

/// The one host that is on the list.
pub(super) const HOST: &str = "example.org";

/// Carries until the process is killed; returns only if that fails. `args` is what follows the subcommand.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> io::Error {
    match carry(&mut args) {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

fn carry(args: &mut impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    let port = argument(args, "a port")?;
    let source: SocketAddr = argument(args, "the address of the source")?;
    let allowlist = Allowlist::parse(&[HOST]).map_err(io::Error::other)?;
    let options = Options::new(allowlist, Arc::new(Still), Arc::new(Blind));
    let handle = Service::start(Options {
        limits: Limits { bytes: u64::MAX, ..Limits::default() },
        resolver: Arc::new(Somewhere),
        connector: Arc::new(There(source)),
        ..options
    })
    .map_err(io::Error::other)?;
    handle.listen(&Listen::Loopback(port)).map_err(io::Error::other)?;
    loop {
        thread::park();
    }
}

/// No grant ends meanwhile.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// One decision for each tunnel is nothing beside its bytes.
struct Blind;

impl DecisionRecorder for Blind {
    fn decided(&self, _: &ProxyDecision) -> Result<(), Unrecorded> {
        Ok(())
    }
}

/// A public address, which is checked and then not used.
struct Somewhere;

impl Resolve for Somewhere {
    fn resolve<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::from([8, 8, 8, 8])]) })
    }
}

struct There(SocketAddr);

impl Connect for There {
    fn connect(&self, _: Target) -> BoxFuture<'_, Result<TcpStream, ConnectError>> {
        Box::pin(async { Ok(TcpStream::connect(self.0).await?) })
    }
}
