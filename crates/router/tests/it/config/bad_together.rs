//! Contradictions between parts of a configuration.

use super::kit::{LEAST, errors, errors_of_parts, parse};

const HTTP: &str = "[upstreams.openai]\nprovider = \"openai\"\nkey = { env = \"A\" }\n\
                    [upstreams.anthropic]\nprovider = \"anthropic\"\nkey = { env = \"B\" }\n\
                    [upstreams.local]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1:8000\"\n";

fn client(name: &str, rest: &str) -> String {
    format!("[clients.{name}]\nmodels = [\"small\"]\n{rest}\n")
}

#[test]
fn chains_end_at_upstreams_that_are_there() {
    insta::assert_snapshot!(errors_of_parts(&[
        "[models.b]\nchain = []\n",
        "[models.b]\nchain = [\"scirpt/b\", \"elsewhere/b\"]\n",
    ]));
    insta::assert_snapshot!(errors(&[
        "state = \"a\"\n[listen]\naddress = \"127.0.0.1:1\"\n[models.b]\nchain = [\"openai/b\"]\n",
    ]));
    // One that is there and cannot be read is not said to be missing.
    let broken = format!("{LEAST}[upstreams.b]\nprovider = \"openai\"\n[models.b]\nchain = [\"b/b\"]\n");
    assert_eq!(parse(&broken).unwrap_err().problems().len(), 1);
}

#[test]
fn chains_whose_links_share_no_api_are_refused() {
    let model = |chain: &str| format!("{LEAST}{HTTP}[models.b]\nchain = {chain}\n");
    for chain in [
        "[\"openai/b\", \"local/b\", \"script/b\"]",
        "[\"anthropic/b\", \"local/b\", \"script/b\"]",
        "[\"script/b\", \"anthropic/b\"]",
    ] {
        assert!(parse(&model(chain)).is_ok(), "{chain}");
    }
    for chain in
        ["[\"openai/b\", \"anthropic/b\"]", "[\"local/b\", \"openai/b\", \"script/b\", \"anthropic/b\"]"]
    {
        let error = parse(&model(chain)).unwrap_err().to_string();
        assert!(error.contains("`models.b.chain` has upstreams that share no API"), "{error}");
    }
    let part = format!("{HTTP}[models.b]\nchain = [\"openai/b\", \"anthropic/b\"]\n");
    insta::assert_snapshot!(errors_of_parts(&[&part]));
}

#[test]
fn names_that_could_be_taken_for_each_other_are_refused() {
    insta::assert_snapshot!(errors_of_parts(&[
        "[models.Small]\nchain = [\"script/b\"]\n",
        "[models.b]\nchain = [\"script/b\"]\naliases = [\"small\"]\n",
        "[models.b]\nchain = [\"script/b\"]\naliases = [\"b\", \"B\"]\n",
        "[models.b]\nchain = [\"script/b\"]\naliases = [\"x\"]\n[models.c]\nchain = [\"script/c\"]\naliases = [\"X\"]\n",
    ]));
}

#[test]
fn clients_name_models_that_are_there_and_have_tokens_of_their_own() {
    insta::assert_snapshot!(errors_of_parts(&[
        "[clients.a]\ntoken = { env = \"A\" }\nmodels = [\"smal\", \"large\", \"Small\"]\n",
        "[models.b]\nchain = [\"script/b\"]\naliases = [\"x\"]\n[clients.a]\ntoken = { env = \"A\" }\nmodels = [\"x\"]\n",
        &format!("{}{}", client("a", "token = { env = \"A\" }"), client("b", "token = { env = \"A\" }")),
        &format!("{HTTP}{}", client("a", "token = { env = \"B\" }")),
    ]));
}

#[test]
fn a_budget_in_dollars_needs_prices_of_all_that_is_in_reach() {
    let priced = "[prices]\n\"script/small\" = { input = \"1\", output = \"1\" }\n";
    let dollars = client("a", "token = { env = \"A\" }\nbudget = { usd = \"2.00\" }");
    let by_engine = client("a", "token = { env = \"A\" }\nengine = \"codex\"");
    let day = "[budgets]\nday = { usd = 2.5 }\n".to_owned();
    let engine = format!("[budgets.engines]\ncodex = {{ usd = \"2.00\" }}\n{by_engine}");
    for part in [&dollars, &day, &engine] {
        assert!(parse(&format!("{LEAST}{part}{priced}")).is_ok(), "{part}");
    }
    insta::assert_snapshot!(errors_of_parts(&[
        &dollars,
        &day,
        &engine,
        "[prices]\n\"scirpt/small\" = { input = \"1\", output = \"1\" }\n",
    ]));
    // A model that no such budget covers needs none.
    let other = "[budgets.engines]\nstub = { usd = \"2.00\" }\n";
    assert!(parse(&format!("{LEAST}{other}{by_engine}")).is_ok());
}

#[test]
fn contradictions_are_reported_together_and_in_order() {
    insta::assert_snapshot!(errors(&[r#"
[listen]
address = "0.0.0.0:4000"

[upstreams.a]
provider = "openai"
key = {}

[upstreams.b]
provider = "compatible"
url = "http://models.example"

[models.m]
chain = ["a/m", "c/m"]
aliases = ["M"]

[clients.x]
token = { env = "X" }
models = ["n"]
"#]));
    insta::assert_snapshot!(errors(&[
        "state = \"a\"\n[listen]\naddress = \"unix:a.sock\"\n[admin]\naddress = \"unix:a.sock\"\n",
    ]));
}
