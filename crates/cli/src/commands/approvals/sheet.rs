//! Prints an approval: the packet, its state, and the ruling.

use std::process::ExitCode;

use herma_api::ApprovalSheet;
use herma_core::approval::{Answer, Approval};
use herma_core::visible::visible_line;
use herma_harness::Installation;
use herma_trust::Packet;

use super::tone;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::ApprovalOutput;
use crate::screen::{Screen, Tone};

/// An approval with its packet.
pub(super) struct Sheet(ApprovalSheet);

impl Sheet {
    pub(super) fn new(installation: &Installation, approval: Approval) -> Result<Self, Failure> {
        Ok(Self(ApprovalSheet::new(installation, approval)?))
    }

    pub(super) fn approval(&self) -> &Approval {
        &self.0.approval
    }

    /// The packet; a request that cannot be shown cannot be granted.
    pub(super) fn packet(&self) -> Result<&Packet, Failure> {
        self.0.packet.as_ref().map_err(|why| {
            let id = self.0.approval.request.id;
            Failure::blocked(format!("approval {id} cannot be shown: {}", visible_line(&why.to_string())))
                .hint("ask for a new one with `herma approvals request`")
        })
    }

    /// The packet, for a person who is about to rule on it.
    pub(super) fn show(&self, screen: &Screen) {
        if screen.is_json() {
            return;
        }
        for line in self.0.lines() {
            screen.line(line);
        }
        screen.line("");
    }

    /// The packet as a text to copy, and nothing else.
    pub(super) fn copy(&self, screen: &Screen) -> Ended {
        if screen.is_json() {
            let copy_text = Some(self.packet()?.copy_text());
            screen.value(&ApprovalOutput { copy_text, ..self.0.output() })?;
        } else {
            screen.bytes(self.packet()?.copy_text().as_bytes());
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Everything, as the end of a command.
    pub(super) fn finish(&self, screen: &Screen) -> Ended {
        self.show(screen);
        self.conclude(screen)
    }

    /// Prints the state, as the end of a command that has shown the packet.
    pub(super) fn conclude(&self, screen: &Screen) -> Ended {
        if screen.is_json() {
            screen.value(&self.0.output())?;
            return Ok(ExitCode::SUCCESS);
        }
        let Approval { request, ruling, consumed_by, .. } = &self.0.approval;
        let state = screen.paint(tone(self.0.state), self.0.state.as_str());
        screen.line(format_args!("approval  {}", request.id));
        screen.line(format_args!("state     {state}, until {}", request.expires_at));
        if let Some(ruling) = ruling.as_ref().map(|signed| &signed.record) {
            let word = match ruling.answer {
                Answer::Granted => "granted",
                Answer::Denied => "denied",
            };
            let reason = visible_line(&ruling.reason);
            screen.line(format_args!("{word:9} by {} on {}: {reason}", ruling.approver, ruling.at));
        }
        if let Some(why) = &self.0.void {
            let void = screen.paint(Tone::Bad, "void     ");
            screen.line(format_args!("{void} {}", visible_line(why)));
        }
        if let Some(run) = consumed_by {
            screen.line(format_args!("used      by run {run}"));
        }
        if let Some(next) = self.0.next_step() {
            screen.line(format_args!("{} {next}", screen.paint(Tone::Bold, "next:")));
        }
        Ok(ExitCode::SUCCESS)
    }
}
