//! Actions of somebody else in a target at the moment of the ref transaction: between herma's last look and git's write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use herma_core::Blocker;

use crate::kit::{Herma, environment, fix_and, on_path};

/// The action, as a shell script in the target, and the blocker's text.
const AT_THE_MOMENT: &[(&str, &str, &str)] = &[
    (
        "a link at refs/heads",
        "mv .git/refs/heads ../heads; ln -s ../../../heads .git/refs/heads",
        "symbolic link",
    ),
    (
        "a link at objects/pack",
        "mv .git/objects/pack ../pack; ln -s ../../../pack .git/objects/pack",
        "symbolic link",
    ),
    ("a lock that stays", ": > .git/refs/heads/main.lock", "main.lock"),
    ("core.bare", "git config core.bare true", "git cannot read the target"),
];

/// A git for herma that runs the script `at-the-moment` once, before the first ref transaction.
fn interfering_git(herma: &mut Herma, dir: &std::path::Path) -> std::path::PathBuf {
    let (bin, script, git) = (herma.at("bin"), herma.at("at-the-moment"), on_path("git"));
    fs::create_dir(&bin).unwrap();
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *update-ref*--stdin*)\n  if [ -e '{script}' ]; then\n    mv '{script}' '{script}.run'; (cd '{dir}' && PATH=/usr/bin:/bin sh '{script}.run') < /dev/null > '{script}.log' 2>&1\n  fi;;\nesac\nexec '{git}' \"$@\"\n",
        script = script.display(),
        dir = dir.display(),
        git = git.display(),
    );
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(environment("PATH"));
    herma.set("PATH", path);
    script
}

#[test]
fn a_change_of_the_target_during_the_transaction_blocks_the_landing_with_a_cause() {
    for (what, meddle, said) in AT_THE_MOMENT {
        let (mut herma, owned) = Herma::with_target(&[]);
        let script = interfering_git(&mut herma, &owned.repository.dir);
        fs::write(&script, meddle).unwrap();
        let run = herma.approve_and_play(&fix_and(&[]));
        assert!(!script.exists(), "{what}: there was no transaction");
        run.assert_only(Blocker::SourceMutated);
        let detail = &run.report.blockers[0].detail;
        assert!(detail.starts_with("nothing landed: ") && detail.contains(said), "{what}: {detail}");
        assert!(detail.contains("run again"), "{what}: {detail}");
        assert!(
            run.report.landing.as_ref().is_none_or(|landing| !landing.landed),
            "{what}: {:#?}",
            run.report
        );
        let reference = format!(".git/refs/heads/herma/{}", run.report.run_id);
        assert!(!owned.repository.dir.join(reference).exists(), "{what}");
    }
}

/// Garbage collection removes objects that no ref names yet; the landing brings them again.
#[test]
fn a_garbage_collection_during_the_transaction_does_not_lose_the_landing() {
    let (mut herma, owned) = Herma::with_target(&[]);
    let script = interfering_git(&mut herma, &owned.repository.dir);
    fs::write(&script, "git gc -q --prune=now").unwrap();
    let run = herma.approve_and_play(&fix_and(&[]));
    assert!(!script.exists(), "there was no transaction");
    run.assert_pass();
    let reference = format!("refs/heads/herma/{}", run.report.run_id);
    let landed = owned.repository.git(&["rev-parse", &reference]);
    assert_eq!(landed.trim(), run.report.landing.as_ref().unwrap().commit);
    assert_eq!(owned.repository.git(&["fsck", "--full", "--strict", "--no-dangling"]), "");
}
