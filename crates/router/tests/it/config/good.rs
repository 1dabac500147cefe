//! Valid configurations.

use std::path::PathBuf;
use std::time::Duration;

use herma_dialect::{MaximumKey, Reach};
use herma_router::budget::{Limits, Price};
use herma_router::config::{
    Address, Config, HttpVersion, KeySource, ProviderConfig, RequestLimits, UrlSource,
};

use super::kit::{Around, LEAST, parse};

#[test]
fn the_least_configuration_has_defaults() {
    let config = parse(LEAST).unwrap();
    assert_eq!(config.listen, Address::Tcp("127.0.0.1:4000".parse().unwrap()));
    assert_eq!((config.admin, config.state), (None, PathBuf::from("conf/state")));
    let expected = RequestLimits {
        max_body: 32 << 20,
        connect: Duration::from_secs(10),
        first_byte: Duration::from_mins(10),
        idle: Duration::from_mins(5),
        head: Duration::from_secs(30),
        max_connections: 4096,
        threads: 1,
    };
    assert_eq!(config.limits, expected);
    let model = &config.models["small"];
    assert_eq!(model.chain, [("script".to_owned(), "small".to_owned())]);
    assert_eq!((model.default_output, model.ceiling), (32_768, 131_072));
    assert_eq!(config.budgets.day, Limits::default());
    assert!(!config.upstreams["script"].retry_ambiguous);
    let ProviderConfig::Scripted { scripts } = &config.upstreams["script"].provider else { panic!() };
    assert_eq!(scripts, &[PathBuf::from("conf/a.yaml")]);
}

#[test]
fn the_example_is_a_configuration_that_says_what_it_shows() {
    let config = parse(Config::example()).unwrap();
    assert_eq!(config.limits, RequestLimits::default());
    assert_eq!(config.admin, Some(Address::Unix("conf/admin.sock".into())));
    let ProviderConfig::OpenAi(openai) = &config.upstreams["openai"].provider else { panic!() };
    assert_eq!(openai.key, Some(KeySource::Environment("OPENAI_API_KEY".to_owned())));
    assert!(openai.url.is_none());
    let ProviderConfig::Compatible(local) = &config.upstreams["local"].provider else { panic!() };
    assert_eq!((local.http, local.maximum_key), (HttpVersion::Negotiated, Some(MaximumKey::MaxTokens)));
    assert!(
        matches!(&local.url, Some(UrlSource::Literal(url)) if url.expose() == "http://127.0.0.1:8000/v1")
    );
    assert_eq!(config.models["gpt-5"].ceiling, 128_000);
    let price = config.prices["openai/gpt-5"];
    assert_eq!((price.input, price.output, price.cached_input), (1_250_000, 10_000_000, 125_000));
    let day = Limits { requests: Some(10_000), tokens: Some(50_000_000), micro_usd: Some(100_000_000) };
    assert_eq!(config.budgets.day, day);
    // Every key that is shown as a remark can be used as it stands.
    let remarks =
        Config::example().replace("# roots", "roots").replace("# key", "key").replace("# admit", "admit");
    let config = parse(&remarks).unwrap();
    assert_eq!(config.clients["nightly"].admit.len(), 7);
    let ProviderConfig::Compatible(local) = &config.upstreams["local"].provider else { panic!() };
    assert_eq!(local.roots, Some("conf/roots.pem".into()));
    let keyring = KeySource::Keyring { service: "herma".to_owned(), user: "local".to_owned() };
    assert_eq!(local.key, Some(keyring));
}

#[test]
fn quantities_are_exact_however_they_are_written() {
    for (written, micro_usd) in [("\"0.000001\"", 1), ("2", 2_000_000), ("2.50", 2_500_000), ("0.1", 100_000)]
    {
        let config = parse(&format!("{LEAST}[budgets.engines]\na = {{ usd = {written} }}\n")).unwrap();
        assert_eq!(config.budgets.engines["a"].micro_usd, Some(micro_usd), "{written}");
    }
    for (written, tokens) in [("5000", 5000), ("\"200k\"", 200_000), ("5_000", 5000)] {
        let config = parse(&format!("{LEAST}[budgets]\nday = {{ tokens = {written} }}\n")).unwrap();
        assert_eq!(config.budgets.day.tokens, Some(tokens), "{written}");
    }
}

