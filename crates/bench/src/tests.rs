//! The upstream and the bare proxy as they are served, asked by the load generator.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::child::free_port;
use crate::client::{Front, Line};
use crate::error::BenchError;
use crate::plan::Plan;
use crate::usage::{Used, used_by};
use crate::wire::{MODEL, Shape, request};
use crate::{load, proxy, upstream};

/// Serves it in a thread of its own until the test process ends.
fn serve<I>(run: fn(I) -> std::io::Error, args: I) -> thread::JoinHandle<()>
where
    I: Iterator<Item = OsString> + Send + 'static,
{
    thread::spawn(move || drop(run(args)))
}

fn words(words: &[String]) -> std::vec::IntoIter<OsString> {
    words.iter().map(OsString::from).collect::<Vec<_>>().into_iter()
}

fn reachable(at: SocketAddr) -> Arc<Front> {
    let until = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(at).is_err() {
        assert!(Instant::now() < until, "nobody listens at {at}");
        thread::sleep(Duration::from_millis(5));
    }
    Arc::new(Front::new(at, "token"))
}

/// The upstream, and the bare proxy in front of it.
fn both() -> (Arc<Front>, Arc<Front>) {
    let (model, bare) = (free_port().unwrap(), free_port().unwrap());
    serve(upstream::run, words(&[model.port().to_string()]));
    serve(proxy::run, words(&[bare.port().to_string(), model.to_string()]));
    (reachable(model), reachable(bare))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn own_use() -> Result<Used, BenchError> {
    used_by(rustix::process::getpid().as_raw_nonzero().get()).map_err(BenchError::io("own"))
}

#[test]
fn the_bare_proxy_passes_on_what_the_upstream_says_byte_for_byte() {
    let (direct, bare) = both();
    runtime().block_on(async {
        for shape in [None, Some(Shape { chunks: 7, pace: Duration::ZERO })] {
            let body = request(MODEL, shape);
            let said = Line::open(&direct).await.unwrap().ask_for_text(&body).await.unwrap();
            let passed_on = Line::open(&bare).await.unwrap().ask_for_text(&body).await.unwrap();
            assert_eq!(said, passed_on);
            let events = said.windows(6).filter(|at| at == b"data: ").count();
            assert_eq!(events, shape.map_or(0, |shape| shape.chunks as usize + 3));
        }
    });
}

#[test]
fn a_paced_stream_takes_its_time_and_its_first_byte_does_not_wait_for_it() {
    let (_, bare) = both();
    let body = request(MODEL, Some(Shape { chunks: 5, pace: Duration::from_millis(60) }));
    runtime().block_on(async {
        let mut line = Line::open(&bare).await.unwrap();
        let started = Instant::now();
        let begun = line.begin(&body).await.unwrap();
        let first_byte = begun.first_byte;
        begun.finish().await.unwrap();
        assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
        assert!(first_byte < started.elapsed() / 2, "{first_byte:?}");
    });
}

#[test]
fn every_load_gives_a_figure() {
    let (direct, bare) = both();
    let plan = Plan { asking: Duration::from_millis(300), ..Plan::quick() };
    runtime().block_on(async {
        let throughput = load::throughput(&bare, &plan, &own_use).await.unwrap();
        assert!(throughput.rps > 10.0, "{}", throughput.rps);
        assert!(throughput.cpu_us_per_request > 0.0);
        let counts = |turns: load::Turns| (turns.direct.len(), turns.through[0].as_ref().unwrap().len());
        let through = [Arc::clone(&bare)];
        let answers = load::answers(&direct, &through, &plan).await.unwrap();
        assert_eq!(counts(answers), (plan.turns, plan.turns));
        let first_bytes = load::first_bytes(&direct, &through, &plan).await.unwrap();
        assert_eq!(counts(first_bytes), (plan.first_bytes, plan.first_bytes));
        load::chunks(&bare, &plan, plan.streams, &own_use).await.unwrap();
        let (resident, open) = load::open_streams(&bare, plan.open_streams, &own_use).await.unwrap();
        assert!(resident > 0);
        assert_eq!(open, plan.open_streams);
    });
}

#[test]
fn whoever_refuses_or_is_not_there_is_told_apart_from_one_who_answers() {
    let (direct, _) = both();
    let wrong = Arc::new(Front { path: http::Uri::from_static("/v1/nothing"), ..(*direct).clone() });
    let nobody = Arc::new(Front::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), "token"));
    runtime().block_on(async {
        let body = request(MODEL, None);
        let refused = Line::open(&wrong).await.unwrap().ask(&body).await.unwrap_err();
        assert!(matches!(refused, BenchError::Answer { status: 404, .. }), "{refused}");
        assert!(matches!(Line::open(&nobody).await, Err(BenchError::Io { .. })));
        let (_, open) = load::open_streams(&wrong, 3, &own_use).await.unwrap();
        assert_eq!(open, 0, "a refused stream is not open");
    });
}
