//! No secret of a configuration is ever printed.

use proptest::prelude::*;

use herma_router::config::Config;

use super::kit::{Around, LEAST, parse};

/// Everything that can be printed of what comes of a text.
fn printed(text: &str) -> String {
    match parse(text) {
        Ok(config) => format!("{config:?} {:#?} {:?}", config, config.secrets(&Around::default())),
        Err(bad) => format!("{bad} {bad:?} {:?}", bad.problems()),
    }
}

/// Places in which nothing but a secret, or a mistake, can stand.
const SECRET_PLACES: &[&str] = &[
    "[upstreams.b]\nprovider = \"openai\"\nkey = CANARY\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey = { value = CANARY }\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey = [CANARY]\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey = { CANARY = CANARY }\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey = { keyring = CANARY }\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey.CANARY.CANARY = 1\n",
    "[upstreams.b]\nprovider = \"openai\"\napi_key = CANARY\n",
    "[upstreams.b]\nprovider = CANARY\n",
    "[upstreams.b]\nprovider = \"compatible\"\nurl = CANARY\n",
    "[upstreams.b]\nprovider = \"compatible\"\nurl = { value = CANARY }\n",
    "[upstreams.b]\nprovider = \"compatible\"\nurl = { CANARY = 1 }\n",
    "[upstreams.b]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1\"\nmaximum_key = CANARY\nhttp = CANARY\n",
    "[clients.b]\ntoken = CANARY\nmodels = [\"small\"]\nbudget = CANARY\nadmit = [CANARY]\n",
    "[clients.b]\ntoken = { token = CANARY }\nmodels = CANARY\n",
    "[clients.b]\ntoken = { CANARY = 7 }\nmodels = [\"small\"]\n",
    "[limits]\nmax_body = CANARY\nconnect = CANARY\nmax_connections = CANARY\n",
    "[budgets]\nday = { requests = CANARY, tokens = CANARY, usd = CANARY }\n",
    "[prices]\n\"script/small\" = { input = CANARY, output = CANARY }\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey = CANARY CANARY\n",
    "[upstreams.b]\nprovider = \"openai\"\nkey = CANARY\nkey = CANARY\n",
    "key = CANARY\n[",
];

proptest! {
    #[test]
    fn a_value_in_the_place_of_a_secret_is_never_shown(
        canary in "[A-Za-z0-9_.:/@?#=-]{9,60}q7", place in 0..SECRET_PLACES.len(),
    ) {
        let text = format!("{LEAST}{}", SECRET_PLACES[place].replace("CANARY", &format!("\"{canary}\"")));
        let printed = printed(&text);
        prop_assert!(!printed.contains(&canary), "{printed}");
        // Not a part of it either.
        prop_assert!(!printed.contains(&canary[2..]), "{printed}");
        // Without quotes, most of it is not even TOML.
        let bare = format!("{LEAST}{}", SECRET_PLACES[place].replace("CANARY", &canary));
        let printed = self::printed(&bare);
        prop_assert!(!printed.contains(&canary), "{printed}");
    }

    #[test]
    fn a_key_is_not_shown_wherever_it_got(tail in "[A-Za-z0-9_-]{8,40}", which in any::<prop::sample::Index>()) {
        let canary = format!("sk-{tail}");
        let example = Config::example();
        let quoted: Vec<&str> = example.split('"').skip(1).step_by(2).collect();
        let word = quoted[which.index(quoted.len())];
        let text = example.replace(&format!("\"{word}\""), &format!("\"{canary}\""));
        let printed = printed(&text);
        // A socket and a directory are the operator's own to name.
        prop_assume!(!["state", "unix:admin.sock", "rehearsal.yaml"].contains(&word));
        prop_assert!(!printed.contains(&canary), "{word}: {printed}");
    }

    #[test]
    fn any_text_is_a_configuration_or_an_error(
        cut in any::<prop::sample::Index>(), length in 0..40_usize, with in ".{0,20}",
    ) {
        let mut text: Vec<char> = Config::example().chars().collect();
        let from = cut.index(text.len());
        let to = (from + length).min(text.len());
        text.splice(from..to, with.chars());
        let _ = printed(&text.into_iter().collect::<String>());
    }

    #[test]
    fn a_literal_url_is_not_shown_although_it_is_taken(host in "[a-z][a-z0-9]{7,20}q7") {
        let text = format!("{LEAST}[upstreams.b]\nprovider = \"compatible\"\nurl = \"https://{host}.example/{host}\"\n");
        prop_assert!(parse(&text).is_ok());
        prop_assert!(!printed(&text).contains(&host));
    }
}

#[test]
fn secrets_are_not_shown_by_debug() {
    let parts = "[upstreams.b]\nprovider = \"compatible\"\nkey = { env = \"KEY\" }\nurl = { env = \"URL\" }\n\
                 [clients.b]\ntoken = { env = \"TOKEN\" }\nmodels = [\"small\"]\n";
    let config = parse(&format!("{LEAST}{parts}")).unwrap();
    let around = Around::new(&[
        ("KEY", "canary-key"),
        ("URL", "https://canary.example"),
        ("TOKEN", "canary-token-0123"),
    ]);
    let secrets = config.secrets(&around).unwrap();
    assert_eq!(secrets.key("b").unwrap().expose(), "canary-key");
    let grants = config.grants(&secrets);
    let printed = format!("{secrets:?} {secrets:#?} {grants:?} {config:?} {:?}", secrets.url("b"));
    assert!(!printed.contains("canary"), "{printed}");
}
