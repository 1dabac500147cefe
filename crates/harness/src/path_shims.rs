//! PATH shims: programs first in the engine's PATH that record calls that reach out.
//!
//! PATH shims detect, they do not prevent. Each is one small script under the name of a real program: it records a call that would
//! reach out, and runs the real one. A process that calls the real one by its path, or removes the record, is not seen, and
//! gains nothing: the sandbox is what holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use herma_core::contract::Action;
use herma_core::event::ToolEvaluated;
use herma_destination::{DestinationCapabilities, JobPaths, Mount, Tool};
use herma_rules::outward::{self, Telltale};
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::error::Stop;
use crate::file_reading::read_start;
use crate::gates::Ready;
use crate::journal::StepResult;

/// Where the scripts are inside.
const PLACE: &str = "/herma-witness";
/// The record, in the engine's directory.
const RECORD: &str = "attempts";
/// The maximum that is read. Attempts beyond it are unknown, like those that were never recorded.
const MAX_BYTES: u64 = 1 << 20;
/// How many different calls have an event.
const MAX_EVENTS: usize = 200;

/// Programs that are good for nothing else: they are watched for also where they are not installed. Any other one must
/// not seem to be there when it is not: test suites ask, and do without it.
const ALWAYS: &str = "gh glab hub twine";
/// Where the system has its programs.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

const SCRIPT: &str = r#"#!/bin/sh
# Written by herma: records that this was called, and runs it. It is a witness and does not confine.
set -f
name=${0##*/} real= seen=
IFS=:
for dir in $PATH; do
    if [ "$dir" != PLACE ] && [ -f "$dir/$name" ] && [ -x "$dir/$name" ]; then
        real=$dir/$name
        break
    fi
done
unset IFS
case $name in ALWAYS) seen=1 ;; esac
for word; do
    case $name:$word in WORDS) seen=1 ;; esac
done
if [ -z "$seen" ] && [ -n "$real" ]; then
    exec "$real" "$@"
