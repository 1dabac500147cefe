//! The table of what a secret looks like.

/// One kind of secret.
///
/// A rule is tried at each occurrence of its literals. Its pattern is anchored there, sees at most
/// [`super::LOOKAHEAD`] bytes, and stays within a line unless the kind itself does not.
#[derive(Debug)]
pub struct SecretRule {
    /// The name that takes the secret's place: `[redacted:<name>]`.
    pub name: &'static str,
    /// The literals at which the rule is tried, so that text without any of them is scanned at memory speed.
    pub literals: &'static [&'static str],
    /// The pattern; the group `s` is the secret itself, else the whole match. For a token of any length it matches
    /// only enough to recognise one: the rest of the word is redacted with it.
    pub pattern: &'static str,
    /// The run that the pattern is the start of, where what follows the run decides.
    pub run: Option<TokenRun>,
    /// Whether a letter or digit right before the literal means that this is the middle of something else.
    pub starts_word: bool,
    /// The minimum entropy in bits per character, for kinds whose format could also be a placeholder; then
    /// placeholder words count too. `None` for kinds with a significant prefix.
    pub min_entropy: Option<f64>,
    /// Why the rule is as it is.
    pub why: &'static str,
}

/// A run of letters, digits, `_` and `-`. A literal may occur in it repeatedly with the same following text: it is
/// checked once, or crafted text would be scanned a thousand times.
#[derive(Debug)]
pub struct TokenRun {
    /// The longest one, with the literal.
    pub longest: usize,
    /// The text that must follow; the secret ends with it.
    pub then: &'static str,
}

/// The rule for private keys, which alone spans lines.
pub(crate) const PRIVATE_KEY: &str = "private_key";

/// The rule for passwords in addresses.
pub(crate) const URL_CREDENTIALS: &str = "url_credentials";
/// The rule for values beside a name that says secret.
pub(crate) const GENERIC_SECRET: &str = "generic_secret";

