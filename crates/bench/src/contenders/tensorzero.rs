//! `TensorZero`'s gateway without its database.

use http::Uri;

use super::{Contender, LLM_GATEWAYS, Program, Site};
use crate::child::Recipe;
use crate::client::Front;
use crate::wire::MODEL;

pub(super) const CONTENDER: Contender = Contender {
    starts_at_once: false,
    ..Contender::quick(LLM_GATEWAYS[2], Program::InPath("tensorzero-gateway"), prepare)
};

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let config = format!(
        "[gateway]\nbind_address = \"{}\"\nobservability.enabled = false\n[models.{MODEL}]\nrouting = [\"upstream\"]\n\
         [models.{MODEL}.providers.upstream]\ntype = \"openai\"\nmodel_name = \"{MODEL}\"\n\
         api_base = \"http://{}/v1\"\napi_key_location = \"none\"\n",
        site.listen, site.upstream
    );
    let recipe = site.recipe(["--config-file".into(), site.file("config.toml")], [("config.toml", config)]);
    let mut front = Front::new(site.listen, "bench");
    front.path = Uri::from_static("/openai/v1/chat/completions");
    front.model = format!("tensorzero::model_name::{MODEL}");
    (recipe, front)
}
