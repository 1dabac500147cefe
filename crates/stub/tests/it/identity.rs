//! The program's identity.

use herma_engines::stub::StubIdentity;

use crate::program::Place;

#[test]
fn it_prints_its_identity_and_reads_nothing() {
    let ended = Place::new().start(&["--identity"], b"this is no assignment");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let version = env!("CARGO_PKG_VERSION");
    let printed = format!("{{\"engine\":\"stub\",\"version\":\"{version}\"}}\n");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), printed);
    let read = StubIdentity::read(&ended.stdout).unwrap();
    assert_eq!(read.to_string(), format!("stub {version}"));
}
