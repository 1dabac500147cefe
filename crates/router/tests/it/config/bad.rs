//! Bad parts of a configuration, and their errors.

use super::kit::{errors, errors_of_parts};

#[test]
fn a_syntax_error_does_not_show_the_line() {
    insta::assert_snapshot!(errors(&[
        "state = \n",
        "state = \"a\"\nstate = \"b\"\n",
        "[listen\n",
        "[listen]\naddress = 'a'\n[listen]\n",
        "key = sk-canary-1\n",
        "key = \"sk-canary-2\n",
        "state = \"\u{1}\"\n",
    ]));
}

#[test]
fn missing_keys_are_named() {
    insta::assert_snapshot!(errors(&["[listen]\n", "state = \"a\"\nlisten = \"127.0.0.1:4000\"\n"]));
    insta::assert_snapshot!(errors_of_parts(&[
        "[admin]\n",
        "[upstreams.b]\n",
        "[upstreams.b]\nprovider = \"scripted\"\n",
        "[upstreams.b]\nprovider = \"compatible\"\n",
        "[upstreams.b]\nprovider = \"openai\"\n",
        "[models.b]\n",
        "[clients.b]\n",
        "[clients.b]\ntoken = { env = \"B\" }\n",
        "[prices]\n\"script/small\" = {}\n",
        "[prices]\n\"script/small\" = { input = 1 }\n",
    ]));
}

#[test]
fn unknown_keys_are_named_with_their_place() {
    insta::assert_snapshot!(errors_of_parts(&[
        "[budget]\n",
        "[something]\n",
        "[limits]\nmax_bdy = \"1MiB\"\n",
        "[limits]\ntimeout = \"1s\"\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = [\"b.yaml\"]\nkey = { env = \"B\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"B\" }\nmaximum_key = \"max_tokens\"\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"B\" }\nretry_ambigous = true\n",
        "[models.b]\nchain = [\"script/b\"]\nalias = [\"c\"]\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"small\"]\nbudget = { request = 1 }\n",
        "[prices]\n\"script/small\" = { input = \"1\", output = \"1\", cached = \"1\" }\n",
        "[budgets]\nweek = { requests = 1 }\n",
    ]));
}

#[test]
fn values_of_another_kind_are_refused() {
    insta::assert_snapshot!(errors_of_parts(&[
        "[limits]\nmax_body = 1000\n",
        "[limits]\nconnect = 10\n",
        "[limits]\nmax_connections = \"many\"\n",
        "[limits]\nmax_body = \"32MB\"\n",
        "[limits]\nconnect = \"10\"\n",
        "[limits]\nidle = \"0s\"\n",
        "[limits]\nmax_connections = 0\n",
        "[limits]\nthreads = 65\n",
        "[limits]\nmax_connections = -1\n",
        "[limits]\nmax_connections = 1.5\n",
        "[[upstreams.b]]\nprovider = \"scripted\"\n",
        "[[limits]]\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"small\"]\nbudget = [1]\n",
        "[upstreams.b]\nprovider = 7\n",
        "[upstreams.b]\nprovider = \"open-ai\"\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = \"b.yaml\"\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = []\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = [\"a\", \"\"]\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = [\"~/b.yaml\"]\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = [3]\n",
        "[upstreams.b]\nprovider = \"scripted\"\nscripts = [\"a\"]\nretry_ambiguous = \"yes\"\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"B\" }\nhttp = 2\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"B\" }\nhttp = \"3\"\n",
        "[upstreams.b]\nprovider = \"compatible\"\nurl = \"https://b.example\"\nmaximum_key = \"max_token\"\n",
        "[models.b]\nchain = \"script/b\"\n",
        "[models.b]\nchain = [\"script/b\"]\naliases = \"c\"\n",
        "[models.b]\nchain = [\"script\"]\n",
        "[models.b]\nchain = [\"script/b\", \"Script/b\"]\n",
        "[models.b]\nchain = [\"script/b c\"]\n",
        "[models.b]\nchain = [7]\n",
        "[models.b]\nchain = [\"script/b\"]\ndefault_output = 0\n",
        "[models.b]\nchain = [\"script/b\"]\nceiling = \"lots\"\n",
        "[models.b]\nchain = [\"script/b\"]\ndefault_output = \"200k\"\n",
        "[models.\"b c\"]\nchain = [\"script/b\"]\n",
        "[prices]\n\"script/small\" = { input = \"-1\", output = \"1\" }\n",
        "[prices]\n\"script/small\" = { input = 1, output = \"1e3\" }\n",
        "[prices]\n\"script/small\" = { input = 1, output = 1.5000001 }\n",
        "[prices]\n\"script/small\" = { input = 1, output = 12345678901.123456 }\n",
        "[prices]\n\"small\" = { input = 1, output = 1.5 }\n",
        "[budgets]\nday = { requests = \"100\" }\n",
        "[budgets]\nday = { tokens = \"many\" }\n",
        "[budgets]\nday = { usd = true }\n",
        "[budgets]\nday = {}\n",
        "[budgets]\nday = { requests = 9007199254740992 }\n",
        "[budgets]\nday = { tokens = \"18446744073709551615\" }\n",
        "[budgets]\nday = { tokens = 5.0 }\n",
        "[budgets]\nday = { usd = \"9007199255\" }\n",
        "[budgets]\nday = { requests = 340282366920938463463374607431768211456 }\n",
        "[budgets]\nday = 5\n",
        "[budgets]\nengines = 7\n",
        "[budgets.engines]\n\"../codex\" = { requests = 1 }\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = []\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"small\"]\nadmit = [\"remote_urls\"]\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"small\"]\nadmit = [\"remote_url\", \"all\"]\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"small\"]\nengine = \"A b\"\n",
        "[clients.\"../../b\"]\ntoken = { env = \"B\" }\nmodels = [\"small\"]\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"small\", 1979-05-27]\n",
    ]));
}

