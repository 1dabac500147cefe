//! herma's router, alone, with everything on: token, admission, budgets, prices, usage, audit.

use super::{Contender, Program, ROUTER, Site};
use crate::child::Recipe;
use crate::client::Front;

pub(super) const CONTENDER: Contender = Contender::quick(ROUTER, Program::Herma, prepare);

/// The token of the only client.
const TOKEN: &str = "6f1c2a9be05d4c7788e1f0a3b2c4d5e6-bench";

/// Limits that bind nothing here, so that every budget is kept and none is exhausted.
const CONFIG: &str = r#"state = "state"

[listen]
address = "LISTEN"

[limits]
max_connections = 8192

[upstreams.bench]
provider = "compatible"
url = "http://UPSTREAM/v1"
key = { file = "key" }
maximum_key = "max_tokens"

[models.bench]
chain = ["bench/bench"]

[prices]
"bench/bench" = { input = "0.05", output = "0.40", cached_input = "0.005" }

[budgets]
day = { requests = 1000000000, tokens = 1000000000000, usd = "1000000.00" }

[budgets.engines]
fake = { requests = 1000000000, tokens = 1000000000000, usd = "1000000.00" }

[clients.bench]
token = { file = "token" }
models = ["bench"]
engine = "fake"
budget = { requests = 1000000000, tokens = 1000000000000, usd = "1000000.00" }
"#;

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let config =
        CONFIG.replace("LISTEN", &site.listen.to_string()).replace("UPSTREAM", &site.upstream.to_string());
    let files = [("router.toml", config), ("key", "bench".to_owned()), ("token", TOKEN.to_owned())];
    let recipe = site.recipe(["router".into(), "--config".into(), site.file("router.toml")], files);
    (recipe, Front::new(site.listen, TOKEN))
}
