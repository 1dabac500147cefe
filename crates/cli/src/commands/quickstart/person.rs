//! The person at the terminal, or behind the flags.

use std::io::{IsTerminal as _, stdin};

use herma_core::approver::ApproverName;
use herma_core::secret::Secret;
use herma_quickstart::{Page, Person, Unanswered};
use herma_trust::{Approver, Approvers};

use crate::args;
use crate::confirm::confirm;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::is_cancelled;
use crate::screen::{Screen, safe_line};
use crate::typed;
use crate::unlock::{UnlockArgs, new_passphrase, unlock_among};

/// Answers by flags and files first, and by a terminal where one is there.
pub(super) struct AtTerminal<'a> {
    pub(super) args: &'a args::Quickstart,
    pub(super) environment: &'a Environment,
    pub(super) screen: &'a Screen,
}

impl AtTerminal<'_> {
    /// Whether anything but the code can be asked.
    fn can_ask(&self) -> bool {
        !self.args.yes && stdin().is_terminal() && !self.screen.is_json()
    }
}

impl Person for AtTerminal<'_> {
    fn new_passphrase(&self, name: &ApproverName) -> Result<Secret<String>, Unanswered> {
        let file = self.args.unlock.passphrase_file.as_deref();
        if file.is_none() {
            self.screen.line("");
            self.screen.line("Your signature lets agents and models in. A passphrase protects its key.");
        }
        new_passphrase(name, file, self.screen).map_err(unanswered)
    }

    fn unlock(&self, approvers: &Approvers, name: Option<&ApproverName>) -> Result<Approver, Unanswered> {
        let args =
            UnlockArgs { approver: name.cloned(), passphrase_file: self.args.unlock.passphrase_file.clone() };
        unlock_among(approvers, &args, self.environment, self.screen).map_err(unanswered)
    }

    fn credential(&self, provider: &str, sources: &str) -> Result<Secret<String>, Unanswered> {
        if !self.can_ask() {
            let what = format!("there is no API key for {provider}");
            return Err(Unanswered { is_interrupted: false, what, next_step: Some(sources.to_owned()) });
        }
        self.screen.line("");
        self.screen.note(format_args!("API key of {provider} (it is not shown; a subscription has none):"));
        let typed = typed::hidden_line().map_err(unanswered)?;
        match typed.trim() {
            "" => {
                let what = "no API key was typed".to_owned();
                Err(Unanswered { is_interrupted: false, what, next_step: Some(sources.to_owned()) })
            }
            key => Ok(Secret::new(key.to_owned())),
        }
    }

    fn model(&self, upstream: &str, models: &[String]) -> Result<String, Unanswered> {
        let first = models.first().cloned().unwrap_or_default();
        if !self.can_ask() {
            return Ok(first);
        }
        self.screen.line("");
        self.screen.line(format_args!("Models of {upstream} that your key reaches:"));
        for (number, model) in models.iter().enumerate() {
            self.screen.line(format_args!("  {}  {}", number + 1, safe_line(model)));
        }
        self.screen.note("Which one? A number, or Enter for 1:");
        let typed = typed::line().map_err(unanswered)?;
        let chosen = match typed.trim() {
            "" => Some(first),
            text => text
                .parse::<usize>()
                .ok()
                .and_then(|number| models.get(number.checked_sub(1)?).cloned())
                .or_else(|| models.iter().find(|model| *model == text).cloned()),
        };
        chosen.ok_or_else(|| Unanswered {
            is_interrupted: false,
            what: format!("`{}` is none of these models", typed.trim()),
            next_step: Some("type a number of the list, or name any model with --model NAME".to_owned()),
        })
    }

    fn confirm(&self, page: &Page) -> Result<(), Unanswered> {
        confirm(&page.code(), self.args.code.as_deref(), self.screen).map_err(unanswered)
    }
}

fn unanswered(failure: Failure) -> Unanswered {
    Unanswered { is_interrupted: is_cancelled(), what: failure.what, next_step: failure.next_step }
}
