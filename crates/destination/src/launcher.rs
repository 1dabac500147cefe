//! The hidden `herma __launch`: applies the settings that only a process can apply to itself, then executes the
//! command. A command of herma itself runs in place: a second exec would cost every run milliseconds.

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
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

use self::landlock::{Landlock, LandlockAbi};
use crate::forward::Forwarder;
use crate::limits::{Held, HeldBy};
use crate::loopback_relay::PortHandover;

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__launch";

/// The exit code for a command that could not be executed, as in a shell.
pub const NOT_STARTED: u8 = 127;

const PARENT_GONE: &str = "herma is gone, so the command is not started";

/// The settings that the launcher applies before it executes the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaunchPlan {
    /// Die when this process dies, which is the parent of the launcher.
    pub(crate) parent: Option<Pid>,
    /// Leave the terminal and the process group of the caller.
    pub(crate) new_session: bool,
    /// How loopback ports reach the outside.
    pub(crate) relay: Option<PortRelay>,
    /// The limits of each process.
    pub(crate) rlimits: Vec<Held>,
    /// The Landlock ruleset.
    pub(crate) landlock: Option<Landlock>,
    /// The pipe to report why the command was not executed: an exit code could be the command's own.
    pub(crate) report: Option<i32>,
    /// The pipe on which the launcher waits for the start signal, after everything else is applied.
    pub(crate) start_fd: Option<i32>,
}

/// How loopback ports inside are connected to sockets outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortRelay {
    /// The listening sockets are passed to herma, outside.
    PortHandover(PortHandover),
    /// A forwarder process is started, inside.
    Forwarder(Forwarder),
}

