//! Which model: the one of the flag, or one that the credential reaches.

use herma_api::{ModelListError, reachable_models};
use herma_core::nearest;
use herma_router::upstream::ListingError;

use super::candidate::Candidate;
use super::credential::Found;
use crate::choices::ProviderChoice;
use crate::error::QuickstartError;
use crate::session::Session;

/// Parts of names of models that write no code.
const OTHER_KINDS: [&str; 14] = [
    "audio",
    "babbage",
    "dall-e",
    "davinci",
    "embed",
    "image",
    "moderation",
    "realtime",
    "search",
    "sora",
    "transcribe",
    "tts",
    "video",
    "whisper",
];
/// How many models a message names, and a person is shown.
const SHOWN: usize = 9;

/// The model's name at its provider.
pub(crate) fn choose(session: &Session<'_>, candidate: &Candidate) -> Result<String, QuickstartError> {
    let named = session.choices.model.as_ref();
    if let Some(name) = named
        && session.choices.dry_run
    {
        return Ok(name.clone());
    }
    if matches!(candidate.credential, Found::Later(_)) {
        return Err(QuickstartError::bad(
            "without its key herma cannot ask the provider which models there are",
            "name the model with --model NAME",
        ));
    }
    let models = match list(session, candidate) {
        Ok(models) => models,
        // Some servers list nothing. The questions to the model will show whether it is there.
        Err(ModelListError::Listing(ListingError::NoList(_) | ListingError::Malformed)) => {
            return named.cloned().ok_or_else(|| {
                QuickstartError::bad("the provider lists no models", "name the model with --model NAME")
            });
        }
        Err(ModelListError::Listing(error @ ListingError::KeyRefused(_))) => {
            return Err(QuickstartError::missing(error.to_string(), candidate.advice(session)));
        }
        Err(ModelListError::Listing(error @ ListingError::NotReached(_))) => {
            return Err(QuickstartError::missing(error.to_string(), unreachable(candidate)));
        }
        Err(error) => return Err(error.into()),
    };
    match named {
        Some(name) if models.contains(name) => Ok(name.clone()),
        Some(name) => Err(unknown(name, &models)),
        None if models.is_empty() => Err(QuickstartError::bad(
            "the provider lists no model that writes code",
            "name the model with --model NAME",
        )),
        None => pick(session, candidate, models),
    }
}

fn list(session: &Session<'_>, candidate: &Candidate) -> Result<Vec<String>, ModelListError> {
    let secrets = &*session.installation.settings().secrets.0;
    let listed = reachable_models(&candidate.config, &candidate.upstream, &candidate.lookup(secrets))?;
    Ok(listed.into_iter().map(|model| model.name).collect())
}

fn unreachable(candidate: &Candidate) -> String {
    match candidate.provider {
        Some(ProviderChoice::Compatible) => "start the server, or correct its address with --url".to_owned(),
        _ => "check the network of this machine: herma needs the provider's host".to_owned(),
    }
}

fn unknown(name: &str, models: &[String]) -> QuickstartError {
    let names: Vec<&str> = models.iter().map(String::as_str).collect();
    let near = nearest(name, &names).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = if names.len() > SHOWN { ", …" } else { "" };
    QuickstartError::bad(
        format!("the key reaches no model `{name}`"),
        format!("{near}it reaches: {shown}{more}"),
    )
}

/// Asks the person, unless a credential was typed already: then the choice is on the page that they confirm.
fn pick(
    session: &Session<'_>,
    candidate: &Candidate,
    models: Vec<String>,
) -> Result<String, QuickstartError> {
    let mut models: Vec<String> = models.into_iter().filter(|name| writes_code(name)).collect();
    let families = candidate.provider.map_or(&[][..], ProviderChoice::families);
    // Stable: newest first within a family.
    models.sort_by_key(|name| {
        families.iter().position(|family| name.starts_with(family)).unwrap_or(families.len())
    });
    models.truncate(SHOWN);
    match &models[..] {
        [] => Err(QuickstartError::bad(
            "the provider lists no model that writes code",
            "name the model with --model NAME",
        )),
        [first, ..] if models.len() == 1 || matches!(candidate.credential, Found::Kept { .. }) => {
            Ok(first.clone())
        }
        _ => Ok(session.person.model(&candidate.upstream, &models)?),
    }
}

fn writes_code(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !OTHER_KINDS.iter().any(|kind| name.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_model_is_answered_with_the_nearest_one() {
        let models = ["claude-sonnet-4-5".to_owned(), "claude-opus-4-1".to_owned()];
        let error = unknown("claude-sonet-4-5", &models);
        let QuickstartError::BadChoice { what, next_step } = error else { panic!("{error}") };
        assert_eq!(what, "the key reaches no model `claude-sonet-4-5`");
        assert_eq!(
            next_step,
            "did you mean `claude-sonnet-4-5`? it reaches: claude-sonnet-4-5, claude-opus-4-1"
        );
    }

    #[test]
    fn models_of_other_kinds_are_not_proposed() {
        for (name, is_proposed) in [
            ("gpt-5", true),
            ("gpt-5-codex", true),
            ("claude-sonnet-4-5", true),
            ("text-embedding-3-large", false),
            ("gpt-4o-mini-tts", false),
            ("gpt-realtime", false),
            ("dall-e-3", false),
        ] {
            assert_eq!(writes_code(name), is_proposed, "{name}");
        }
    }
}
