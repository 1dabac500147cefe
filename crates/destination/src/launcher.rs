//! The body of the hidden `herma __launch`: sets what only a process can set for itself, then becomes the command. Where that
//! is herma as well, it goes on as that: starting its program a second time would cost every run milliseconds.

pub(crate) mod landlock;
pub(crate) mod rlimits;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit, setsid,
};

use self::landlock::{Landlock, Version};
use crate::doors::HandOver;
use crate::forward::Forward;
use crate::limits::{Held, HeldBy};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__launch";

/// The exit code by which the hidden subcommand says that the command could not be started, as a shell does.
pub const NOT_STARTED: u8 = 127;

const GONE: &str = "herma is gone, so the command is not started";

/// What the launcher sets before it becomes the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Die when this process dies, which is the one that starts the launcher.
    pub(crate) parent: Option<Pid>,
    /// Leave the terminal and the process group of the caller.
    pub(crate) new_session: bool,
    /// The ways out.
    pub(crate) way_out: Option<WayOut>,
    /// The limits of each process.
    pub(crate) rlimits: Vec<Held>,
    /// The second wall.
    pub(crate) landlock: Option<Landlock>,
    /// The open pipe by which the launcher says why there is no command: its exit code could be the command's own.
    pub(crate) report: Option<i32>,
    /// The open pipe at which it waits, with everything set, for herma's word.
    pub(crate) gate: Option<i32>,
}

/// How the ports of the inside's own loopback come to lead somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WayOut {
    /// They are handed to herma, outside.
    HandOver(HandOver),
    /// A forwarder is started, inside.
    Forward(Forward),
}

/// Becomes the command that `args` (what follows `herma __launch`) ask for; returns only if that fails, or with the arguments
/// of a command of herma's own, which the caller goes on as. `own` is the name that this process was started by.
pub fn run(own: &OsStr, args: impl Iterator<Item = OsString>) -> io::Result<Vec<OsString>> {
    let (launch, mut command) =
        Launch::parse(args).map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    let (report, gate, hidden) = (launch.report, launch.gate, launch.hidden_files());
    let begun = launch.apply().and_then(|()| gate.map_or(Ok(()), await_word)).and_then(|()| {
        if is_own(own, &command) {
            hidden.into_iter().try_for_each(nix::unistd::close)?;
            return Ok(command.split_off(1));
        }
        Err(become_command(&command))
    });
    if let (Err(error), Some(number)) = (&begun, report) {
        let _ = fs::write(format!("/proc/self/fd/{number}"), error.to_string());
    }
    begun
}

/// Waits until herma says that the command may start. It holds the other end of this pipe as long as it lives: where that is
/// closed there is nobody who would end the command, and it is not started.
fn await_word(gate: i32) -> io::Result<()> {
    let mut pipe = File::open(format!("/proc/self/fd/{gate}"))?;
    let heard = pipe.read_exact(&mut [0]);
    let mut other_end = [PollFd::new(&pipe, PollFlags::empty())];
    poll(&mut other_end, Some(&Timespec::default()))?;
    if heard.is_err() || !other_end[0].revents().is_empty() {
        return Err(io::Error::other(GONE));
    }
    Ok(())
}

/// Whether the command is a hidden one of herma's own.
fn is_own(own: &OsStr, command: &[OsString]) -> bool {
    matches!(command, [program, word, ..] if program == own && word.as_bytes().starts_with(b"__"))
}

fn become_command(command: &[OsString]) -> io::Error {
    let Some((program, args)) = command.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "there is no command to launch");
    };
    let error = Command::new(program).args(args).exec();
    io::Error::new(error.kind(), format!("cannot start {}: {error}", program.display()))
}

