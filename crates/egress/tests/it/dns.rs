//! A small DNS server that answers as a test wants, and a resolver that asks it.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use herma_egress::Name;
use herma_egress::resolver::{BoxFuture, Resolve};

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// The longest chain of aliases that is followed.
const MAX_ALIASES: usize = 8;

/// The records of a name.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Address(IpAddr),
    Alias(String),
}

/// Says what a name has, at its nth question, from 0.
type Zone = dyn Fn(&str, usize) -> Vec<Record> + Send + Sync;

/// The server. It runs as long as the process.
pub(crate) struct Dns {
    pub(crate) address: SocketAddr,
    /// Every question, in order.
    pub(crate) asked: Arc<Mutex<Vec<(String, u16)>>>,
}

impl Dns {
    pub(crate) fn new(zone: impl Fn(&str, usize) -> Vec<Record> + Send + Sync + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = asked.clone();
        std::thread::spawn(move || {
            let mut packet = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                let answer = answer(&packet[..length], &zone, &noted);
                let _ = socket.send_to(&answer, from);
            }
        });
        Self { address, asked }
    }

    pub(crate) fn resolver(&self) -> Arc<Resolver> {
        Arc::new(Resolver(self.address))
    }
}

fn answer(question: &[u8], zone: &Zone, noted: &Mutex<Vec<(String, u16)>>) -> Vec<u8> {
    let (name, end) = read_name(question, 12);
    let kind = u16::from_be_bytes([question[end], question[end + 1]]);
    let mut asked = noted.lock().unwrap();
    let before = asked.iter().filter(|(earlier, of)| *earlier == name && *of == kind).count();
    asked.push((name.clone(), kind));
    let mut answers: Vec<Vec<u8>> = Vec::new();
    for record in zone(&name, before) {
        let (of, content) = match record {
            Record::Address(IpAddr::V4(address)) => (A, address.octets().to_vec()),
            Record::Address(IpAddr::V6(address)) => (AAAA, address.octets().to_vec()),
            Record::Alias(other) => (CNAME, write_name(&other)),
        };
        if of == kind || of == CNAME {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            answers.push(
                [&write_name(&name)[..], &of.to_be_bytes(), &[0, 1, 0, 0, 0, 0], &length, &content].concat(),
            );
        }
    }
    let count = u16::try_from(answers.len()).unwrap().to_be_bytes();
    let head = [&question[..2], &[0x81, 0x80, 0, 1], &count, &[0, 0, 0, 0]].concat();
    [head, question[12..end + 4].to_vec(), answers.concat()].concat()
}

fn write_name(name: &str) -> Vec<u8> {
    let labels =
        name.split('.').flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

fn read_name(packet: &[u8], mut at: usize) -> (String, usize) {
    let mut labels = Vec::new();
    while packet[at] != 0 {
        let length = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + length]).into_owned());
        at += length + 1;
    }
    (labels.join("."), at + 1)
}

/// Asks one server over UDP.
pub(crate) struct Resolver(SocketAddr);

impl Resolve for Resolver {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let (server, name) = (self.0, name.to_string());
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || {
                let mut answers = lookup(server, &name, A)?;
                answers.extend(lookup(server, &name, AAAA)?);
                Ok(answers)
            });
            asked.await.map_err(io::Error::other)?
        })
    }
}

fn lookup(server: SocketAddr, name: &str, kind: u16) -> io::Result<Vec<IpAddr>> {
    let mut name = name.to_owned();
    for _ in 0..MAX_ALIASES {
        let (addresses, alias) = ask(server, &name, kind)?;
        match alias {
            Some(alias) => name = alias,
            None => return Ok(addresses),
        }
    }
    Err(io::Error::other("the chain of aliases is too long"))
}

fn ask(server: SocketAddr, name: &str, kind: u16) -> io::Result<(Vec<IpAddr>, Option<String>)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.connect(server)?;
    let head = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    socket.send(&[&head[..], &write_name(name), &kind.to_be_bytes(), &[0, 1]].concat())?;
    let mut packet = [0; 8 << 10];
    let length = socket.recv(&mut packet)?;
    let packet = &packet[..length];
    let (_, end) = read_name(packet, 12);
    let mut at = end + 4;
    let (mut addresses, mut alias) = (Vec::new(), None);
    for _ in 0..u16::from_be_bytes([packet[6], packet[7]]) {
        let (_, end) = read_name(packet, at);
        let of = u16::from_be_bytes([packet[end], packet[end + 1]]);
        let length = usize::from(u16::from_be_bytes([packet[end + 8], packet[end + 9]]));
        let content = &packet[end + 10..end + 10 + length];
        match of {
            A => addresses.push(IpAddr::from(<[u8; 4]>::try_from(content).unwrap())),
            AAAA => addresses.push(IpAddr::from(<[u8; 16]>::try_from(content).unwrap())),
            _ => alias = Some(read_name(content, 0).0),
        }
        at = end + 10 + length;
    }
    Ok((addresses, alias))
}
