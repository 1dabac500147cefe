//! The parts of a measurement by hand: how fast one tunnel is, beside `socat` on the same machine.
//!
//! ```text
//! egress-throughput source 7001 &                       sends zeros to whoever connects
//! egress-throughput proxy 7002 7001 &                   the proxy, whose every way leads there
//! socat TCP-LISTEN:7003,reuseaddr,fork TCP:127.0.0.1:7001 &
//! egress-throughput tunnel 7002 8                       8 GiB through a tunnel: MiB/s
//! egress-throughput direct 7003 8                       8 GiB through socat: MiB/s
//! ```
//!
//! The processor time of either is in `/proc/PID/stat`.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use herma_egress::addresses::Target;
use herma_egress::proxy::{Connect, ConnectError, Limits, Listen, Options, Service};
use herma_egress::resolver::{Later, Resolve};
use herma_egress::{Allowlist, Decided, Name, Unrecorded, Watch};
use herma_model::{Clock, Timestamp};

const BLOCK: usize = 256 << 10;
/// A client's hello to `example.org`.
const HELLO: &str = include_str!("../tests/golden/openssl.hex");

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["source", port] => source(port.parse()?),
        ["proxy", port, to] => proxy(port.parse()?, to.parse()?),
        ["tunnel", port, gib] => pull(port.parse()?, gib.parse()?, true),
        ["direct", port, gib] => pull(port.parse()?, gib.parse()?, false),
        _ => Err("egress-throughput source PORT | proxy PORT TO | tunnel PORT GIB | direct PORT GIB".into()),
    }
}

fn source(port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::spawn(move || {
            let block = vec![0; BLOCK];
            let _ = stream.read(&mut [0; 4096]);
            while stream.write_all(&block).is_ok() {}
        });
    }
    Ok(())
}

fn pull(port: u16, gib: u64, through_a_tunnel: bool) -> Result<(), Box<dyn Error>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let pairs: Vec<u8> = HELLO.trim().bytes().collect();
    let byte = |pair: &[u8]| Ok::<_, Box<dyn Error>>(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
    let hello = pairs.chunks(2).map(byte).collect::<Result<Vec<u8>, _>>()?;
    if through_a_tunnel {
        stream.write_all(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n")?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.extend(byte);
        }
    }
    stream.write_all(&hello)?;
    let mut block = vec![0; BLOCK];
    let (began, most) = (Instant::now(), gib << 30);
    let mut came = 0;
    while came < most {
        let count = stream.read(&mut block)?;
        if count == 0 {
            return Err("the connection ended too early".into());
        }
        came += u64::try_from(count)?;
    }
    println!("{:.0} MiB/s", f64::from(u32::try_from(came >> 20)?) / began.elapsed().as_secs_f64());
    Ok(())
}

fn proxy(port: u16, to: u16) -> Result<(), Box<dyn Error>> {
    let limits = Limits { bytes: u64::MAX, ..Limits::default() };
    let allowlist = Allowlist::parse(&["example.org"])?;
    let to = SocketAddr::from(([127, 0, 0, 1], to));
    let options = Options::new(allowlist, Arc::new(Still), Arc::new(Blind));
    let handle = Service::start(Options {
        limits,
        resolver: Arc::new(Anywhere),
        connector: Arc::new(There(to)),
        ..options
    })?;
    println!("{}", handle.listen(&Listen::Loopback(port))?);
    loop {
        std::thread::park();
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

struct Blind;

impl Watch for Blind {
    fn decided(&self, _: &Decided) -> Result<(), Unrecorded> {
        Ok(())
    }
}

struct Anywhere;

impl Resolve for Anywhere {
    fn resolve<'a>(&'a self, _: &'a Name) -> Later<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::from([8, 8, 8, 8])]) })
    }
}

struct There(SocketAddr);

impl Connect for There {
    fn connect(&self, _: Target) -> Later<'_, Result<tokio::net::TcpStream, ConnectError>> {
        Box::pin(async { Ok(tokio::net::TcpStream::connect(self.0).await?) })
    }
}
