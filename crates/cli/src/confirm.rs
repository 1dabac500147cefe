//! A person confirms what was shown by repeating the code that was printed with it.

use std::io::{IsTerminal as _, stdin};

use herma_core::Digest;

use crate::failure::Failure;
use crate::screen::Screen;
use crate::typed;

/// The code for exactly what has this digest.
pub(crate) fn code_for(digest: &Digest) -> String {
    digest.hex().chars().take(6).collect()
}

/// Goes on only with the right code: the one that was given, or the one that a person types now.
pub(crate) fn confirm(code: &str, given: Option<&str>, screen: &Screen) -> Result<(), Failure> {
    confirm_with(code, |typed| typed.eq_ignore_ascii_case(code), given, screen)
}

/// Goes on only if a person types the code at a terminal: no flag and no pipe stands for it.
pub(crate) fn at_terminal(code: &str, screen: &Screen) -> Result<(), Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::bad_input("there is no terminal to type the code at")
            .hint("run it in a terminal: only a person confirms it"));
    }
    confirm(code, Some(&typed_code(code, screen)?), screen)
}

fn typed_code(code: &str, screen: &Screen) -> Result<String, Failure> {
    screen.note(format_args!("Type the code {code} to continue, anything else to stop:"));
    typed::line()
}

/// Whether a person types `yes`.
pub(crate) fn agrees(question: &str, screen: &Screen) -> Result<bool, Failure> {
    screen.note(question);
    Ok(typed::line()?.trim().eq_ignore_ascii_case("yes"))
}

/// The same for a code that can be typed in more than one way.
pub(crate) fn confirm_with(
    code: &str,
    is_code: impl Fn(&str) -> bool,
    given: Option<&str>,
    screen: &Screen,
) -> Result<(), Failure> {
    let typed = match given {
        Some(given) => given.to_owned(),
        None if stdin().is_terminal() && !screen.is_json() => typed_code(code, screen)?,
        None => {
            return Err(Failure::bad_input("there is no terminal to type the code at")
                .hint(format!("read what is shown; if you mean it, add `--code {code}`")));
        }
    };
    if is_code(typed.trim()) {
        Ok(())
    } else {
        Err(Failure::bad_input("that is not the code of what is shown; nothing was done")
            .hint("read what is shown again: it may have changed since the code was printed"))
    }
}
