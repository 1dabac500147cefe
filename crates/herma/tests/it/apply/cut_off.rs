//! A kill in the middle leaves nothing that cannot be told: what is applied is taken back, or was never begun.

use std::fs;
use std::path::Path;

use super::{Scene, code};
use crate::kit::{ON_REPOSITORY, fix_and};

/// So many files make an application long enough to be killed in its middle.
const FILES: usize = 200;

fn many() -> Scene {
    let terms = [&ON_REPOSITORY[..], &[("allowed_paths", "[\"**\"]")]].concat();
    let steps = [
        "- shell: 'for f in many/*; do echo changed > $f; done; mkdir fresh; for n in $(seq 200); do echo new > fresh/$n; done'",
    ];
    Scene::with(&fix_and(&steps), &terms, |dir| {
        fs::create_dir(dir.join("many")).unwrap();
        for n in 0..FILES {
            fs::write(dir.join(format!("many/{n}")), "as it was\n").unwrap();
        }
    })
}

fn changed(dir: &Path) -> usize {
    let is_new = |n: &usize| fs::read(dir.join(format!("many/{n}"))).is_ok_and(|text| text == b"changed\n");
    (0..FILES).filter(is_new).count()
}

#[test]
fn an_application_that_is_killed_is_taken_back() {
    let scene = many();
    let before = scene.repository.picture();
    let (id, repo) = (scene.id(), scene.repository.dir.to_str().unwrap().to_owned());
    let mut in_the_middle = 0;
    for at in [1, 30, 90, 150, FILES] {
        let ended =
            scene.herma.kill_typing(&code(&scene.run.bundle), &["apply", &id, "--repo", &repo], || {
                changed(&scene.repository.dir) >= at
                    || fs::read_dir(scene.repository.dir.join("fresh")).is_ok()
            });
        if ended.code.is_none() && scene.repository.picture() != before {
            let record = fs::read_to_string(scene.record().join("record.json")).unwrap();
            if record.contains("\"state\": \"applying\"") {
                in_the_middle += 1;
                let refused = scene.apply(&[]);
                assert_eq!(refused.code, Some(3), "{refused:#?}");
                assert!(refused.stderr.contains("was cut off before it was complete"), "{refused:#?}");
                assert!(refused.stderr.contains("`herma apply --undo"), "{refused:#?}");
            }
        }
        if scene.record().join("record.json").exists() {
            scene.applied(&["--undo"]);
        }
        assert_eq!(scene.repository.picture(), before, "killed at {at}");
    }
    assert!(in_the_middle > 0, "no kill was in the middle");
    // The same for an undo.
    for at in [150, 60, 1] {
        scene.applied(&[]);
        scene.herma.kill_typing(&code(&scene.run.bundle), &["apply", "--undo", &id], || {
            changed(&scene.repository.dir) <= at
        });
        if scene.record().join("record.json").exists() {
            scene.applied(&["--undo"]);
        }
        assert_eq!(scene.repository.picture(), before, "an undo that was killed at {at}");
    }
}

/// The states that a kill can leave, made by hand.
#[test]
fn a_file_that_was_being_written_is_removed_and_an_edit_of_the_person_is_not() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    let original = fs::read(scene.repository.dir.join("slugify.sh")).unwrap();
    scene.applied(&[]);
    let record = scene.record().join("record.json");
    let complete = fs::read_to_string(&record).unwrap();
    let cut_off = complete.replace("\"state\": \"applied\"", "\"state\": \"applying\"");
    assert_ne!(cut_off, complete);
    let aside = scene.repository.dir.join(format!(".herma-apply-{}-0", scene.run.report.run_id.short()));
    let after = fs::read(scene.repository.dir.join("slugify.sh")).unwrap();

    // Exchanged, and the old file not removed yet.
    fs::write(&record, &cut_off).unwrap();
    fs::write(&aside, &original).unwrap();
    // The person saved a version in that moment: nothing is removed, and the message names the file.
    fs::write(&aside, "an edit of the person\n").unwrap();
    scene.refused(&["--undo"], 3, "a version of it that you saved meanwhile is beside it");
    fs::write(&aside, &original).unwrap();
    scene.applied(&["--undo"]);
    assert_eq!(scene.repository.picture(), before);

    // Not in its place yet, and half written.
    scene.applied(&[]);
    fs::write(&record, &cut_off).unwrap();
    fs::write(scene.repository.dir.join("slugify.sh"), &original).unwrap();
    fs::write(&aside, &after[..after.len() / 2]).unwrap();
    scene.applied(&["--undo"]);
    let mut now = scene.repository.picture();
    let mode = before[Path::new("slugify.sh")].0;
    now.get_mut(Path::new("slugify.sh")).unwrap().0 = mode;
    assert_eq!(now, before);
}

#[test]
fn a_branch_that_was_cut_off_is_taken_back() {
    let scene = Scene::new();
    let before = scene.repository.picture();
    scene.applied(&["--branch", "b"]);
    let record = scene.record().join("record.json");
    let complete = fs::read_to_string(&record).unwrap();
    let cut_off = complete.replace("\"state\": \"applied\"", "\"state\": \"applying\"");
    fs::write(&record, &cut_off).unwrap();
    // Killed between the objects and the ref.
    scene.repository.git(&["update-ref", "-d", "refs/heads/b"]);
    scene.refused(&["--branch", "b"], 3, "was cut off before it was complete");
    scene.applied(&["--undo"]);
    let objects = |picture: &std::collections::BTreeMap<std::path::PathBuf, (u32, Vec<u8>)>| {
        let paths = picture.keys().filter(|path| path.starts_with(".git/objects"));
        paths.cloned().collect::<Vec<_>>()
    };
    assert_eq!(objects(&scene.repository.picture()), objects(&before));
    assert_eq!(scene.repository.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
}
