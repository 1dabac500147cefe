//! Where keys, URLs and tokens are read from, and what is refused there.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use herma_router::config::Config;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::kit::{Around, LEAST};

/// A file with a secret that its owner alone reads.
fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn in_dir(dir: &Path, parts: &str) -> Config {
    Config::parse(&format!("{LEAST}{parts}"), &dir.join("router.toml")).unwrap()
}

/// The error without the directory.
fn refused(dir: &Path, config: &Config, around: &Around) -> String {
    let error = config.secrets(around).unwrap_err().to_string();
    error.replace(dir.to_str().unwrap(), "DIR")
}

const PARTS: &str = r#"
[upstreams.a]
provider = "openai"
key = { env = "A_KEY" }
[upstreams.b]
provider = "anthropic"
key = { file = "b.key" }
url = { env = "B_URL" }
[upstreams.c]
provider = "compatible"
key = { keyring = { service = "herma", user = "c" } }
url = { file = "c.url" }
[clients.one]
token = { env = "ONE" }
models = ["small"]
"#;

#[test]
fn secrets_are_read_from_where_they_lie() {
    let dir = tempfile::tempdir().unwrap();
    let config = in_dir(dir.path(), PARTS);
    private(&dir.path().join("real"), "sk-b\n");
    symlink("real", dir.path().join("b.key")).unwrap();
    private(&dir.path().join("c.url"), "https://c.example/v1/\n");
    let mut around =
        Around::new(&[("A_KEY", "sk-a"), ("B_URL", "https://b.example"), ("ONE", "token-of-the-first")]);
    around.keyring.insert(("herma", "c"), "sk-c");
    let secrets = config.secrets(&around).unwrap();
    let key = |name| secrets.key(name).map(|key| key.expose().as_str());
    let url = |name| secrets.url(name).map(|url| url.expose().as_str());
    assert_eq!(
        (key("a"), key("b"), key("c"), key("script")),
        (Some("sk-a"), Some("sk-b"), Some("sk-c"), None)
    );
    assert_eq!(
        (url("a"), url("b"), url("c")),
        (None, Some("https://b.example"), Some("https://c.example/v1"))
    );
    assert_eq!(secrets.token("one").unwrap().expose(), "token-of-the-first");
    assert_eq!(format!("{secrets:?}"), "[secrets]");
}

#[test]
fn all_that_cannot_be_had_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let config = in_dir(dir.path(), PARTS);
    insta::assert_snapshot!(refused(dir.path(), &config, &Around::default()));
}

#[test]
fn values_that_are_no_secrets_are_refused_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let config = in_dir(dir.path(), PARTS);
    private(&dir.path().join("b.key"), "canary\ncanary\n");
    private(&dir.path().join("c.url"), "http://canary.example\n");
    let mut around = Around::new(&[("B_URL", "https://canary:canary@example.org"), ("ONE", "canary")]);
    around.variables.insert("A_KEY", OsString::from_vec(b"canary\xff".to_vec()));
    around.keyring.insert(("herma", "c"), " \n");
    let said = refused(dir.path(), &config, &around);
    assert!(!said.contains("canary"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn a_file_that_others_could_read_or_change_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.key");
    let config = in_dir(dir.path(), "[upstreams.a]\nprovider = \"openai\"\nkey = { file = \"a.key\" }\n");
    let secrets = || config.secrets(&Around::default());
    private(&file, "sk-a");
    for mode in [0o400, 0o600, 0o700] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        assert!(secrets().is_ok(), "{mode:o}");
    }
    for mode in [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o610] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        assert!(secrets().unwrap_err().to_string().contains("chmod 600"), "{mode:o}");
    }
    // A link to a file that others read is one that others read.
    fs::rename(&file, dir.path().join("open")).unwrap();
    symlink("open", &file).unwrap();
    assert!(secrets().is_err());
    fs::remove_file(&file).unwrap();

    // A file that blocks, and one that never ends.
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let said = refused(dir.path(), &config, &Around::default());
    insta::assert_snapshot!(said, @"DIR/router.toml: `upstreams.a.key` is in the file `DIR/a.key`, which is not a regular file");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(secrets().unwrap_err().to_string().contains("is not a regular file"));
    fs::remove_dir(&file).unwrap();
    private(&file, "");
    fs::File::options().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
    assert!(secrets().unwrap_err().to_string().contains("larger than any key"));
}

#[test]
fn two_clients_with_one_token_and_a_token_that_is_a_key_are_refused() {
    let parts = "[upstreams.a]\nprovider = \"openai\"\nkey = { env = \"A_KEY\" }\n\
                 [clients.one]\ntoken = { env = \"ONE\" }\nmodels = [\"small\"]\n\
                 [clients.two]\ntoken = { env = \"TWO\" }\nmodels = [\"small\"]\n\
                 [clients.three]\ntoken = { env = \"THREE\" }\nmodels = [\"small\"]\n";
    let same = "0123456789-canary";
    let key = "sk-canary-0123456789";
    let around = Around::new(&[("A_KEY", key), ("ONE", same), ("TWO", same), ("THREE", key)]);
    let dir = tempfile::tempdir().unwrap();
    let said = refused(dir.path(), &in_dir(dir.path(), parts), &around);
    insta::assert_snapshot!(said);
}

#[test]
fn a_client_without_a_token_among_the_secrets_has_no_grant() {
    let dir = tempfile::tempdir().unwrap();
    let with = in_dir(dir.path(), "[clients.one]\ntoken = { env = \"ONE\" }\nmodels = [\"small\"]\n");
    let none = in_dir(dir.path(), "").secrets(&Around::default()).unwrap();
    assert!(with.grants(&none).is_empty());
}