#[test]
fn missing_prices_equal_the_input_price() {
    let config =
        parse(&format!("{LEAST}[prices]\n\"script/small\" = {{ input = \"3\", output = \"15\" }}\n"));
    let price: Price = config.unwrap().prices["script/small"];
    assert_eq!((price.input, price.cached_input), (3_000_000, 3_000_000));
    assert_eq!((price.cache_write, price.cache_write_long), (None, None));
    let all = "{ input = 3, output = 15, cached_input = 0.3, cache_write = 3.75, cache_write_long = 6 }";
    let price =
        parse(&format!("{LEAST}[prices]\n\"script/small\" = {all}\n")).unwrap().prices["script/small"];
    assert_eq!(
        (price.cached_input, price.cache_write, price.cache_write_long),
        (300_000, Some(3_750_000), Some(6_000_000))
    );
}

#[test]
fn a_ceiling_below_the_default_lowers_it() {
    let config = parse(&LEAST.replace("[models.small]", "[models.small]\nceiling = 1000")).unwrap();
    assert_eq!(config.models["small"].default_output, 1000);
}

#[test]
fn others_reach_the_router_only_where_that_is_said() {
    let public = LEAST.replace("127.0.0.1:4000\"", "0.0.0.0:4000\"\npublic = true");
    assert_eq!(parse(&public).unwrap().listen, Address::Tcp("0.0.0.0:4000".parse().unwrap()));
    assert!(parse(&public.replace("true", "false")).is_err());
    let absolute = LEAST.replace("127.0.0.1:4000", "unix:/run/herma/router.sock");
    assert_eq!(parse(&absolute).unwrap().listen, Address::Unix("/run/herma/router.sock".into()));
}

#[test]
fn grants_name_models_by_every_name_and_nothing_else() {
    let config = parse(Config::example()).unwrap();
    let mut config = config;
    config.clients.remove("nightly");
    config.clients.get_mut("alice").unwrap().admit = vec![Reach::RemoteUrl];
    config.upstreams.remove("anthropic");
    let around = Around::new(&[("OPENAI_API_KEY", "sk-1"), ("ALICE_TOKEN", "0123456789abcdef")]);
    let grants = config.grants(&config.secrets(&around).unwrap());
    let [(token, grant)] = grants.as_slice() else { panic!("{}", grants.len()) };
    assert_eq!(token.expose(), "0123456789abcdef");
    assert_eq!(grant.run.as_ref(), "alice");
    assert_eq!((grant.limits.requests, grant.reaches.as_slice()), (Some(500), &[Reach::RemoteUrl][..]));
    assert_eq!(grant.models.keys().collect::<Vec<_>>(), ["claude-sonnet", "coder", "gpt-5"]);
    assert_eq!(grant.models["coder"], grant.models["gpt-5"]);
    let chain = &grant.models["gpt-5"].chain;
    assert_eq!((chain[0].upstream.as_ref(), chain[0].model.as_ref()), ("openai", "gpt-5"));
    assert_eq!(chain[0].price.unwrap().output, 10_000_000);

    assert_eq!(config.admitted("coder"), Some(grant.models["coder"].clone()));
    assert!(
        ["Coder", "GPT-5", "openai/gpt-5", "qwen3-coder", ""]
            .iter()
            .all(|name| config.admitted(name).is_none())
    );
}

#[test]
fn where_a_router_listens_and_keeps_its_state_stays_while_it_runs() {
    let old = parse(LEAST).unwrap();
    let small = parse(&format!("{LEAST}aliases = [\"x\"]\n[limits]\nidle = \"1s\"\n")).unwrap();
    assert!(old.changes(&small).is_ok());
    let moved = parse(&LEAST.replace("4000", "4001").replace("\"state\"", "\"elsewhere\"")).unwrap();
    insta::assert_snapshot!(old.changes(&moved).unwrap_err(), @"`listen.address` and `state` cannot change while the router runs; the old configuration stays: start the router anew to change that");
    let admin = parse(&format!("{LEAST}[admin]\naddress = \"unix:a.sock\"\n")).unwrap();
    insta::assert_snapshot!(old.changes(&admin).unwrap_err(), @"`admin.address` cannot change while the router runs; the old configuration stays: start the router anew to change that");
}
