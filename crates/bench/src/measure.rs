//! The whole measurement: everybody is started, everybody gets a turn in every round, medians count.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use herma_core::clock::Clock;
use herma_destination::Host;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::child::{Child, Nursery, Recipe, free_port};
use crate::client::{Front, Line};
use crate::contenders::{self, CONTENDERS, Contender, DIRECT, Programs, Site};
use crate::error::BenchError;
use crate::figures::{LeftOut, Row, Samples, added_us};
use crate::interrupt::Interruptible;
use crate::load;
use crate::plan::Plan;
use crate::targets::{Target, judge};
use crate::usage::Used;
use crate::wire;

/// No load takes this long unless somebody hangs.
const PATIENCE: Duration = Duration::from_mins(3);
/// So long a first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// Another process can take a free port before the contender does; it then gets another one.
const TRIES: usize = 3;

/// The order of a measurement.
pub(crate) struct Order<'a> {
    /// The herma that is measured.
    pub herma: PathBuf,
    /// This program, which also serves as the upstream and the bare proxy.
    pub program: PathBuf,
    /// Where programs are looked up.
    pub search_path: OsString,
    /// A directory of its own.
    pub scratch: PathBuf,
    /// How much.
    pub plan: Plan,
    /// The clock.
    pub clock: &'a dyn Clock,
}

/// The machine, which every figure but a ratio depends on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// Cores that herma may use. Clients, contender and upstream share them.
    pub cores: usize,
    /// How many tasks wanted to run, on average over the minute before the start. Near 0 is a quiet machine.
    pub load_before: Option<f64>,
}

/// The measurements.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// Where.
    pub machine: Machine,
    /// How many rounds the medians are taken over.
    pub rounds: u32,
    /// One row for each contender.
    pub rows: Vec<Row>,
    /// The contenders that were not measured, with the reason.
    pub left_out: Vec<LeftOut>,
    /// The targets of the router.
    pub targets: Vec<Target>,
}

/// A contender under way.
struct Running<'a> {
    contender: &'a Contender,
    child: Child,
    front: Arc<Front>,
    samples: Samples,
    gone_wrong: Option<BenchError>,
}

/// Measures, and names each step to `progress`.
pub(crate) fn measure(order: &Order<'_>, progress: &dyn Fn(&str)) -> Result<Measured, BenchError> {
    let machine = Machine::now();
    let streams = order.plan.open_streams.min(allow_many_files());
    let runtime = Interruptible::new()?;
    let bench = Bench {
        order,
        runtime,
        nursery: Nursery { host: Host::new(order.herma.clone()), clock: order.clock },
    };
    let (_upstream, direct) = bench.upstream()?;
    let (mut running, mut left_out) = bench.start_all(direct.address, progress);
    bench.runtime.check()?;
    let mut beside = Samples::default();
    for round in 0..order.plan.rounds {
        progress(&format!("round {} of {}", round + 1, order.plan.rounds));
        let nothing = || Ok(Used::default());
        beside.rps.push(bench.runtime.run(PATIENCE, load::throughput(&direct, &order.plan, &nothing))?.rps);
        // Each round begins with somebody else, so that nobody always comes after the same one.
        let first = round as usize % running.len().max(1);
        running.rotate_left(first);
        for one in &mut running {
            one.turn(|one| bench.load(one));
        }
        bench.runtime.run(PATIENCE, load::settle(&order.plan))?;
        // A slow contender would delay the others, and gets turns of its own.
        let (quick, slow): (Vec<_>, Vec<_>) =
            running.iter_mut().partition(|one| one.contender.starts_at_once);
        bench.latencies(&direct, quick)?;
        for one in slow {
            bench.latencies(&direct, vec![one])?;
        }
        for one in &mut running {
            one.turn(|one| bench.chunks(one));
        }
        running.rotate_right(first);
    }
    progress("memory with open streams");
    for one in &mut running {
        one.turn(|one| {
            let meter = || one.child.used();
            one.samples.open =
                Some(bench.runtime.run(PATIENCE, load::open_streams(&one.front, streams, &meter))?);
            Ok(())
        });
    }
    bench.runtime.check()?;
    let mut rows = vec![beside.row(DIRECT)];
    for one in running {
        match one.gone_wrong {
            None => rows.push(one.samples.row(one.contender.name)),
            Some(error) => {
                left_out.push(LeftOut { name: one.contender.name.to_owned(), why: error.to_string() });
            }
        }
    }
    let targets = judge(&rows);
    Ok(Measured { machine, rounds: order.plan.rounds, rows, left_out, targets })
}

impl Machine {
    /// This one, as it is now.
    pub(crate) fn now() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load_average(),
        }
    }
}

struct Bench<'a> {
    order: &'a Order<'a>,
    runtime: Interruptible,
    nursery: Nursery<'a>,
}

