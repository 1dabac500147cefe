//! herma inside a run: it starts no run, and asks the herma outside for a child run.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use herma_api::{find_script, read_contract};
use herma_core::Report;
use herma_core::report::{Entry, Mode};
use herma_destination::{RUN_VARIABLE, inside_a_run};
use herma_git::{ObjectFormat, blob_id};
use herma_harness::{ChildAnswer, ChildAsk, HandedFile, Settings};

use crate::args::{self, Command, EgressArg};
use crate::commands::Ended;
use crate::commands::run::{run, show_result};
use crate::environment::{Environment, RunAround};
use crate::failure::Failure;
use crate::screen::{Screen, safe_line};

/// The most of an answer that is read: all that is handed over, and a report.
const MAX_ANSWER: u64 = 96 << 20;

/// Does what a herma inside a run does in place of a command that would start one; none for every other command.
pub(crate) fn in_place_of(command: &Command, environment: &Environment, screen: &Screen) -> Option<Ended> {
    let around = &environment.around;
    if !inside_a_run() && !around.named {
        return None;
    }
    match command {
        Command::Run(args) => Some(match around.socket.as_deref().filter(|socket| is_there(socket)) {
            Some(socket) => ask(args, socket, (around, &environment.settings), screen),
            // The gate blocks it, and leaves evidence where it can.
            None if inside_a_run() => run(args, environment, screen).map_err(|failure| match failure.code {
                Failure::INTERNAL => no_way_out(),
                _ => failure,
            }),
            None => Err(only_said_to_be()),
        }),
        Command::Demo(_)
        | Command::Do(_)
        | Command::Quickstart(_)
        | Command::Resume(_)
        | Command::Prove(_)
        | Command::Compare(_)
        | Command::Health(_)
        | Command::Matrix(_) => Some(Err(if inside_a_run() {
            Failure::blocked("this herma is inside a run, where none is started")
                .hint("start it from outside; inside, `herma run CONTRACT` asks for a child run")
        } else {
            only_said_to_be()
        })),
        Command::Apply(_) => Some(Err(for_people("apply"))),
        Command::Discard(_) => Some(Err(for_people("discard"))),
        Command::Gc(_) => Some(Err(for_people("gc"))),
        _ => None,
    }
}

/// Inside a run there is no person.
fn for_people(command: &str) -> Failure {
    Failure::blocked(format!(
        "this herma is inside a run, where `herma {command}` does not exist: it is a person's command"
    ))
    .hint(format!(
        "a person calls it at a terminal; where {RUN_VARIABLE} was left behind, `unset {RUN_VARIABLE}`"
    ))
}

fn is_there(socket: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    socket.metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

fn no_way_out() -> Failure {
    Failure::blocked("recursion_depth: this herma is inside a run and cannot reach the one outside")
        .hint("start the run from outside the sandbox")
}

/// Nothing but the variable says that this is a run: it may have been left behind, or be a lie. Nothing starts either way.
fn only_said_to_be() -> Failure {
    Failure::blocked(format!(
        "recursion_depth: the variable {RUN_VARIABLE} says that this herma is inside a run, and the one outside cannot be \
         reached"
    ))
    .hint(format!("where it was left behind, take it away: `unset {RUN_VARIABLE}`; inside a run start nothing"))
}

/// Asks for a child run, takes over its result if it passed, and prints its report.
fn ask(
    args: &args::Run,
    socket: &Path,
    (around, settings): (&RunAround, &Settings),
    screen: &Screen,
) -> Ended {
    if args.destination.is_some() || args.keep_workspace || matches!(args.egress, EgressArg::Learn) {
        return Err(Failure::bad_input("inside a run the one outside decides where a child runs")
            .hint("leave out --destination, --keep-workspace and --egress"));
    }
    if args.dry_run {
        return Err(Failure::bad_input("inside a run there is no dry run").hint("leave out --dry-run"));
    }
    let read = read_contract(&args.contract, settings)?;
    let script = args.script.as_deref().map(|name| find_script(&read.contract, name)).transpose()?;
    let ask = ChildAsk { contract: read.text, engine: args.engine.clone(), script };
    let answer = asked(ask, socket).map_err(|why| {
        Failure::blocked(format!("recursion_depth: the herma outside cannot be asked: {why}"))
            .hint("start the run from outside the sandbox")
    })?;
    let (report, files) = match answer {
        ChildAnswer::Refused(why) => {
            return Err(Failure::blocked(format!("the child run was refused: {why}"))
                .hint("docs/recursion.md says what a child may do"));
        }
        ChildAnswer::Ended { report, files } => (report, files),
    };
    let taken = if report.status.exit_code() == 0 { take_over(&report, files, around) } else { Ok(()) };
    if screen.is_json() {
        screen.value(&report)?;
    } else {
        show_result(&report, screen);
    }
    taken?;
    Ok(ExitCode::from(report.status.exit_code()))
}

fn asked(ask: ChildAsk, socket: &Path) -> io::Result<ChildAnswer> {
    let mut herma = UnixStream::connect(socket)?;
    herma.write_all(&ask.to_question()?)?;
    herma.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    herma.take(MAX_ANSWER).read_to_end(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Writes what the child made into the workspace, all of it or nothing where the workspace has changed meanwhile.
fn take_over(report: &Report, files: Option<Vec<HandedFile>>, around: &RunAround) -> Result<(), Failure> {
    let kept = |why: String| {
        Failure::blocked(format!("what the child made was not taken over: {why}"))
            .hint(format!("it is in the evidence of run {}", report.run_id))
    };
    let Some(workspace) = &around.workspace else {
        return Err(kept("the workspace is not known".to_owned()));
    };
    let Some(files) = files else { return Err(kept("it is too much".to_owned())) };
    for file in &files {
        if !is_still(&at(workspace, file), file.old.as_ref()) {
            return Err(kept(format!("`{}` has changed meanwhile", safe_line(&file.path.to_string()))));
        }
    }
    // Deletions first: a path may have been a file and be a directory now.
    let (gone, there): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.new.is_none());
    for file in gone.into_iter().chain(there) {
        put(&at(workspace, file), file)
            .map_err(|why| kept(format!("`{}`: {why}", safe_line(&file.path.to_string()))))?;
    }
    Ok(())
}

fn at(workspace: &Path, file: &HandedFile) -> std::path::PathBuf {
    workspace.join(OsStr::from_bytes(file.path.as_bytes()))
}

/// Whether a file is what the child began with.
fn is_still(path: &Path, old: Option<&Entry>) -> bool {
    let meta = fs::symlink_metadata(path).ok();
    let Some(old) = old else { return meta.is_none() };
    let content = match meta {
        Some(meta) if meta.is_symlink() => fs::read_link(path).map(|to| to.into_os_string().into_vec()),
        Some(meta) if meta.is_file() => fs::read(path),
        _ => return false,
    };
    let id = content.and_then(|content| {
        blob_id(ObjectFormat::of_id(&old.id), content.len().try_into().unwrap_or(u64::MAX), &content[..])
    });
    id.is_ok_and(|id| id == old.id)
}

fn put(path: &Path, file: &HandedFile) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        fs::remove_file(path)?;
    }
    let (Some(new), Some(content)) = (&file.new, &file.content) else { return Ok(()) };
    let content = STANDARD.decode(content).map_err(io::Error::other)?;
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    if new.mode == Mode::Symlink {
        return std::os::unix::fs::symlink(OsStr::from_bytes(&content), path);
    }
    fs::write(path, content)?;
    let mode = if new.mode == Mode::Executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