#[test]
fn addresses_that_would_let_others_in_are_refused() {
    let listen = |address: &str| format!("state = \"a\"\n[listen]\naddress = \"{address}\"\n");
    let long = format!("unix:{}", "a".repeat(120));
    let texts: Vec<String> = [
        "0.0.0.0:4000",
        "[::]:4000",
        "10.1.2.3:4000",
        "localhost:4000",
        "127.0.0.1",
        "4000",
        "http://127.0.0.1:4000",
        "unix:",
        "unix:~/router.sock",
        &long,
    ]
    .map(listen)
    .into();
    insta::assert_snapshot!(errors(&texts.iter().map(String::as_str).collect::<Vec<&str>>()));
    insta::assert_snapshot!(errors_of_parts(&["[admin]\naddress = \"127.0.0.1:4001\"\n"]));
}

#[test]
fn secrets_in_the_file_are_refused_with_advice_and_never_shown() {
    let said = errors_of_parts(&[
        "[upstreams.b]\nprovider = \"openai\"\nkey = \"sk-canary-3\"\n",
        "[upstreams.b]\nprovider = \"openai\"\napi_key = \"sk-canary-4\"\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { value = \"sk-canary-5\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { sk-canary-6 = true }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"sk-canary-7\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"AKIACANARY0123456789\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { file = \"sk-canary-8\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { keyring = { service = \"herma\", user = \"sk-canary-9\" } }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { keyring = \"sk-canary-10\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = {}\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = { env = \"A\", file = \"b\" }\n",
        "[upstreams.b]\nprovider = \"openai\"\nkey = [\"sk-canary-11\"]\n",
        "[upstreams.sk-canary-12]\nprovider = \"openai\"\n",
        "[upstreams.b]\nprovider = \"sk-canary-13\"\n",
        "[clients.b]\ntoken = \"sk-canary-14\"\nmodels = [\"small\"]\n",
        "[clients.b]\ntoken = { env = \"B\" }\nmodels = [\"sk-canary-15\"]\n",
    ]);
    let errors = said.lines().filter(|line| line.starts_with("    "));
    assert_eq!(errors.filter(|line| line.to_lowercase().contains("canary")).count(), 0, "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn urls_that_would_leak_a_key_are_refused_and_never_shown() {
    let compatible =
        |url: &str| format!("[upstreams.b]\nprovider = \"compatible\"\nplain_http = false\nurl = {url}\n");
    let texts: Vec<String> = [
        "\"http://canary.example/v1\"",
        "\"canary.example\"",
        "\"ftp://canary.example\"",
        "\"https://user:canary@example.org\"",
        "\"https://canary.example/v1?api-key=canary\"",
        "\"https://canary.example:99999\"",
        "{ keyring = { service = \"canary\", user = \"b\" } }",
        "{ env = \"https://canary.example\" }",
        "[\"https://canary.example\"]",
    ]
    .map(compatible)
    .into();
    let said = errors_of_parts(&texts.iter().map(String::as_str).collect::<Vec<&str>>());
    let errors = said.lines().filter(|line| line.starts_with("    "));
    assert_eq!(errors.filter(|line| line.contains("canary")).count(), 0, "{said}");
    insta::assert_snapshot!(said);
}
