//! `herma compare`: the same contracts under the same gates on each lane, and what the bundles show.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use herma_api::{ReadContract, make_last_component, read_contract};
use herma_core::Status;
use herma_core::comparison::{Comparison, LaneRun};
use herma_core::contract::ContractId;
use herma_core::engine::EngineName;
use herma_harness::{Progress, Unwatched};
use herma_ladder::{
    CompareError, ComparisonOrder, Comparisons, ContractOnLanes, Turns, compare as compare_lanes,
    comparison_markdown,
};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::progress::watcher;
use crate::screen::Screen;

pub(crate) fn compare(args: &args::Compare, environment: &Environment, screen: &Screen) -> Ended {
    let read = |named: &String| {
        let ReadContract { contract, text, dir } = read_contract(named, &environment.settings)?;
        Ok(ContractOnLanes { contract, text, dir })
    };
    let order = ComparisonOrder {
        contracts: args.contract.iter().map(read).collect::<Result<_, Failure>>()?,
        engines: args.engines.clone(),
        repetitions: args.runs,
    };
    if let Some(dir) = &args.output {
        // Before the runs, which take long.
        make_last_component("the directory of --output", dir, 0o777)?;
    }
    let installation = open(environment, screen)?;
    listen(&installation.cancellation, screen)?;
    let comparison = compare_lanes(&installation, &order, &Shown(screen)).map_err(failure)?;
    let comparisons = Comparisons::of(&installation);
    let kept = comparisons.keep(comparison).map_err(|e| {
        Failure::internal(e)
            .hint("free space or make herma's home writable; the bundles of the runs are kept")
    })?;
    let comparison = &kept.record;
    let files = comparisons.files(comparison.id);
    if let Some(dir) = &args.output {
        for file in &files {
            let copy = dir.join(file.file_name().unwrap_or_default());
            copy_new(file, &copy).map_err(|e| cannot_write(&copy, &e))?;
        }
    }
    if screen.is_json() {
        screen.value(comparison)?;
    } else {
        screen.bytes(comparison_markdown(comparison).as_bytes());
        for file in files {
            screen.note(format_args!("kept as {}", file.display()));
        }
    }
    Ok(ExitCode::from(exit_code(comparison)))
}

/// Copies a file without overwriting: a directory that a person named keeps its files.
fn copy_new(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut new = File::create_new(to)?;
    std::io::copy(&mut File::open(from)?, &mut new).map(drop)
}

/// 0 if every lane ran and holds its own, 3 if none could run, else 1.
fn exit_code(comparison: &Comparison) -> u8 {
    let holds_its_own = |engine: &EngineName| comparison.holds_its_own(engine);
    if comparison.ran().next().is_none() {
        Status::Blocked.exit_code()
    } else if comparison.lanes.iter().all(|lane| holds_its_own(&lane.engine)) {
        Status::Pass.exit_code()
    } else {
        Status::Fail.exit_code()
    }
}

/// A line for each run, and a moving one while it is under way.
struct Shown<'a>(&'a Screen);

impl Turns for Shown<'_> {
    fn begins(&self, _: &EngineName, _: &ContractId) -> Box<dyn Progress + '_> {
        if self.0.is_live() { watcher(self.0, None) } else { Box::new(Unwatched) }
    }

    fn ended(&self, engine: &EngineName, run: &LaneRun) {
        if !self.0.is_json() {
            self.0.note(format_args!(
                "{engine}: {} {} in {} ms, run {}",
                run.contract_id,
                self.0.status(run.status),
                run.duration_ms,
                run.run_id
            ));
        }
    }
}

fn failure(error: CompareError) -> Failure {
    match error {
        CompareError::Order(error) => error.into(),
        CompareError::Bundle(..) => {
            Failure::internal(error).hint("`herma verify RUN` says what is broken; compare again")
        }
        CompareError::Interrupted(_) => Failure::blocked(error)
            .hint("compare again; the runs so far are kept, and `herma runs` lists them"),
        CompareError::TargetMoved(_) => Failure::internal(error)
            .hint("the runs so far are kept as ordinary runs; `herma runs` lists them"),
        _ => Failure::bad_input(error),
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("{}: cannot be written: {error}", path.display()))
        .hint("name a directory that can be written with --output")
}
