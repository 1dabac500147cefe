//! One connection at a time through the egress proxy and through `socat`, from the same source.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use herma_destination::{Host, Tool};

use super::figures::SandboxRow;
use super::tunnel::HOST;
use super::{Order, Turns, collect, rounds, source, tunnel};
use crate::child::{Child, Nursery, Recipe, free_port};
use crate::error::BenchError;
use crate::figures::LeftOut;
use crate::interrupt::Interruptible;

/// `socat` between two sockets.
pub(super) const SOCAT: &str = "socat";
/// One tunnel of the egress proxy.
pub(super) const OURS: &str = "herma egress";

/// The buffer of `socat`, as large as the proxy's. Its default of 8 KiB would be slower.
const SOCAT_BUFFER: &str = "-b65536";
/// How long a process may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nobody is silent for so long.
const SILENCE: Duration = Duration::from_secs(20);
/// Enough to see that bytes pass.
const A_FEW: u64 = 1 << 20;
const BLOCK: usize = 256 << 10;

/// A process that carries bytes.
struct Carrier {
    child: Child,
    at: SocketAddr,
    through_a_tunnel: bool,
    cpu: Vec<Duration>,
}

pub(super) fn measure(
    order: &Order<'_>,
    runtime: &Interruptible,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<SandboxRow>, BenchError> {
    let nursery = Nursery { host: Host::new(order.herma.clone()), clock: order.clock };
    let own = |words: &[&str]| {
        let argv = [order.program.clone().into()].into_iter().chain(words.iter().map(Into::into)).collect();
        Recipe { argv, env: Vec::new(), files: Vec::new() }
    };
    let start = |name: &str, at: SocketAddr, recipe: Recipe, through_a_tunnel: bool| {
        runtime.breathe()?;
        let mut child = nursery.start(&order.scratch.join(name), recipe)?;
        child.wait_until(PATIENCE, || pull(at, through_a_tunnel, A_FEW))?;
        Ok::<_, BenchError>(Carrier { child, at, through_a_tunnel, cpu: Vec::new() })
    };
    let from = free_port()?;
    let _source = start("source", from, own(&[source::SUBCOMMAND, &from.port().to_string()]), false)?;
    let mut all = Vec::new();
    let socat = || {
        let tool =
            Tool::find("socat", &order.search_path).map_err(|_| "`socat` is not in PATH".to_owned())?;
        let at = free_port().map_err(|error| error.to_string())?;
        let listen = format!("TCP-LISTEN:{},bind=127.0.0.1,reuseaddr,fork", at.port());
        let words = [tool.path().into(), SOCAT_BUFFER.into(), listen.into(), format!("TCP:{from}").into()];
        let recipe = Recipe { argv: words.into(), env: Vec::new(), files: Vec::new() };
        start(SOCAT, at, recipe, false).map_err(|error| error.to_string())
    };
    match socat() {
        Ok(carrier) => all.push(Turns::new(SOCAT, carrier)),
        Err(why) => left_out.push(LeftOut { name: SOCAT.to_owned(), why }),
    }
    let at = free_port()?;
    let recipe = own(&[tunnel::SUBCOMMAND, &at.port().to_string(), &from.to_string()]);
    all.push(Turns::new(OURS, start("egress", at, recipe, true)?));

    let bytes = order.plan.bytes;
    rounds(order.plan.pulls, runtime, &mut all, |carrier| carrier.carry(bytes))?;
    Ok(collect(all, left_out, |name, times, carrier| SandboxRow::carried(name, bytes, &times, &carrier.cpu)))
}

impl Carrier {
    fn carry(&mut self, bytes: u64) -> Result<(), BenchError> {
        let before = self.child.used()?.cpu;
        pull(self.at, self.through_a_tunnel, bytes)?;
        self.cpu.push(self.child.used()?.cpu.saturating_sub(before));
        Ok(())
    }
}

/// Reads this many bytes from one connection.
fn pull(at: SocketAddr, through_a_tunnel: bool, bytes: u64) -> Result<(), BenchError> {
    read(at, through_a_tunnel, bytes).map_err(BenchError::io(format!("cannot read from {at}")))
}

fn read(at: SocketAddr, through_a_tunnel: bool, bytes: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(SILENCE))?;
    if through_a_tunnel {
        stream.write_all(format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.extend(byte);
        }
        if !head.starts_with(b"HTTP/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(&head).into_owned()));
        }
    }
    stream.write_all(&hello(HOST))?;
    let mut block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        match stream.read(&mut block)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left = left.saturating_sub(count as u64),
        }
    }
    Ok(())
}

/// How TLS begins with a server of this name: without it no tunnel is let through.
pub(super) fn hello(name: &str) -> Vec<u8> {
    let name = name.as_bytes();
    let server_name = [&[0, 0], &long(&long(&[&[0], &long(name)[..]].concat()))[..]].concat();
    // TLS 1.3.
    let versions = [0, 43, 0, 3, 2, 3, 4];
    let extensions = [&server_name[..], &versions].concat();
    let suites = long(&[0x13, 0x01]);
    let body = [&[3, 3], &[7; 32][..], &[0], &suites, &[1, 0], &long(&extensions)].concat();
    let message = [&[1, 0], &long(&body)[..]].concat();
    [&[22, 3, 1], &long(&message)[..]].concat()
}

/// With its length before it.
fn long(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes(), bytes].concat()
}