impl Bench<'_> {
    fn upstream(&self) -> Result<(Child, Arc<Front>), BenchError> {
        let patience = Duration::from_secs(10);
        self.start("upstream", patience, |listen, _| contenders::upstream(&self.order.program, listen))
    }

    /// Starts everybody who is installed.
    fn start_all(
        &self,
        upstream: SocketAddr,
        progress: &dyn Fn(&str),
    ) -> (Vec<Running<'static>>, Vec<LeftOut>) {
        let (mut running, mut left_out) = (Vec::new(), Vec::new());
        let Order { herma, program: own, search_path, .. } = self.order;
        let programs = Programs { herma, own, search_path };
        for contender in CONTENDERS {
            let started = if self.order.plan.only_what_starts_at_once && !contender.starts_at_once {
                Err("it takes too long to start for a quick look".to_owned())
            } else {
                contender.find(&programs).and_then(|program| {
                    progress(&format!("the start of {}", contender.name));
                    let prepare = |listen, dir: &PathBuf| {
                        (contender.prepare)(&Site { program: &program, dir, listen, upstream })
                    };
                    self.start(contender.name, contender.patience, prepare).map_err(|error| error.to_string())
                })
            };
            match started {
                Ok((child, front)) => {
                    running.push(Running {
                        contender,
                        child,
                        front,
                        samples: Samples::default(),
                        gone_wrong: None,
                    });
                }
                Err(why) => left_out.push(LeftOut { name: contender.name.to_owned(), why }),
            }
        }
        (running, left_out)
    }

    /// Starts one and waits until it passes on what the upstream says, whole and as a stream.
    fn start(
        &self,
        name: &str,
        patience: Duration,
        prepare: impl Fn(SocketAddr, &PathBuf) -> (Recipe, Front),
    ) -> Result<(Child, Arc<Front>), BenchError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let dir = self.order.scratch.join(format!("{}-{tried}", name.replace(' ', "-")));
            let (recipe, front) = prepare(free_port()?, &dir);
            let front = Arc::new(front);
            let mut child = self.nursery.start(&dir, recipe)?;
            match child.wait_until(patience, || self.runtime.run(FIRST_ANSWER, answers(&front))) {
                Ok(()) => return Ok((child, front)),
                Err(BenchError::NotUp(said)) if tried < TRIES && said.contains("in use") => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Many connections at once.
    fn load(&self, one: &mut Running<'_>) -> Result<(), BenchError> {
        let meter = || one.child.used();
        let throughput =
            self.runtime.run(PATIENCE, load::throughput(&one.front, &self.order.plan, &meter))?;
        one.samples.rps.push(throughput.rps);
        one.samples.cpu_us_per_request.push(throughput.cpu_us_per_request);
        Ok(())
    }

    /// One connection each, directly and through everybody in turns.
    fn latencies(&self, direct: &Arc<Front>, mut ones: Vec<&mut Running<'_>>) -> Result<(), BenchError> {
        ones.retain(|one| one.gone_wrong.is_none());
        let fronts: Vec<_> = ones.iter().map(|one| Arc::clone(&one.front)).collect();
        let plan = &self.order.plan;
        let answers = self.runtime.run(PATIENCE, load::answers(direct, &fronts, plan))?;
        for (one, times) in ones.iter_mut().zip(answers.through) {
            one.turn(|one| {
                let times = times?;
                one.samples.added_p50_us.push(added_us(&answers.direct, &times, 0.5));
                one.samples.added_p99_us.push(added_us(&answers.direct, &times, 0.99));
                Ok(())
            });
        }
        let first_bytes = self.runtime.run(PATIENCE, load::first_bytes(direct, &fronts, plan))?;
        for (one, times) in ones.iter_mut().zip(first_bytes.through) {
            one.turn(|one| {
                one.samples.added_first_byte_us.push(added_us(&first_bytes.direct, &times?, 0.5));
                Ok(())
            });
        }
        Ok(())
    }

    /// Streams whose chunks are counted.
    fn chunks(&self, one: &mut Running<'_>) -> Result<(), BenchError> {
        let (plan, meter) = (&self.order.plan, || one.child.used());
        let streams = one.contender.most_streams.map_or(plan.streams, |most| most.min(plan.streams));
        let chunks = self.runtime.run(PATIENCE, load::chunks(&one.front, plan, streams, &meter))?;
        one.samples.cpu_ms_per_1k_chunks.push(chunks);
        Ok(())
    }
}

impl Running<'_> {
    /// Gives it its turn, unless something went wrong with it before.
    fn turn(&mut self, work: impl FnOnce(&mut Self) -> Result<(), BenchError>) {
        if self.gone_wrong.is_none() {
            self.gone_wrong = work(self).err();
        }
    }
}

/// Whether what comes back is what the upstream says.
async fn answers(front: &Arc<Front>) -> Result<(), BenchError> {
    let mut line = Line::open(front).await?;
    let text = line.ask_for_text(&wire::request(&front.model, None)).await?;
    if memchr::memmem::find(&text, b"completion_tokens").is_none() {
        return Err(BenchError::Answer { status: 200, said: String::from_utf8_lossy(&text).into_owned() });
    }
    let stream = wire::Shape { chunks: 2, pace: Duration::ZERO };
    line.begin(&wire::request(&front.model, Some(stream))).await?.finish().await
}

/// Lets this process and its children open as many files as the system allows them, and says for how many streams at once
/// that is enough: a proxy has two connections for each.
fn allow_many_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.or(limit.current);
    // Where it is refused, the old limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: limit.maximum });
    getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |files| usize::try_from(files / 2).unwrap_or(0).saturating_sub(128))
}

fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