fi
if [ -n "$seen" ]; then
    { printf '%s\0' '
tried' "$$" "$name" "$@" >>RECORD; } 2>/dev/null
fi
if [ -z "$real" ]; then
    echo "$name: not found" >&2
    exit 127
fi
"$real" "$@"
status=$?
if [ "$status" -eq 0 ]; then
    { printf '%s\0' '
done' "$$" >>RECORD; } 2>/dev/null
fi
exit "$status"
"#;

/// Writes the script under every name, before anything of the run is started.
pub(crate) fn plant(ctx: &RunContext<'_>, ready: &Ready) -> Result<(), Stop> {
    if !ctx.plan.destination.confines() {
        return Ok(());
    }
    let dir = dir(ctx);
    DirBuilder::new().mode(0o755).create(&dir)?;
    let paths = JobPaths::new(ctx.dirs.workspace()).with_engine_dir(ctx.dirs.engine());
    let Some(engine) = ready.destination.view(&paths).engine_dir else { return Ok(()) };
    let mut programs = outward::programs();
    programs.retain(|name, _| is_there(ctx, ready, name));
    // One file for all, where the file system knows links: what is made for every run is as little as can be.
    let mut names = programs.keys().map(|name| dir.join(name));
    let Some(first) = names.next() else { return Ok(()) };
    write(&first, &script(&programs, &engine))?;
    names.try_for_each(|name| fs::hard_link(&first, &name).or_else(|_| fs::copy(&first, &name).map(drop)))?;
    Ok(())
}

/// Whether the program exists inside, as far as it is known from here: the content of an image is not.
fn is_there(ctx: &RunContext<'_>, ready: &Ready, name: &str) -> bool {
    if ALWAYS.split(' ').any(|always| always == name) {
        return true;
    }
    if !DestinationCapabilities::of(ctx.plan.destination).shows_host_system() {
        return name == "git";
    }
    let dirs = ready.tools.search_path.iter().map(PathBuf::as_path).chain(SYSTEM.split(':').map(Path::new));
    std::env::join_paths(dirs).is_ok_and(|path| Tool::find(name, &path).is_ok())
}

fn script(programs: &BTreeMap<&str, Telltale>, engine: &Path) -> String {
    let always = programs.iter().filter(|(_, telltale)| telltale.always).map(|(name, _)| (*name).to_owned());
    let told = programs
        .iter()
        .flat_map(|(name, telltale)| telltale.words.iter().map(move |word| format!("{name}:{word}")));
    SCRIPT
        .replace("WORDS", &any_of(told))
        .replace("ALWAYS", &any_of(always))
        .replace("PLACE", PLACE)
        .replace("RECORD", &engine.join(RECORD).to_string_lossy())
}

/// A pattern of the shell that each of these is, and nothing else.
fn any_of(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "''".to_owned() } else { words.join("|") }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

fn dir(ctx: &RunContext<'_>) -> PathBuf {
    ctx.dirs.root().join("witness")
}

/// The directory as a mount, where there is one.
pub(crate) fn mount(ctx: &RunContext<'_>) -> Option<Mount> {
    let host = dir(ctx);
    host.is_dir().then(|| Mount { host, inside: PLACE.into() })
}

/// The directory that precedes all others in the engine's PATH.
pub(crate) fn path(ctx: &RunContext<'_>) -> Option<PathBuf> {
    mount(ctx).map(|mount| mount.inside)
}

/// The outward calls that PATH shims saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ShimResults {
    /// The forbidden actions that were attempted.
    pub(crate) attempted: Vec<Action>,
}

impl StepResult for ShimResults {
    const KEY: &'static str = "shims";
}

/// Reads the record of the shims, once no process of the engine is alive and its egress proxy has ended. `got_out` says whether
/// the proxy let any connection out.
pub(crate) fn read(ctx: &RunContext<'_>, got_out: bool, found: &mut Option<ShimResults>) -> Result<(), Stop> {
    // Without a record nothing was tried, or the process that tried removed it.
    let Ok(bytes) = read_start(&ctx.dirs.engine().join(RECORD), MAX_BYTES) else { return Ok(()) };
    let results = found.insert(ShimResults::default());
    let mut events = 0;
    for (call, went_well) in tried(&bytes) {
        let actions = outward::reaches_out(&call);
        if actions.is_empty() {
            continue;
        }
        // A call that succeeded while nothing got out reached a place inside, as in the tests of a program that pushes.
        let stayed_inside = went_well && !got_out;
        let of_terms = |terms| herma_rules::actions::forbidden(terms, &actions);
        let forbidden: BTreeSet<_> =
            if stayed_inside { BTreeSet::new() } else { ctx.effective_rules().flat_map(of_terms).collect() };
        for action in &forbidden {
            if !results.attempted.contains(action) {
                results.attempted.push(*action);
            }
        }
        events += 1;
        if events > MAX_EVENTS {
            continue;
        }
        let (tool, command) = ("witness".to_owned(), call.join(" "));
        ctx.record(ToolEvaluated { tool, command, actions, forbidden, ..ToolEvaluated::default() })?;
    }
    Ok(ctx.journal.append(results)?)
}

/// Each call that was tried, once, and whether it went well every time.
fn tried(record: &[u8]) -> Vec<(Vec<String>, bool)> {
    let mut calls: Vec<(Vec<String>, bool)> = Vec::new();
    let mut by_process: BTreeMap<String, usize> = BTreeMap::new();
    let record = record.strip_suffix(b"\0").unwrap_or(record);
    let words: Vec<String> =
        record.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let begins = |word: &String| word == "\ntried" || word == "\ndone";
    let mut rest = words.as_slice();
    while let [first, process, after @ ..] = rest {
        let end = after.iter().position(begins).unwrap_or(after.len());
        let (call, next) = after.split_at(end);
        rest = next;
        if first == "\ntried" {
            by_process.insert(process.clone(), calls.len());
            calls.push((call.to_vec(), false));
        } else if let Some((_, went_well)) = by_process.remove(process).and_then(|at| calls.get_mut(at)) {
            *went_well = true;
        }
    }
    let mut once: BTreeMap<Vec<String>, bool> = BTreeMap::new();
    for (call, went_well) in calls {
        let well = once.entry(call).or_insert(true);
        *well = *well && went_well;
    }
    once.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(record: &str) -> Vec<(String, bool)> {
        tried(record.as_bytes()).into_iter().map(|(call, well)| (call.join(" "), well)).collect()
    }

    #[test]
    fn a_call_counts_once_and_went_well_only_if_it_did_so_each_time() {
        let record = "\ntried\x007\0git\0push\0\ntried\x008\0gh\0pr\0create\0\ndone\x007\0\
                      \ntried\x009\0git\0push\0\ntried\x007\0npm\0publish\0\ndone\x007\0";
        let found = [("gh pr create", false), ("git push", false), ("npm publish", true)];
        assert_eq!(calls(record), found.map(|(call, well)| (call.to_owned(), well)));
    }

    #[test]
    fn a_record_that_somebody_wrote_into_is_read_as_far_as_it_can_be() {
        for broken in ["", "\0", "x", "\ntried", "\ntried\x001", "\ndone\x001\0", "\0\0\0\0"] {
            assert!(
                calls(broken)
                    .iter()
                    .all(|(call, _)| outward::reaches_out(std::slice::from_ref(call)).is_empty())
            );
        }
        assert_eq!(calls("\ntried\x001\0git\0push"), [("git push".to_owned(), false)]);
    }

    #[test]
    fn nothing_of_the_script_is_left_open() {
        let none = BTreeMap::new();
        for programs in [&outward::programs(), &none] {
            let text = script(programs, Path::new("/engine"));
            for hole in ["WORDS", "ALWAYS", "PLACE", "RECORD"] {
                assert!(!text.contains(hole), "{text}");
            }
        }
    }
}
