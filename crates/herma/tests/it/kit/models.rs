//! A home with a model: a scripted upstream, its configuration, and the admission that a person signed.

use super::Herma;

/// The terms that name the model.
pub(crate) const MODEL: (&str, &str) = ("model", "{ provider: rehearsal, model: m }");

/// A script of the upstream that answers every question with the same words.
pub(crate) const ANSWERS: &str = "\
name: answers
repeat: true
models: [m, small, other]
turns:
  - say: I am ready.
    usage: { input: 7, output: 5 }
";

/// A script of the upstream whose answers are as long as they may be, up to a thousand tokens.
pub(crate) const LONG_ANSWERS: &str = concat!(
    "name: long\nrepeat: true\nmodels: [m]\nturns:\n  - say: \"",
    include_str!("long_answer.txt"),
    "\"\n"
);

/// The configuration of a router with the scripted upstream `rehearsal`.
pub(crate) const ROUTER: &str = "\
state = \"state\"

[listen]
address = \"127.0.0.1:4000\"

[upstreams.rehearsal]
provider = \"scripted\"
scripts = [\"answers.yaml\"]

[models.m]
chain = [\"rehearsal/m\"]
aliases = [\"coder\"]

[prices]
\"rehearsal/m\" = { input = \"1.00\", output = \"2.00\", cached_input = \"0.10\" }
";

impl Herma {
    /// A home whose router answers by this script, with the model `rehearsal/m` admitted by alice.
    pub(crate) fn with_model(script: &str) -> Self {
        let herma = Self::new();
        herma.let_in("alice", None);
        herma.configure(ROUTER, script);
        herma.admit_model("rehearsal/m", &[]);
        herma
    }

    /// Writes the router's configuration and the upstream's script into the home.
    pub(crate) fn configure(&self, router: &str, script: &str) {
        std::fs::write(self.marked_home().join("router.toml"), router).unwrap();
        std::fs::write(self.home().join("answers.yaml"), script).unwrap();
    }

    /// Writes the admission of a model and has alice sign it.
    pub(crate) fn admit_model(&self, model: &str, more: &[&str]) {
        let mut args = vec!["admit", "model", model, "--json", "--network", "loopback"];
        for otherwise in [["--credential-source", "none"], ["--review-trigger", "herma_version=0.1"]] {
            if !more.contains(&otherwise[0]) {
                args.extend(otherwise);
            }
        }
        args.extend(more);
        let drafted = self.json(&args);
        let code = &drafted["digest"].as_str().unwrap()["sha256:".len()..][..6];
        let signed = self.run_as("alice", &["admit", "sign", "model", model, "--code", code]);
        assert_eq!(signed.code, Some(0), "{signed:#?}");
    }
}
