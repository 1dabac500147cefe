//! Layers: built once, used by many, removed when nobody uses them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use herma_core::{Digest, Timestamp};
use herma_environments::key::LayerKey;
use herma_environments::layers::{
    Acquired, LayerInUse, LayerKind, LayerRecord, LayerStore, TreeError, TreeLimits, copy_tree,
    copy_tree_within, summarize, summarize_within,
};
use herma_git::{CheckoutState, ObjectFormat, lay_out};

use crate::kit::Repository;

fn key(of: &str) -> LayerKey {
    LayerKey::from_name(&Digest::of(of.as_bytes()).hex()).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn acquire(store: &LayerStore, key: LayerKey, second: i64) -> Acquired {
    store.acquire(key, at(second), &mut || {}, &|| false).unwrap()
}

pub(crate) fn record(key: LayerKey, tree: herma_environments::layers::TreeSummary) -> LayerRecord {
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
    copy_tree(&from, &linked).unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(copy_tree(&from, &linked.join("node_modules")).is_err(), "the target itself is no link");
    fs::set_permissions(from.join("read-only"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_truncated_layer_is_built_again() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("truncated", |home| fs::write(home.join("file"), "").unwrap()),
        ("shortened", |home| fs::write(home.join("file"), "xxx").unwrap()),
        ("deleted", |home| fs::remove_file(home.join("file")).unwrap()),
        ("empty", |home| fs::remove_dir_all(home).unwrap()),
        ("another kind", |home| {
            fs::remove_file(home.join("file")).unwrap();
            fs::create_dir(home.join("file")).unwrap();
        }),
        ("another mode", |home| {
            fs::set_permissions(home.join("file"), fs::Permissions::from_mode(0o400)).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let store = LayerStore::open(dir.path()).unwrap();
        let home = build(&store, "a", 1000, 1).home();
        assert!(store.find(key("a"), at(2)).unwrap().is_some(), "{name}: it is there before");
        damage(&home);
        assert!(store.find(key("a"), at(3)).unwrap().is_none(), "{name}: it is used");
        let rebuilt = build(&store, "a", 1000, 4);
        assert!(rebuilt.is_intact().unwrap(), "{name}");
        assert!(matches!(acquire(&store, key("a"), 5), Acquired::Ready(_)), "{name}: it is there again");
    }
}

#[test]
fn a_layer_without_a_metadata_digest_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    drop(build(&store, "a", 10, 1));
    let file = dir.path().join(key("a").name()).join("layer.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    record["tree"].as_object_mut().unwrap().remove("metadata_digest").unwrap();
    fs::write(&file, record.to_string()).unwrap();
    assert!(store.find(key("a"), at(2)).unwrap().is_none());
    assert!(matches!(acquire(&store, key("a"), 3), Acquired::Build(_)));
}

#[test]
fn a_change_of_metadata_in_any_directory_is_damage() {
    type Action<'a> = &'a dyn Fn();
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    let Acquired::Build(building) = acquire(&store, key("a"), 1) else { panic!("there is a layer") };
    // So many directories that threads share them.
    let nested = |number: u32| format!("d{number}/below");
    for number in 0..100 {
        let made = building.checkout().join(nested(number));
        fs::create_dir_all(&made).unwrap();
        fs::write(made.join("file"), "text").unwrap();
        symlink("file", made.join("link")).unwrap();
    }
    let built = building.commit(at(2), |tree| record(key("a"), tree)).unwrap();
    assert_eq!(built.files().len(), 200);
    let checkout = built.checkout();
    let found = || store.find(key("a"), at(3)).unwrap();
    for number in [0, 57, 99] {
        let place = checkout.join(nested(number));
        let (file, link) = (place.join("file"), place.join("link"));
        let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let set_target = |target| {
            fs::remove_file(&link).unwrap();
            symlink(target, &link).unwrap();
        };
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        let damages: [(Action<'_>, Action<'_>); 5] = [
            (&|| fs::write(&file, "").unwrap(), &|| fs::write(&file, "text").unwrap()),
            (&|| set_mode(0o755), &|| set_mode(mode)),
            (&|| set_target("elif"), &|| set_target("file")),
            (&|| fs::remove_file(&link).unwrap(), &|| symlink("file", &link).unwrap()),
            (&|| fs::create_dir(place.join("new")).unwrap(), &|| fs::remove_dir(place.join("new")).unwrap()),
        ];
        for (at, (damage, repair)) in damages.iter().enumerate() {
            assert_eq!(found().expect("an undamaged layer").files(), built.files());
            damage();
            assert!(found().is_none(), "damage {at} in directory {number} is not seen");
            repair();
        }
    }
    assert!(found().is_some());
}

#[test]
fn a_layer_is_found_while_others_list_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(dir.path()).unwrap();
    drop(build(&store, "a", 10, 1));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    store.list().unwrap();
                }
            });
        }
        let found = (0..300).filter(|second| store.find(key("a"), at(*second)).unwrap().is_some()).count();
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(found, 300);
    });
}

