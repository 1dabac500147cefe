//! Fuzzes the verification of bundles: nothing but the bundle that was signed holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use herma_core::RepoPath;
use herma_evidence::Trust;
use herma_trust::verify_bundle;

use crate::sample;

/// Files by their names in the bundle.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A bundle of a run that passed, and whose signature counts.
static PRISTINE: LazyLock<(Files, Trust)> = LazyLock::new(|| {
    let sample = sample::pass(|_| {});
    let mut files = Files::new();
    read(&sample.dir(), Path::new(""), &mut files);
    (files, Trust { keys: vec![sample.key.public()], approvers: Vec::new() })
});

/// A bundle is changed as the input says, line by line, and holds only if it is as it was signed.
///
/// `=== NAME` starts the content of a file, `--- NAME` removes one, `^^^ NAME OFFSET BITS` flips bits, `@@@ NAME` puts
/// a link to the file in its place.
pub fn bundle(input: &[u8]) {
    let (pristine, trust) = &*PRISTINE;
    let (files, links) = change(pristine.clone(), input);
    let temp = tempfile::tempdir().expect("a temporary directory");
    let (dir, outside) = (temp.path().join("bundle"), temp.path().join("outside"));
    fs::create_dir(&dir).expect("a directory");
    for (at, (name, bytes)) in files.iter().enumerate() {
        let file = dir.join(name);
        let parent = file.parent().unwrap_or(&dir);
        // A name that is too long, or both a file and a directory, is no bundle that could be.
        if fs::create_dir_all(parent).is_err() {
            return;
        }
        let written = if links.contains(name) {
            let target = outside.with_extension(at.to_string());
            fs::write(&target, bytes).and_then(|()| std::os::unix::fs::symlink(&target, &file))
        } else {
            fs::write(&file, bytes)
        };
        if written.is_err() {
            return;
        }
    }
    let list = verify_bundle(&dir, trust, None, None);
    let same = files == *pristine && links.is_empty();
    let failed: Vec<_> = list.failed().map(|check| (check.name, &check.detail)).collect();
    assert_eq!(list.ok(), same, "{failed:?}");
    assert_eq!(failed.is_empty(), same, "what does not hold is named");
}

/// The files after the changes, and which of them are links.
fn change(mut files: Files, input: &[u8]) -> (Files, Vec<PathBuf>) {
    let (mut links, mut open) = (Vec::new(), None);
    for line in input.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        let mut words = text.trim_end_matches('\n').splitn(2, ' ');
        let command = words.next().filter(|word| matches!(*word, "===" | "---" | "^^^" | "@@@"));
        let rest = words.next().unwrap_or_default();
        let Some(command) = command.filter(|_| !rest.is_empty()) else {
            if let Some(bytes) = open.as_ref().and_then(|name| files.get_mut(name)) {
                bytes.extend_from_slice(line);
            }
            continue;
        };
        let mut words = rest.split(' ');
        let Some(name) = words.next().and_then(RepoPath::new).map(|name| name.to_string()) else {
            continue;
        };
        let name = PathBuf::from(name);
        match command {
            "===" => {
                files.insert(name.clone(), Vec::new());
                open = Some(name);
            }
            "---" => drop(files.remove(&name)),
            "@@@" if files.contains_key(&name) => links.push(name),
            _ => {
                let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
                let (offset, bits) = (number(), number());
                if let Some(bytes) = files.get_mut(&name).filter(|bytes| !bytes.is_empty()) {
                    let at = offset % bytes.len();
                    bytes[at] ^= u8::try_from(bits % 256).unwrap_or(1);
                }
            }
        }
    }
    links.retain(|name| files.contains_key(name));
    (files, links)
}

fn read(root: &Path, below: &Path, files: &mut Files) {
    for entry in fs::read_dir(root.join(below)).expect("a directory of the sample") {
        let entry = entry.expect("an entry of the sample");
        let name = below.join(entry.file_name());
        if entry.file_type().expect("a kind of file").is_dir() {
            read(root, &name, files);
        } else {
            let bytes = fs::read(entry.path()).expect("a file of the sample");
            files.insert(name, bytes);
        }
    }
}
