//! The body of the hidden `herma __launch`: sets what only a process can set for itself, then becomes the command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use herma_model::units::Bytes;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit, setsid,
};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__launch";

/// The exit code by which the hidden subcommand says that the command could not be started, as a shell does.
pub const NOT_STARTED: u8 = 127;

/// What the launcher sets before it becomes the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Die when this process dies, which is the one that starts the launcher.
    pub(crate) parent: Option<Pid>,
    /// Leave the terminal and the process group of the caller.
    pub(crate) new_session: bool,
    /// The address space of each process.
    pub(crate) memory: Option<Bytes>,
}

/// Becomes the command that `args` (what follows `herma __launch`) ask for; returns only if that fails.
pub fn run(args: impl Iterator<Item = OsString>) -> io::Error {
    match Launch::parse(args) {
        Ok((launch, command)) => match launch.apply() {
            Ok(()) => become_command(&command),
            Err(error) => error,
        },
        Err(what) => io::Error::new(io::ErrorKind::InvalidInput, what),
    }
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
        if let Some(Bytes(memory)) = self.memory {
            argv.extend(["--memory".into(), memory.to_string().into()]);
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
                Some("--memory") => launch.memory = Some(Bytes(number(args.next().as_deref())?)),
                _ => return Err(format!("unknown word `{}` before the command", word.display())),
            }
        }
    }

    fn apply(self) -> io::Result<()> {
        if let Some(parent) = self.parent {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above: then there is nobody left to die with.
            if getppid() != Some(parent) {
                return Err(io::Error::other("herma is gone, so the command is not started"));
            }
        }
        if self.new_session {
            setsid()?;
        }
        if let Some(Bytes(bytes)) = self.memory {
            let most = getrlimit(Resource::As).maximum.map_or(bytes, |hard| hard.min(bytes));
            setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(word: Option<&OsStr>) -> Result<T, String> {
    let text = word.and_then(OsStr::to_str).unwrap_or_default();
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = OsString> {
        text.split(' ').map(OsString::from)
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let launch = Launch { parent: Pid::from_raw(42), new_session: true, memory: Some(Bytes(1 << 30)) };
        let command = ["--memory".into(), "--".into(), "x".into()];
        let argv = launch.argv(Path::new("/herma/herma"), &command);
        assert_eq!(argv[..2], ["/herma/herma", "__launch"]);
        assert_eq!(Launch::parse(argv.into_iter().skip(2)), Ok((launch, command.to_vec())));
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        for text in [
            "true",
            "--memory x -- true",
            "--memory",
            "--die-with-parent -- true",
            "--loud -- true",
            "--die-with-parent 0 -- true",
        ] {
            assert!(Launch::parse(words(text)).is_err(), "{text}");
        }
        assert_eq!(run(words("--")).kind(), io::ErrorKind::InvalidInput);
    }
}