impl Launch {
    /// The command line that starts `command` through the launcher.
    pub(crate) fn argv(&self, herma: &Path, command: &[OsString]) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![herma.into(), SUBCOMMAND.into()];
        if let Some(parent) = self.parent {
            argv.extend(["--die-with-parent".into(), parent.as_raw_nonzero().to_string().into()]);
        }
        if self.new_session {
            argv.push("--new-session".into());
        }
        match &self.way_out {
            None => {}
            Some(WayOut::Forward(forward)) => {
                argv.push("--forward".into());
                argv.extend(forward.words());
            }
            Some(WayOut::HandOver(HandOver { ports, channel })) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                argv.extend(["--hand-over".into(), channel.to_string().into(), ports.join(",").into()]);
            }
        }
        for Held { name, value, .. } in &self.rlimits {
            if let Some(word) = rlimits::word(*name) {
                argv.extend(["--limit".into(), word.into(), value.to_string().into()]);
            }
        }
        if let Some(landlock) = &self.landlock {
            argv.extend(["--landlock".into(), landlock.version.number().to_string().into()]);
            for place in &landlock.write {
                argv.extend(["--write".into(), place.into()]);
            }
        }
        for (word, number) in [("--report", self.report), ("--gate", self.gate)] {
            if let Some(number) = number {
                argv.extend([word.into(), number.to_string().into()]);
            }
        }
        argv.push("--".into());
        argv.extend_from_slice(command);
        argv
    }

    fn parse(mut args: impl Iterator<Item = OsString>) -> Result<(Self, Vec<OsString>), String> {
        let mut launch = Self::default();
        loop {
            let word = args.next().ok_or("the command is missing: expected `--` and the command")?;
            match word.to_str() {
                Some("--") => return Ok((launch, args.collect())),
                Some("--die-with-parent") => {
                    let parent: i32 = number(args.next().as_deref())?;
                    launch.parent =
                        Some(Pid::from_raw(parent).filter(|_| parent > 0).ok_or("no such parent")?);
                }
                Some("--new-session") => launch.new_session = true,
                Some("--forward") => launch.way_out = Some(WayOut::Forward(Forward::parse(&mut args)?)),
                Some("--hand-over") => {
                    let channel = number(args.next().as_deref())?;
                    let ports = args.next().unwrap_or_default();
                    let ports = ports.to_str().unwrap_or_default().split(',');
                    let ports = ports.map(|port| number(Some(OsStr::new(port)))).collect::<Result<_, _>>()?;
                    launch.way_out = Some(WayOut::HandOver(HandOver { ports, channel }));
                }
                Some("--limit") => {
                    let word = args.next().unwrap_or_default();
                    let name = word.to_str().and_then(rlimits::named);
                    let name = name.ok_or_else(|| format!("`{}` is no limit", word.display()))?;
                    let value = number(args.next().as_deref())?;
                    launch.rlimits.push(Held::new(name, value, HeldBy::Rlimit));
                }
                Some("--landlock") => {
                    let version = Version::numbered(number(args.next().as_deref())?);
                    let version = version.ok_or("no such version of Landlock")?;
                    launch.landlock = Some(Landlock { version, write: Vec::new() });
                }
                Some("--report") => launch.report = Some(number(args.next().as_deref())?),
                Some("--gate") => launch.gate = Some(number(args.next().as_deref())?),
                Some("--write") => {
                    let place = args.next().ok_or("--write wants a place")?;
                    let landlock = launch.landlock.as_mut().ok_or("--write comes after --landlock")?;
                    landlock.write.push(place.into());
                }
                _ => return Err(format!("unknown word `{}` before the command", word.display())),
            }
        }
    }

    /// The open files that are not for the command.
    fn hidden_files(&self) -> Vec<i32> {
        let channel = match &self.way_out {
            Some(WayOut::HandOver(HandOver { channel, .. })) => Some(*channel),
            _ => None,
        };
        self.report.into_iter().chain(self.gate).chain(channel).collect()
    }

    fn apply(self) -> io::Result<()> {
        let hidden = self.hidden_files();
        if !hidden.is_empty() {
            close_at_exec(&hidden)?;
        }
        if let Some(parent) = self.parent {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above: then there is nobody left to die with.
            if getppid() != Some(parent) {
                return Err(io::Error::other(GONE));
            }
        }
        if self.new_session {
            setsid()?;
        }
        match &self.way_out {
            None => {}
            // Before the walls: the command can neither signal nor trace who stands outside of its own.
            Some(WayOut::Forward(forward)) => forward.start()?,
            Some(WayOut::HandOver(ports)) => ports.perform()?,
        }
        if !self.rlimits.is_empty() {
            // What a dying process would write of its memory is nothing that anybody asked for.
            setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        }
        for Held { name, value, .. } in self.rlimits {
            rlimits::set(name, value)?;
        }
        self.landlock.map_or(Ok(()), |landlock| landlock.enforce())
    }
}

