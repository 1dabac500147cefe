//! `LiteLLM` with one worker and no database.

use std::ffi::OsString;
use std::time::Duration;

use super::{Contender, LLM_GATEWAYS, Program, Site};
use crate::child::Recipe;
use crate::client::Front;
use crate::wire::MODEL;

pub(super) const CONTENDER: Contender = Contender {
    starts_at_once: false,
    patience: Duration::from_mins(2),
    most_streams: Some(2),
    ..Contender::quick(LLM_GATEWAYS[0], Program::InPath("litellm"), prepare)
};

/// The token of its clients.
const KEY: &str = "sk-6f1c2a9be05d4c7788e1f0a3b2c4d5e6";

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let config = format!(
        "model_list:\n- model_name: {MODEL}\n  litellm_params: {{ model: openai/{MODEL}, api_base: \"http://{}/v1\", api_key: bench }}\n",
        site.upstream
    );
    let args: [OsString; 10] = [
        "--config".into(),
        site.file("config.yaml"),
        "--host".into(),
        "127.0.0.1".into(),
        "--port".into(),
        site.listen.port().to_string().into(),
        "--num_workers".into(),
        "1".into(),
        "--telemetry".into(),
        "False".into(),
    ];
    let mut recipe = site.recipe(args, [("config.yaml", config)]);
    // It would otherwise look for its price table on the network; and it does not start without a key of its own.
    recipe.env.push(("LITELLM_LOCAL_MODEL_COST_MAP".to_owned(), "True".to_owned()));
    recipe.env.push(("LITELLM_MASTER_KEY".to_owned(), KEY.to_owned()));
    (recipe, Front::new(site.listen, KEY))
}