/// Executes the command in `args`, which follow `herma __launch`. Returns only on failure, or with the arguments of
/// one of herma's own subcommands, which the caller runs in place. `own` is `argv[0]` of this process.
pub fn run(own: &OsStr, args: impl Iterator<Item = OsString>) -> io::Result<Vec<OsString>> {
    let (launch, mut command) =
        LaunchPlan::parse(args).map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    let (report, start_fd, hidden) = (launch.report, launch.start_fd, launch.hidden_files());
    let begun = launch.apply().and_then(|()| start_fd.map_or(Ok(()), await_start)).and_then(|()| {
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

/// Waits for the start signal. herma holds the write end as long as it lives: where it is closed, nothing would
/// ever end the command, so it is not started.
fn await_start(start_fd: i32) -> io::Result<()> {
    let mut pipe = File::open(format!("/proc/self/fd/{start_fd}"))?;
    let heard = pipe.read_exact(&mut [0]);
    let mut other_end = [PollFd::new(&pipe, PollFlags::empty())];
    poll(&mut other_end, Some(&Timespec::default()))?;
    if heard.is_err() || !other_end[0].revents().is_empty() {
        return Err(io::Error::other(PARENT_GONE));
    }
    Ok(())
}

/// Whether the command is a hidden subcommand of herma.
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

impl LaunchPlan {
    /// The argv that starts `command` through the launcher.
    pub(crate) fn argv(&self, herma: &Path, command: &[OsString]) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![herma.into(), SUBCOMMAND.into()];
        if let Some(parent) = self.parent {
            argv.extend(["--die-with-parent".into(), parent.as_raw_nonzero().to_string().into()]);
        }
        if self.new_session {
            argv.push("--new-session".into());
        }
        match &self.relay {
            None => {}
            Some(PortRelay::Forwarder(forward)) => {
                argv.push("--forward".into());
                argv.extend(forward.words());
            }
            Some(PortRelay::PortHandover(PortHandover { ports, channel })) => {
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
        for (word, number) in [("--report", self.report), ("--start-fd", self.start_fd)] {
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
                Some("--forward") => launch.relay = Some(PortRelay::Forwarder(Forwarder::parse(&mut args)?)),
                Some("--hand-over") => {
                    let channel = number(args.next().as_deref())?;
                    let ports = args.next().unwrap_or_default();
                    let ports = ports.to_str().unwrap_or_default().split(',');
                    let ports = ports.map(|port| number(Some(OsStr::new(port)))).collect::<Result<_, _>>()?;
                    launch.relay = Some(PortRelay::PortHandover(PortHandover { ports, channel }));
                }
                Some("--limit") => {
                    let word = args.next().unwrap_or_default();
                    let name = word.to_str().and_then(rlimits::named);
                    let name = name.ok_or_else(|| format!("`{}` is no limit", word.display()))?;
                    let value = number(args.next().as_deref())?;
                    launch.rlimits.push(Held::new(name, value, HeldBy::Rlimit));
                }
                Some("--landlock") => {
                    let version = LandlockAbi::numbered(number(args.next().as_deref())?);
                    let version = version.ok_or("no such version of Landlock")?;
                    launch.landlock = Some(Landlock { version, write: Vec::new() });
                }
                Some("--report") => launch.report = Some(number(args.next().as_deref())?),
                Some("--start-fd") => launch.start_fd = Some(number(args.next().as_deref())?),
                Some("--write") => {
                    let place = args.next().ok_or("--write wants a place")?;
                    let landlock = launch.landlock.as_mut().ok_or("--write comes after --landlock")?;
                    landlock.write.push(place.into());
                }
                _ => return Err(format!("unknown word `{}` before the command", word.display())),
            }
        }
    }

    /// The descriptors that the command must not inherit.
    fn hidden_files(&self) -> Vec<i32> {
        let channel = match &self.relay {
            Some(PortRelay::PortHandover(PortHandover { channel, .. })) => Some(*channel),
            _ => None,
        };
        self.report.into_iter().chain(self.start_fd).chain(channel).collect()
    }

    fn apply(self) -> io::Result<()> {
        let hidden = self.hidden_files();
        if !hidden.is_empty() {
            close_at_exec(&hidden)?;
        }
        if let Some(parent) = self.parent {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above.
            if getppid() != Some(parent) {
                return Err(io::Error::other(PARENT_GONE));
            }
        }
        if self.new_session {
            setsid()?;
        }
        match &self.relay {
            None => {}
            // Before Landlock: a sandboxed command can neither signal nor trace processes outside of its domain.
            Some(PortRelay::Forwarder(forward)) => forward.start()?,
            Some(PortRelay::PortHandover(ports)) => ports.send()?,
        }
        if !self.rlimits.is_empty() {
            rlimits::no_core_dumps()?;
        }
        for Held { name, value, .. } in self.rlimits {
            rlimits::set(name, value)?;
        }
        self.landlock.map_or(Ok(()), |landlock| landlock.enforce())
    }
}

/// Sets close-on-exec on these descriptors. The crate takes a list of descriptors to keep, so all others are
/// listed.
fn close_at_exec(hidden: &[i32]) -> io::Result<()> {
    let mut others = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        others.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    others.retain(|other| !hidden.contains(other));
    others.sort_unstable();
    close_fds::set_fds_cloexec_threadsafe(3, &others);
    // The crate reports no errors, so check the flags.
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
    fn arguments_survive_a_round_trip() {
        let launch = LaunchPlan {
            parent: Pid::from_raw(42),
            new_session: true,
            relay: Some(PortRelay::Forwarder(Forwarder {
                run: "r".into(),
                router: Some("/herma/router.sock".into()),
                egress: None,
            })),
            rlimits: vec![Held::new(LimitName::MemoryOfEach, 1 << 30, HeldBy::Rlimit)],
            landlock: Some(Landlock {
                version: LandlockAbi::numbered(3).unwrap(),
                write: vec!["/workspace".into(), "/tmp".into()],
            }),
            report: Some(7),
            start_fd: Some(8),
        };
        let command = ["--limit".into(), "--".into(), "x".into()];
        let argv = launch.argv(Path::new("/herma/herma"), &command);
        assert_eq!(argv[..2], ["/herma/herma", "__launch"]);
        assert_eq!(LaunchPlan::parse(argv.into_iter().skip(2)), Ok((launch.clone(), command.to_vec())));

        let relay = Some(PortRelay::PortHandover(PortHandover { ports: vec![61801, 61802], channel: 9 }));
        let launch = LaunchPlan { relay, ..launch };
        let argv = launch.argv(Path::new("/herma/herma"), &command);
        assert_eq!(LaunchPlan::parse(argv.into_iter().skip(2)), Ok((launch, command.to_vec())));
    }

    #[test]
    fn unknown_arguments_are_rejected() {
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
            assert!(LaunchPlan::parse(words(text)).is_err(), "{text}");
        }
        let launched = |text| run(OsStr::new("herma"), words(text));
        assert_eq!(launched("--").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_launcher_starts_nothing_without_a_signal_or_after_herma_died() {
        let waits = |word: &[u8], stays: bool| {
            let (inside, mut outside) = io::pipe().unwrap();
            outside.write_all(word).unwrap();
            let outside = stays.then_some(outside);
            let went = await_start(inside.as_raw_fd());
            drop(outside);
            went
        };
        assert!(waits(b".", true).is_ok());
        assert!(waits(b".", false).is_err() && waits(b"", false).is_err());
    }

    #[test]
    fn a_command_of_herma_itself_runs_in_place() {
        let launched = |text| run(OsStr::new("/herma/herma"), words(text));
        assert_eq!(launched("-- /herma/herma __probe plan").unwrap(), ["__probe", "plan"]);
        for other in [
            "-- /nowhere/herma __probe plan",
            "-- /herma/herma",
            "--start-fd 99 -- /herma/herma __probe plan",
        ] {
            assert!(launched(other).is_err(), "{other}");
        }
    }
}