/// Keeps open files from the command. There is no word for these alone, so all others are named.
fn close_at_exec(hidden: &[i32]) -> io::Result<()> {
    let mut others = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        others.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    others.retain(|other| !hidden.contains(other));
    others.sort_unstable();
    close_fds::set_fds_cloexec_threadsafe(3, &others);
    // It says nothing of what came of it.
    hidden.iter().try_for_each(|number| {
        let shown = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
        let flags = shown.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        let closes = flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0);
        closes.then_some(()).ok_or_else(|| io::Error::other("a file of herma's own would stay open"))
    })
}

fn number<T: std::str::FromStr>(word: Option<&OsStr>) -> Result<T, String> {
    let text = word.and_then(OsStr::to_str).unwrap_or_default();
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;
    use crate::limits::LimitName;

    fn words(text: &str) -> impl Iterator<Item = OsString> {
        text.split(' ').map(OsString::from)
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let launch = Launch {
            parent: Pid::from_raw(42),
            new_session: true,
            way_out: Some(WayOut::Forward(Forward {
                run: "r".into(),
                router: Some("/herma/router.sock".into()),
                egress: None,
            })),
            rlimits: vec![Held::new(LimitName::MemoryOfEach, 1 << 30, HeldBy::Rlimit)],
            landlock: Some(Landlock {
                version: Version::numbered(3).unwrap(),
                write: vec!["/workspace".into(), "/tmp".into()],
            }),
            report: Some(7),
            gate: Some(8),
        };
        let command = ["--limit".into(), "--".into(), "x".into()];
        let argv = launch.argv(Path::new("/herma/herma"), &command);
        assert_eq!(argv[..2], ["/herma/herma", "__launch"]);
        assert_eq!(Launch::parse(argv.into_iter().skip(2)), Ok((launch.clone(), command.to_vec())));

        let way_out = Some(WayOut::HandOver(HandOver { ports: vec![61801, 61802], channel: 9 }));
        let launch = Launch { way_out, ..launch };
        let argv = launch.argv(Path::new("/herma/herma"), &command);
        assert_eq!(Launch::parse(argv.into_iter().skip(2)), Ok((launch, command.to_vec())));
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        for text in [
            "true",
            "--limit as x -- true",
            "--limit much 1 -- true",
            "--limit",
            "--die-with-parent -- true",
            "--loud -- true",
            "--die-with-parent 0 -- true",
            "--landlock 0 -- true",
            "--landlock 99 -- true",
            "--write /tmp -- true",
            "--forward r -- true",
            "--hand-over x 1 -- true",
            "--hand-over 9 1,70000 -- true",
            "--hand-over 9 -- true",
        ] {
            assert!(Launch::parse(words(text)).is_err(), "{text}");
        }
        let launched = |text| run(OsStr::new("herma"), words(text));
        assert_eq!(launched("--").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn it_starts_nothing_without_a_word_or_where_nobody_is_left_who_gave_it() {
        let waits = |word: &[u8], stays: bool| {
            let (inside, mut outside) = io::pipe().unwrap();
            outside.write_all(word).unwrap();
            let outside = stays.then_some(outside);
            let went = await_word(inside.as_raw_fd());
            drop(outside);
            went
        };
        assert!(waits(b".", true).is_ok());
        assert!(waits(b".", false).is_err() && waits(b"", false).is_err());
    }

    #[test]
    fn as_herma_itself_it_only_goes_on() {
        let launched = |text| run(OsStr::new("/herma/herma"), words(text));
        assert_eq!(launched("-- /herma/herma __probe plan").unwrap(), ["__probe", "plan"]);
        for other in
            ["-- /nowhere/herma __probe plan", "-- /herma/herma", "--gate 99 -- /herma/herma __probe plan"]
        {
            assert!(launched(other).is_err(), "{other}");
        }
    }
}
