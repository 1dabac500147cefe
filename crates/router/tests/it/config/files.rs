//! Which files are read as a configuration.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use herma_router::config::{Config, MAX_BYTES};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::kit::LEAST;

#[test]
fn only_a_text_of_bearable_size_that_not_everybody_can_change_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let error = |name: &str| {
        let said = Config::read(&at(name)).unwrap_err().to_string();
        said.replace(dir.path().to_str().unwrap(), "DIR")
    };
    fs::write(at("good.toml"), LEAST).unwrap();
    fs::set_permissions(at("good.toml"), Permissions::from_mode(0o664)).unwrap();
    let config = Config::read(&at("good.toml")).unwrap();
    assert_eq!((config.file, config.state), (at("good.toml"), at("state")));

    fs::set_permissions(at("good.toml"), Permissions::from_mode(0o666)).unwrap();
    insta::assert_snapshot!(error("good.toml"), @"DIR/good.toml: everybody on this machine can change the file; run `chmod o-w` on it");
    insta::assert_snapshot!(error("none.toml"), @"DIR/none.toml: the file is not there");
    insta::assert_snapshot!(error("."), @"DIR/.: the file is not a regular file");
    mknodat(CWD, at("fifo.toml"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    insta::assert_snapshot!(error("fifo.toml"), @"DIR/fifo.toml: the file is not a regular file");
    fs::write(at("latin.toml"), b"state = \"a\"\n# \xe9\n").unwrap();
    insta::assert_snapshot!(error("latin.toml"), @"DIR/latin.toml: line 2, column 3: the file is not UTF-8; expected UTF-8 text");
    fs::write(at("large.toml"), "#".repeat(usize::try_from(MAX_BYTES).unwrap() + 1)).unwrap();
    insta::assert_snapshot!(error("large.toml"), @"DIR/large.toml: the file is too large; expected a configuration of at most 1048576 bytes");
}
