//! Poisonings: an agent changes what its tests run with, so that they pass in its own view. None of that reaches verification or the
//! next run, whether the environment is mounted or copied.

use herma_core::Blocker;
use serde_json::json;

use super::attempts::{Poison, table};
use crate::kit::{Finished, Herma};

/// One directory that is large enough to be mounted, and others that are copied. Their tests run those of the fixture.
const SETUP: &str = r"
for n in $(seq 80); do mkdir -p node_modules/p$n && echo 'sh tests/slugify_test.sh' > node_modules/p$n/run.sh; done
python3 -m venv --without-pip .venv && cat > $(echo .venv/lib/python3*/site-packages)/runner.py <<'END'
import subprocess, sys
try: import conftest
except ImportError: pass
sys.exit(subprocess.call(['sh', 'tests/slugify_test.sh']))
END
mkdir -p target ~/.cargo ~/.local/bin && echo 'sh tests/slugify_test.sh' > target/run && echo '# nothing' > ~/.cargo/env
";

fn definition() -> String {
    let [setup, cache] = [json!([SETUP]), json!([".venv", "node_modules", "target/*"])];
    format!("{{ setup: {setup}, cache: {cache}, inputs: [deps.list] }}")
}

fn play(herma: &Herma, poison: &Poison, place: &str) -> Finished {
    let shell = format!("{}\n({}) && echo passes-in-its-own-view", poison.shell, poison.verify);
    let script = json!({ "steps": [
        { "append": { "path": "slugify.sh", "text": "# not fixed\n" } },
        { "shell": { "command": shell, "must": true } },
    ] });
    let verify = json!([poison.verify]).to_string();
    let terms = [
        ("environment", &*definition()),
        ("verify", &verify),
        ("allowed_paths", "[slugify.sh, deps.list, target, src/**]"),
        ("destination", place),
    ];
    herma.play(&script.to_string(), &terms)
}

/// Makes each in this destination.
pub(super) fn none_reaches_verification(herma: &Herma, place: &str) {
    for poison in table().poisons {
        let run = play(herma, &poison, place);
        assert!(
            run.engine_said().contains("passes-in-its-own-view"),
            "{}: {}",
            poison.name,
            run.engine_said()
        );
        let ends = Blocker::ALL.iter().find(|blocker| blocker.as_str() == poison.ends);
        assert_eq!(run.report.blockers.len(), 1, "{}: {:#?}", poison.name, run.report.blockers);
        run.assert_only(*ends.unwrap());
        let expected: &[Option<i32>] = if poison.ends == "verification_failed" { &[Some(1)] } else { &[] };
        let codes: Vec<_> = run.report.verification.iter().map(|command| command.exit_code).collect();
        assert_eq!(codes, expected, "{}: {:#?}", poison.name, run.report.verification);
    }
}

#[test]
fn no_poisoned_environment_reaches_verification() {
    none_reaches_verification(&Herma::new(), "sandbox");
}

#[test]
fn no_poisoned_environment_of_a_normal_user_reaches_verification() {
    none_reaches_verification(&Herma::of_normal_user().0, "sandbox");
}
