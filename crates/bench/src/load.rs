//! The loads that a contender is put under.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::{Front, Line};
use crate::error::BenchError;
use crate::figures::number;
use crate::plan::Plan;
use crate::usage::Used;
use crate::wire::{self, Shape};

/// A short stream: enough to see whether its first byte is held back.
const SHORT: Shape = Shape { chunks: 4, pace: Duration::from_millis(2) };
/// A stream that is open until it is dropped.
const HELD: Shape = Shape { chunks: 1_000, pace: Duration::from_secs(5) };
/// So long one answer may take.
const ANSWERING: Duration = Duration::from_secs(10);
/// So long streams may take to open.
const OPENING: Duration = Duration::from_mins(1);
/// So long they are open before memory is read.
const HOLDING: Duration = Duration::from_secs(1);

/// Reads the CPU time and memory used so far, at the start and the end of a load.
pub(crate) type Meter<'a> = &'a dyn Fn() -> Result<Used, BenchError>;

/// Many connections that ask again and again.
pub(crate) struct Throughput {
    pub(crate) rps: f64,
    pub(crate) cpu_us_per_request: f64,
}

/// Asks on many connections at once for some time.
pub(crate) async fn throughput(
    front: &Arc<Front>,
    plan: &Plan,
    meter: Meter<'_>,
) -> Result<Throughput, BenchError> {
    let body = wire::request(&front.model, None);
    // One request on each connection before anything counts: connections stand and caches are warm.
    let mut lines = Vec::new();
    for _ in 0..plan.connections {
        let mut line = Line::open(front).await?;
        line.ask(&body).await?;
        lines.push(line);
    }
    let before = meter()?;
    let started = Instant::now();
    let mut asking = JoinSet::new();
    for mut line in lines {
        let (body, asking_for) = (body.clone(), plan.asking);
        asking.spawn(async move {
            let mut answered = 0_u64;
            while started.elapsed() < asking_for {
                line.ask(&body).await?;
                answered += 1;
            }
            Ok::<u64, BenchError>(answered)
        });
    }
    let mut answered = 0;
    for each in asking.join_all().await {
        answered += each?;
    }
    let (elapsed, cpu) = (started.elapsed(), meter()?.cpu.saturating_sub(before.cpu));
    let answered = number(answered.max(1));
    Ok(Throughput {
        rps: answered / elapsed.as_secs_f64(),
        cpu_us_per_request: cpu.as_secs_f64() * 1e6 / answered,
    })
}

/// Waits until what a load left behind is done: records that are brought to the disk are no part of the next figure.
pub(crate) async fn settle(plan: &Plan) -> Result<(), BenchError> {
    tokio::time::sleep(plan.settling).await;
    Ok(())
}

/// How long those took who were asked in turns.
pub(crate) struct Turns {
    pub(crate) direct: Vec<Duration>,
    /// Through each contender.
    pub(crate) through: Vec<Result<Vec<Duration>, BenchError>>,
}

/// How long a request takes, directly and through each of them, one connection each.
pub(crate) async fn answers(
    direct: &Arc<Front>,
    through: &[Arc<Front>],
    plan: &Plan,
) -> Result<Turns, BenchError> {
    let ask = async |line: &mut Line, body: &Bytes| line.ask(body).await;
    in_turns(direct, through, plan, (None, plan.turns), ask).await
}

/// The same for the first byte of streams.
pub(crate) async fn first_bytes(
    direct: &Arc<Front>,
    through: &[Arc<Front>],
    plan: &Plan,
) -> Result<Turns, BenchError> {
    let ask = async |line: &mut Line, body: &Bytes| {
        let begun = line.begin(body).await?;
        let first_byte = begun.first_byte;
        begun.finish().await.map(|()| first_byte)
    };
    in_turns(direct, through, plan, (Some(SHORT), plan.first_bytes), ask).await
}

/// Asks everybody once, and again, so that each sees the same machine: on which core the system wakes whom changes by the
/// second, and is more than what most contenders add. Each turn begins with another contender. One that fails gets no more requests.
async fn in_turns(
    direct: &Arc<Front>,
    through: &[Arc<Front>],
    plan: &Plan,
    (shape, turns): (Option<Shape>, usize),
    ask: impl AsyncFn(&mut Line, &Bytes) -> Result<Duration, BenchError>,
) -> Result<Turns, BenchError> {
    let mut asked = Vec::new();
    for front in [direct].into_iter().chain(through) {
        let line = Line::open(front).await;
        asked.push(line.map(|line| (line, wire::request(&front.model, shape), Vec::new())));
    }
    let all = asked.len();
    let until = Instant::now() + plan.taking_turns * u32::try_from(all).unwrap_or(1);
    for turn in 0..=turns {
        for place in (0..all).map(|place| (turn + place) % all) {
            let Ok((line, body, times)) = &mut asked[place] else { continue };
            match timeout(ANSWERING, ask(line, body)).await.unwrap_or(Err(BenchError::TooLong(ANSWERING))) {
                // The first of each pays for the connection.
                Ok(time) if turn > 0 => times.push(time),
                Ok(_) => {}
                Err(error) => asked[place] = Err(error),
            }
        }
        if turn > 0 && Instant::now() > until {
            break;
        }
    }
    let mut times = asked.into_iter().map(|one| one.map(|(_, _, times)| times));
    let direct = times.next().unwrap_or_else(|| Ok(Vec::new()))?;
    Ok(Turns { direct, through: times.collect() })
}

/// CPU milliseconds for 1,000 chunks of `streams` paced streams at once.
pub(crate) async fn chunks(
    front: &Arc<Front>,
    plan: &Plan,
    streams: usize,
    meter: Meter<'_>,
) -> Result<f64, BenchError> {
    let warm = wire::request(&front.model, None);
    let body = wire::request(&front.model, Some(Shape { chunks: plan.chunks, pace: plan.pace }));
    let mut lines = Vec::new();
    for _ in 0..streams {
        let mut line = Line::open(front).await?;
        line.ask(&warm).await?;
        lines.push(line);
    }
    let before = meter()?;
    let mut reading = JoinSet::new();
    for mut line in lines {
        let body = body.clone();
        reading.spawn(async move { line.begin(&body).await?.finish().await });
    }
    for each in reading.join_all().await {
        each?;
    }
    let cpu = meter()?.cpu.saturating_sub(before.cpu);
    let chunks = number(u64::from(plan.chunks) * streams as u64);
    Ok(cpu.as_secs_f64() * 1e3 / (chunks / 1e3))
}

/// The memory that is resident while that many streams are open, and how many of them did open.
pub(crate) async fn open_streams(
    front: &Arc<Front>,
    wanted: usize,
    meter: Meter<'_>,
) -> Result<(u64, usize), BenchError> {
    let body = wire::request(&front.model, Some(HELD));
    let mut opening = JoinSet::new();
    for _ in 0..wanted {
        let (front, body) = (Arc::clone(front), body.clone());
        opening.spawn(async move {
            let mut line = Line::open(&front).await?;
            let begun = line.begin(&body).await?;
            Ok::<_, BenchError>((line, begun))
        });
    }
    let mut open = Vec::new();
    let until = Instant::now() + OPENING;
    while let Ok(Some(joined)) =
        timeout(until.saturating_duration_since(Instant::now()), opening.join_next()).await
    {
        // One that is refused is missing in the count, which is shown.
        open.extend(joined.ok().and_then(Result::ok));
    }
    tokio::time::sleep(HOLDING).await;
    let used = meter()?;
    Ok((used.resident, open.len()))
}