#[test]
fn a_view_leaves_the_modes_of_the_checkouts_directories() {
    let repository = Repository::new(&[("frontend/package.json", "{}")]);
    let dir = tempfile::tempdir().unwrap();
    let (layer, checkout) = (dir.path().join("layer"), dir.path().join("checkout"));
    fs::create_dir_all(layer.join("frontend/node_modules")).unwrap();
    fs::write(layer.join("frontend/node_modules/a.js"), "layer").unwrap();
    for (path, mode) in [("frontend", 0o755), ("frontend/node_modules", 0o750)] {
        fs::set_permissions(layer.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(&checkout).unwrap();
    lay_out(&repository.git_dir, &repository.entries, &[&checkout]).unwrap();
    // A umask of 002 leaves directories like this.
    fs::set_permissions(checkout.join("frontend"), fs::Permissions::from_mode(0o775)).unwrap();
    let state = CheckoutState::record(checkout.clone(), ObjectFormat::Sha1, repository.entries.clone());
    copy_tree(&layer, &checkout).unwrap();
    assert_eq!(state.changed(), Vec::<&herma_core::RepoPath>::new());
    let mode = |path: &str| fs::metadata(checkout.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("frontend"), mode("frontend/node_modules")), (0o775, 0o750));
}

#[test]
fn a_file_of_the_checkout_wins_over_a_directory_of_the_layer() {
    let dir = tempfile::tempdir().unwrap();
    let (layer, checkout) = (dir.path().join("layer"), dir.path().join("checkout"));
    fs::create_dir_all(layer.join("generated/deep")).unwrap();
    fs::write(layer.join("generated/deep/file"), "layer").unwrap();
    fs::write(layer.join("other"), "layer").unwrap();
    fs::create_dir(&checkout).unwrap();
    fs::write(checkout.join("generated"), "tracked").unwrap();
    copy_tree(&layer, &checkout).unwrap();
    assert_eq!(fs::read_to_string(checkout.join("generated")).unwrap(), "tracked");
    assert_eq!(fs::read_to_string(checkout.join("other")).unwrap(), "layer");
}

#[test]
fn a_tree_above_its_limits_is_refused_with_the_first_path_above_them() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        // Apparent bytes count: the file is a hole.
        fs::File::create(dir.path().join(name)).unwrap().set_len(1 << 40).unwrap();
    }
    fs::hard_link(dir.path().join("c"), dir.path().join("d\u{1b}[2J")).unwrap();
    let parts = [("home", dir.path())];
    let few_entries = TreeLimits { max_entries: 2, ..TreeLimits::default() };
    let too_many = summarize_within(&parts, &few_entries).unwrap_err();
    assert!(matches!(too_many, TreeError::TooManyEntries { max: 2, .. }), "{too_many}");
    // Each path of one byte counts two: with what ends it.
    let short_paths = TreeLimits { max_path_bytes: 3, max_bytes: u64::MAX, ..TreeLimits::default() };
    let too_long = summarize_within(&parts, &short_paths).unwrap_err();
    assert!(matches!(too_long, TreeError::TooLongPaths { max: 3, .. }), "{too_long}");
    let large = summarize(&parts).unwrap_err().to_string();
    assert!(large.contains("`home/a`"), "{large}");
    let links = TreeLimits { max_bytes: 7 << 39, ..TreeLimits::default() };
    let error = summarize_within(&parts, &links).unwrap_err();
    assert!(matches!(&error, TreeError::TooManyBytes { path, .. } if path.starts_with("home")), "{error}");
    assert!(error.to_string().contains("`home/d\\u{1b}[2J`"), "{error}");
}

#[test]
fn a_deadline_and_a_cancellation_end_every_walk() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "text").unwrap();
    let to = dir.path().join("to");
    let late = TreeLimits { deadline: Some(Instant::now()), ..TreeLimits::default() };
    let cancelled = TreeLimits { is_cancelled: &|| true, ..TreeLimits::default() };
    let walks = |limits: &TreeLimits<'_>| {
        let summary = summarize_within(&[("home", dir.path())], limits).map(drop);
        [summary.unwrap_err(), copy_tree_within(dir.path(), &to, limits).map(drop).unwrap_err()]
    };
    assert!(walks(&late).iter().all(|error| matches!(error, TreeError::TimedOut)));
    assert!(walks(&cancelled).iter().all(|error| matches!(error, TreeError::Cancelled)));
}
