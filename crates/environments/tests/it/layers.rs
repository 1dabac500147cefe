//! Layers: built once, used by many, removed when nobody uses them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::mpsc::channel;

use herma_core::{Digest, Timestamp};
use herma_environments::key::LayerKey;
use herma_environments::layers::{Acquired, LayerInUse, LayerKind, LayerRecord, LayerStore, copy_tree};

fn key(of: &str) -> LayerKey {
    LayerKey::from_name(&Digest::of(of.as_bytes()).hex()).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn acquire(store: &LayerStore, key: LayerKey, second: i64) -> Acquired {
    store.acquire(key, at(second), &mut || {}, &|| false).unwrap()
}

fn record(key: LayerKey, tree: herma_environments::layers::TreeSummary) -> LayerRecord {
    LayerRecord {
        key,
        kind: LayerKind::Fetch,
        fetch_key: None,
        definition: Digest::of(b""),
        inputs: Vec::new(),
        tools: Vec::new(),
        destination: "sandbox".to_owned(),
        architecture: "x86_64".to_owned(),
        base_tree: None,
        source_and_network: false,
        commands: Vec::new(),
        egress: Vec::new(),
        left_out: Vec::new(),
        duration_ms: 0,
        built_at: at(0),
        tree,
    }
}

/// Builds a layer with one file of this size.
fn build(store: &LayerStore, name: &str, bytes: usize, second: i64) -> LayerInUse {
    let Acquired::Build(build) = acquire(store, key(name), second) else { panic!("{name} is there") };
    fs::write(build.home().join("file"), vec![b'x'; bytes]).unwrap();
    build.commit(at(second), |tree| record(key(name), tree)).unwrap()
}

#[test]
fn a_layer_is_built_once_and_the_second_process_waits() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    let Acquired::Build(first) = acquire(&store, key("a"), 1) else { panic!("it is there") };
    let (tell, told) = channel();
    let other = store.clone();
    let second = std::thread::spawn(move || {
        let waiting = &mut || tell.send(()).unwrap();
        other.acquire(key("a"), at(2), waiting, &|| false).unwrap()
    });
    told.recv().unwrap();
    fs::write(first.home().join("file"), "built by the first").unwrap();
    let built = first.commit(at(3), |tree| record(key("a"), tree)).unwrap();
    let Acquired::Ready(reused) = second.join().unwrap() else { panic!("it was built twice") };
    assert_eq!(reused.record(), built.record());
    assert!(reused.is_intact().unwrap());
}

#[test]
fn a_cancelled_wait_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    let _building = acquire(&store, key("a"), 1);
    let ended = store.acquire(key("a"), at(2), &mut || {}, &|| true).unwrap_err();
    assert_eq!(ended.kind(), std::io::ErrorKind::Interrupted);
}

#[test]
fn a_build_that_ends_early_leaves_nothing_and_the_next_one_builds() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    let Acquired::Build(build_) = acquire(&store, key("a"), 1) else { panic!("it is there") };
    fs::write(build_.home().join("half"), "half").unwrap();
    drop(build_);
    assert!(matches!(acquire(&store, key("a"), 2), Acquired::Build(_)));
    // A killed process runs no destructor: what it left has no lock.
    let left = dir.path().join("building").join(key("b").name()).join("home");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("half"), "half").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o500)).unwrap();
    assert!(store.find(key("b"), at(3)).unwrap().is_none());
    let opened = LayerStore::open(dir.path()).unwrap();
    assert!(!left.exists(), "opening the store removes what a killed build left");
    let Acquired::Build(again) = acquire(&opened, key("b"), 4) else { panic!("it is there") };
    assert_eq!(fs::read_dir(again.home()).unwrap().count(), 0);
}

#[test]
fn a_change_of_a_layer_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    let layer = build(&store, "a", 10, 1);
    assert!(layer.is_intact().unwrap());
    fs::write(layer.home().join("file"), "other text").unwrap();
    assert!(!layer.is_intact().unwrap());
}

#[test]
fn the_least_recently_used_go_first_and_never_one_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    let used = build(&store, "a", 1000, 1);
    for (name, second) in [("b", 2), ("c", 3), ("d", 4)] {
        drop(build(&store, name, 1000, second));
    }
    // The oldest but one is used again.
    drop(store.find(key("b"), at(9)).unwrap().unwrap());
    let order: Vec<LayerKey> = store.list().unwrap().iter().map(|layer| layer.record.key).collect();
    assert_eq!(order, [key("a"), key("c"), key("d"), key("b")]);
    let listed = store.list().unwrap();
    assert!(listed[0].in_use && !listed[1].in_use);
    let pruned = store.prune(2500).unwrap();
    let keys = |records: &[LayerRecord]| records.iter().map(|record| record.key).collect::<Vec<_>>();
    assert_eq!(keys(&pruned.removed), [key("c"), key("d")]);
    assert_eq!(keys(&pruned.kept), [key("a"), key("b")]);
    assert_eq!(keys(&pruned.in_use), [key("a")]);
    drop(used);
    assert_eq!(store.prune(0).unwrap().removed.len(), 2);
    assert!(store.list().unwrap().is_empty());
    assert!(matches!(acquire(&store, key("a"), 10), Acquired::Build(_)));
}

#[test]
fn a_view_is_a_copy_that_no_link_leads_out_of() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to, outside) = (dir.path().join("from"), dir.path().join("to"), dir.path().join("outside"));
    fs::create_dir_all(from.join("node_modules/.bin")).unwrap();
    fs::create_dir_all(from.join("read-only")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(from.join("node_modules/a.js"), "layer").unwrap();
    fs::write(from.join("taken"), "layer").unwrap();
    fs::write(from.join("read-only/file"), "layer").unwrap();
    symlink("../a.js", from.join("node_modules/.bin/a")).unwrap();
    fs::set_permissions(from.join("node_modules/a.js"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(from.join("read-only"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::create_dir(&to).unwrap();
    fs::write(to.join("taken"), "checkout").unwrap();
    copy_tree(&from, &to).unwrap();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(read(&to.join("node_modules/.bin/a")), "layer");
    assert!(fs::symlink_metadata(to.join("node_modules/.bin/a")).unwrap().is_symlink());
    assert_eq!(fs::metadata(to.join("node_modules/a.js")).unwrap().permissions().mode() & 0o777, 0o555);
    assert_eq!(read(&to.join("taken")), "checkout");
    let times = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(times(&from.join("taken")), times(&from.join("taken")));
    assert_eq!(times(&from.join("node_modules/a.js")), times(&to.join("node_modules/a.js")));
    // A checkout whose tracked link takes the place of a directory of the layer.
    let linked = dir.path().join("linked");
    fs::create_dir(&linked).unwrap();
    symlink(&outside, linked.join("node_modules")).unwrap();
    assert!(copy_tree(&from, &linked).is_err());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::set_permissions(from.join("read-only"), fs::Permissions::from_mode(0o755)).unwrap();
}
