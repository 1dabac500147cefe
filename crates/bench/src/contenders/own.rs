//! Hidden subcommands of this program: the bare proxy, and the upstream behind all of them.

use std::net::SocketAddr;
use std::path::Path;

use super::{BARE_PROXY, Contender, Program};
use crate::child::Recipe;
use crate::client::Front;
use crate::{proxy, upstream as model};

/// A proxy on hyper that parses nothing.
pub(super) const BARE: Contender = Contender::quick(BARE_PROXY, Program::Own, |site| {
    let (port, upstream) = (site.listen.port().to_string(), site.upstream.to_string());
    (site.recipe([proxy::SUBCOMMAND, &port, &upstream], []), Front::new(site.listen, "bench"))
});

/// The upstream at this address.
pub(crate) fn upstream(program: &Path, listen: SocketAddr) -> (Recipe, Front) {
    let argv = vec![program.into(), model::SUBCOMMAND.into(), listen.port().to_string().into()];
    (Recipe { argv, env: Vec::new(), files: Vec::new() }, Front::new(listen, "bench"))
}