/// Every rule. Prefixes are those that the issuers document for exactly this purpose.
pub const RULES: &[SecretRule] = &[
    SecretRule {
        name: "aws_access_key",
        literals: &["AKIA", "ASIA", "ABIA", "ACCA"],
        pattern: r"\A(?<s>(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})(?:[^A-Za-z0-9]|\z)",
        run: None,
        starts_word: true,
        min_entropy: Some(2.5),
        why: "The key's name, not the key: but it says whose account, and the key is rarely far away.",
    },
    SecretRule {
        name: "aws_secret_key",
        literals: &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"],
        pattern: r#"\A[A-Za-z_]{15,60}\\?["']?[ \t]{0,8}[:=][ \t]{0,8}\\?["']?(?<s>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|\z)"#,
        run: None,
        starts_word: false,
        min_entropy: Some(3.5),
        why: "40 characters without a prefix: only the name beside it gives it away.",
    },
    SecretRule {
        name: "github_token",
        literals: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        pattern: r"\Agh[pousr]_[A-Za-z0-9]{36,64}",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "Personal, OAuth, user-to-server, server-to-server and refresh tokens.",
    },
    SecretRule {
        name: "github_fine_grained_token",
        literals: &["github_pat_"],
        pattern: r"\Agithub_pat_[A-Za-z0-9_]{22,64}",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "Fine-grained personal tokens have a prefix and a length of their own.",
    },
    SecretRule {
        name: "gitlab_token",
        literals: &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"],
        pattern: r"\Agl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_-]{20,64}",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "Personal, deploy, runner, CI build, trigger and service account tokens.",
    },
    SecretRule {
        name: "slack_token",
        literals: &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-"],
        pattern: r"\A(?:xox[bpaers][.-]|xapp-)[A-Za-z0-9.-]{20,64}",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "Bot, user, app, refresh and configuration tokens.",
    },
    SecretRule {
        name: "slack_webhook",
        literals: &["hooks.slack.com/"],
        pattern: r"\Ahooks\.slack\.com/(?:services|workflows)/(?<s>[A-Za-z0-9+/]{40,64})",
        run: None,
        starts_word: false,
        min_entropy: None,
        why: "Whoever has the address can post: the address is the secret.",
    },
    SecretRule {
        name: "stripe_key",
        literals: &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_", "rk_prod_", "whsec_"],
        pattern: r"\A(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,64}|whsec_[A-Za-z0-9+/=]{32,64})",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "Test keys count too: they open a real account's test data.",
    },
    SecretRule {
        name: "anthropic_key",
        literals: &["sk-ant-"],
        pattern: r"\Ask-ant-[a-z]{2,12}[0-9]{2}-[A-Za-z0-9_-]{20,64}",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "API, admin and OAuth keys share the prefix.",
    },
    SecretRule {
        name: "openai_key",
        literals: &["sk-"],
        pattern: r"\Ask-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,64}|or-v1-[0-9a-f]{64}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{40,64})",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "Project keys, the old form with its fixed middle, and the plain form that compatible providers copied.",
    },
    SecretRule {
        name: "google_key",
        literals: &["AIza"],
        pattern: r"\A(?<s>AIza[A-Za-z0-9_-]{35})(?:[^A-Za-z0-9_-]|\z)",
        run: None,
        starts_word: true,
        min_entropy: Some(3.0),
        why: "Exactly 39 characters; longer runs are encoded data.",
    },
    SecretRule {
        name: "npm_token",
        literals: &["npm_"],
        pattern: r"\A(?<s>npm_[A-Za-z0-9]{36})(?:[^A-Za-z0-9]|\z)",
        run: None,
        starts_word: true,
        min_entropy: Some(3.0),
        why: "`npm_` also starts names of variables; those hold underscores.",
    },
    SecretRule {
        name: "pypi_token",
        literals: &["pypi-AgE"],
        pattern: r"\Apypi-AgE[A-Za-z0-9_-]{50,64}",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "`AgE` is how every macaroon of version 2 starts; `pypi-` alone starts names of packages.",
    },
    SecretRule {
        name: "hugging_face_token",
        literals: &["hf_"],
        pattern: r"\A(?<s>hf_[A-Za-z]{34})(?:[^A-Za-z0-9_]|\z)",
        run: None,
        starts_word: true,
        min_entropy: Some(3.5),
        why: "Letters only, so entropy alone tells it from a name; names hold underscores.",
    },
    SecretRule {
        name: "herma_approver_token",
        literals: &[crate::approver_key::TOKEN_PREFIX],
        pattern: r"\Aherma-approver-[A-Za-z0-9_-]{43}",
        run: None,
        starts_word: false,
        min_entropy: None,
        why: "herma's own: whoever has it approves in somebody's name, so it counts wherever it stands.",
    },
    SecretRule {
        name: "herma_run_token",
        literals: &["herma-"],
        pattern: r"\A(?<s>herma-[0-9a-f]{64})(?:[^A-Za-z0-9]|\z)",
        run: None,
        starts_word: true,
        min_entropy: None,
        why: "What the router knows a run by. It dies with the run; an agent that writes it down is still seen.",
    },
    SecretRule {
        name: PRIVATE_KEY,
        literals: &["-----BEGIN "],
        pattern: r#"\A-----BEGIN [A-Z0-9 ]{0,80}PRIVATE KEY(?: BLOCK)?-----(?:[\s+,"'>|\\-]|\\[nr]){0,64}(?:[A-Za-z][A-Za-z-]{2,30}: [ -~]{0,200}(?:[\s+"'\\-]|\\[nr]){1,16}){0,4}[A-Za-z0-9+/=]{40}"#,
        run: None,
        starts_word: false,
        min_entropy: None,
        why: "A header with a body under it; a header alone is code that reads keys.",
    },
    SecretRule {
        name: "jwt",
        literals: &["eyJ"],
        pattern: r"\AeyJ[A-Za-z0-9_-]{10}",
        run: Some(TokenRun { longest: 2003, then: r"\A\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10}" }),
        starts_word: true,
        min_entropy: None,
        why: "Two encoded JSON objects and a signature: it opens something until it expires.",
    },
    SecretRule {
        name: URL_CREDENTIALS,
        literals: &["://"],
        pattern: r#"\A://[^\s/:@"'<>`\\]{1,200}:(?<s>[^\s/@"'<>`\\]{3,300})@[A-Za-z0-9\[]"#,
        run: None,
        starts_word: false,
        min_entropy: Some(0.0),
        why: "user:password@host, the usual way for a database password to reach a log.",
    },
    SecretRule {
        name: GENERIC_SECRET,
        literals: &[
            "api_key", "API_KEY", "apikey", "APIKEY", "apiKey", "ApiKey", "api-key", "Api-Key", "secret",
            "SECRET", "Secret", "token", "TOKEN", "Token", "passwd", "PASSWD", "Passwd", "password",
            "PASSWORD", "Password",
        ],
        pattern: r#"\A(?i:api[_-]?key|secret|token|passwd|password)[A-Za-z0-9_-]{0,20}\\{0,3}["']?[ \t]{0,8}(?::=|=>|:|=)[ \t]{0,8}\\{0,3}["'](?<s>[A-Za-z0-9+/_=.~!#$%^&*-]{20,200})\\{0,3}["']"#,
        run: None,
        starts_word: false,
        min_entropy: Some(3.5),
        why: "A name that says secret and a quoted value that looks random; the quotes keep code out.",
    },
];

/// Texts that mark a value as no real secret. Compared in lower case.
pub(crate) const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "your_",
    "your-",
    "yourpass",
    "dummy",
    "xxxxxxxx",
    "00000000",
    "****",
    "${",
    "{{",
    "[redacted:",
    "abcdefghijklmnop",
    "0123456789",
    "1234567890",
];

/// Passwords of URLs in documentation. Compared in lower case with the whole value.
pub(crate) const DOCUMENTATION_PASSWORDS: &[&str] =
    &["password", "passwd", "pass", "pwd", "secret", "token", "postgres", "user", "username", "guest", "..."];
