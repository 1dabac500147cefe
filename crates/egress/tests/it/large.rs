//! A gigabyte, or as many as `EGRESS_GIB` says, through one tunnel, in memory that does not grow with it.

use std::io::Read as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::tunnel;
use super::kit::{HOST, Setup};
use super::server::Server;

const BLOCK: usize = 256 << 10;
/// Far more than the buffers of a tunnel, far less than what passes.
const MAX_GROWTH_KIB: u64 = 64 << 10;

#[allow(clippy::disallowed_methods, reason = "`scripts/long` asks for more than CI has time for")]
fn bytes() -> u64 {
    let gib = std::env::var("EGRESS_GIB").map_or(1, |text| text.parse().unwrap());
    gib << 30
}

/// The most memory that the process ever held, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Reads the hello, then sends counted blocks.
fn source() -> Server {
    Server::new(|mut stream, _| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        let mut block = vec![0; BLOCK];
        for number in 0..bytes() / BLOCK as u64 {
            block[..8].copy_from_slice(&number.to_be_bytes());
            if stream.write_all(&block).await.is_err() {
                return;
            }
        }
    })
}

#[test]
fn gigabytes_pass_in_flat_memory_and_in_order() {
    let server = source();
    let proxy = Setup::new(server.address).start();
    let (mut client, _) = tunnel(&proxy, HOST);
    let mut block = vec![0; BLOCK];
    client.0.read_exact(&mut block).unwrap();
    let before = peak();
    for number in 1..bytes() / BLOCK as u64 {
        client.0.read_exact(&mut block).unwrap();
        assert_eq!(block[..8], number.to_be_bytes());
    }
    assert_eq!(client.rest(), b"");
    assert_eq!(proxy.handle.counts().bytes_in, bytes());
    // The system counts memory in portions, so that the sum may come out a little lower later.
    let grown = peak().saturating_sub(before);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
}
