//! The first step: the person whose signature counts.

use herma_api::output::{QuickstartState, QuickstartStepName};
use herma_core::approver::{ApproverName, Custody};

use crate::error::QuickstartError;
use crate::session::Session;

/// The name of the first approver if the user's own name is none.
const NAME: &str = "me";

/// Makes the first approver. An approver who exists is asked for the passphrase only if something has to be signed.
pub(crate) fn approver(session: &mut Session<'_>) -> Result<(), QuickstartError> {
    let step = QuickstartStepName::Approver;
    let approvers = session.installation.approvers();
    let known = approvers.all()?;
    let trusted: Vec<_> = known.iter().filter(|known| known.trusted().is_ok()).collect();
    if let Some(first) = trusted.first() {
        let named = session.choices.approver.as_ref();
        if let Some(named) = named
            && !trusted.iter().any(|known| known.record.name == *named)
        {
            return Err(QuickstartError::bad(
                format!("{named} is no approver of this installation"),
                format!("leave --approver out, or make one: herma approver init {named}"),
            ));
        }
        let detail = named.unwrap_or(&first.record.name).to_string();
        session.done(step, QuickstartState::Current, vec![detail], None);
        return Ok(());
    }
    if !known.is_empty() {
        return Err(QuickstartError::missing(
            "no approver of this installation is trusted any more",
            "`herma approver list` says why; without one nothing can be signed in this home",
        ));
    }
    let name = match &session.choices.approver {
        Some(name) => name.clone(),
        None => name_of(&session.choices.user)?,
    };
    let command = Some(format!("herma approver init {name}"));
    if session.choices.dry_run {
        let detail = vec![format!("{name} becomes the first approver")];
        session.done(step, QuickstartState::Planned, detail, command);
        return Ok(());
    }
    let passphrase = session.person.new_passphrase(&name)?;
    let now = session.installation.now();
    approvers.init(&name, Custody::Passphrase, Some(&passphrase), None, now)?;
    session.approver = Some(approvers.unlock(&name, &passphrase)?);
    let detail = vec![format!("{name}; the key is encrypted with the passphrase, which cannot be recovered")];
    session.done(step, QuickstartState::Done, detail, command);
    Ok(())
}

/// The user's name as an approver's, without the characters that it cannot have.
fn name_of(user: &str) -> Result<ApproverName, QuickstartError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let name: String = user.to_lowercase().chars().filter(|c| plain(*c)).take(64).collect();
    let name = if name.starts_with(|c: char| c.is_ascii_lowercase()) { name } else { NAME.to_owned() };
    name.parse().map_err(|why: String| QuickstartError::bad(why, "name yourself with --approver NAME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_becomes_an_approver_by_the_nearest_name() {
        for (user, name) in [
            ("alice", "alice"),
            ("Alice Smith", "alicesmith"),
            ("j.doe", "jdoe"),
            ("0", "me"),
            ("", "me"),
            ("Ünal", "nal"),
        ] {
            assert_eq!(name_of(user).unwrap().as_str(), name, "{user}");
        }
    }
}
