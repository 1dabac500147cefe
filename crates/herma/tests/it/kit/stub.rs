//! The engine `stub`, let in as a person lets in any engine: its program, its signed admission, its switch.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use herma_core::Digest;

use super::{Ended, HERMA, Herma};

/// The path of the program, below the test's own directory.
const PROGRAM: &str = "home/programs/herma-stub";

/// The file with the approver's token in a copied home, for the tests that sign with it.
const TOKEN: &str = "token.txt";

/// A complete admission of `stub`, but for its program.
const ADMISSION: [&str; 7] = [
    "--source=https://example.org/owner/stub",
    "--pin=0.1.0",
    "--retrieval=cargo build -p herma-stub",
    "--license=Apache-2.0",
    "--license-resolved=true",
    "--identity=stub 0.1.0",
    "--review-trigger=digest_change",
];

impl Herma {
    /// A home where `stub` is admitted and switched on, and where an approver's token is in the environment. It has
    /// proven nothing yet.
    pub(crate) fn with_stub() -> Self {
        let mut herma = Self::new();
        herma.let_in_by_token("robin");
        herma.install_stub();
        herma.admit_stub(&[]);
        herma.json(&["engines", "enable", "stub", "--json"]);
        herma
    }

    /// The same, and `stub` has proven every stage up to this one. Proving is done once for each build; what it printed
    /// is in `prove-N.json`.
    pub(crate) fn stub_proven(stage: u8) -> Self {
        let digest = Digest::of(&std::fs::read(built_stub()).unwrap()).to_string();
        let mut herma = Self::from_template(&format!("stub-{}", &digest["sha256:".len()..][..12]), |made| {
            let mut made = made.twin();
            let token = made.let_in_by_token("robin");
            made.file(TOKEN, token);
            made.install_stub();
            made.admit_stub(&[]);
            made.json(&["engines", "enable", "stub", "--json"]);
            for stage in 1..=5 {
                let proven = made.prove(stage, &[]);
                assert_eq!(proven.code, Some(0), "{proven:#?}");
                made.file(&format!("prove-{stage}.json"), proven.stdout);
            }
        });
        herma.set("HERMA_APPROVER_TOKEN", std::fs::read_to_string(herma.at(TOKEN)).unwrap());
        // The admission names the place that the home was copied from.
        herma.admit_stub(&[]);
        for higher in stage + 1..=5 {
            std::fs::remove_file(herma.proof("stub", higher)).unwrap();
        }
        herma
    }

    /// The path of a stage's proof.
    pub(crate) fn proof(&self, engine: &str, stage: u8) -> PathBuf {
        self.home().join(format!("proofs/{engine}/stage-{stage}.json"))
    }

    /// Does something while the proof of a stage is put aside: every run at it is kept from its start.
    pub(crate) fn unproven<T>(&self, engine: &str, stage: u8, does: impl FnOnce() -> T) -> T {
        let (proof, aside) = (self.proof(engine, stage), self.at("proof-put-aside.json"));
        std::fs::rename(&proof, &aside).unwrap();
        let done = does();
        std::fs::rename(&aside, &proof).unwrap();
        done
    }

    /// `herma prove` for `stub`, to its end.
    pub(crate) fn prove(&self, stage: u8, options: &[&str]) -> Ended {
        let stage = stage.to_string();
        let args = ["prove", "--engine", "stub", "--stage", &stage, "--json"];
        self.run_patiently(&[&args, options].concat())
    }

    /// Runs a command to its end that takes longer than others: a proof, an installation, a run of a real agent.
    pub(crate) fn run_patiently(&self, args: &[&str]) -> Ended {
        self.start(args).end_patiently()
    }

    /// Another herma with the same home, to give other variables to.
    pub(crate) fn twin(&self) -> Self {
        Self {
            dir: Rc::clone(&self.dir),
            home: self.home.clone(),
            variables: self.variables.clone(),
            wrapper: self.wrapper.clone(),
            binary: self.binary.clone(),
        }
    }

    /// Makes an approver with a token, who signs every command from now on that names nobody else.
    pub(crate) fn let_in_by_token(&mut self, name: &str) -> String {
        let made = self.json(&["approver", "init", name, "--token", "--json"]);
        let token = made["token"].as_str().unwrap().to_owned();
        self.set("HERMA_APPROVER_TOKEN", &token);
        token
    }

    /// Copies the program of `stub` to where its admission names it.
    pub(crate) fn install_stub(&self) -> PathBuf {
        self.program(PROGRAM, &built_stub())
    }

    /// Writes and signs the admission of the program at its place. Each of `options` is one word, `--name=value`, and
    /// counts more than what is said otherwise.
    pub(crate) fn admit_stub(&self, options: &[&str]) {
        // A signed admission stays until it is revoked; the first time there is nothing to revoke.
        self.run(&["admissions", "revoke", "engine", "stub", "--reason", "another one is signed"]);
        let program = self.at(PROGRAM);
        let given = ["admit", "engine", "stub", "--json", "--program", program.to_str().unwrap()];
        let name = |option: &str| option.split('=').next().unwrap().to_owned();
        let said = |option: &&str| !options.iter().any(|other| name(other) == name(option));
        let usual = ADMISSION.into_iter().filter(said);
        let args: Vec<&str> = given.into_iter().chain(usual).chain(options.iter().copied()).collect();
        let draft = self.json(&args);
        assert!(draft["lacks"].is_null(), "{draft:#}");
        let signed = self.sign("engine", "stub");
        assert_eq!(signed["status"], "admitted", "{signed:#}");
    }

    /// Signs the admission in the home, with the code of its digest.
    pub(crate) fn sign(&self, kind: &str, name: &str) -> serde_json::Value {
        let shown = self.json(&["admissions", "show", kind, name, "--json"]);
        let code = &shown["digest"].as_str().unwrap()["sha256:".len()..][..6];
        self.json(&["admit", "sign", kind, name, "--code", code, "--json"])
    }
}

/// The program as it was built, beside the binary under test.
pub(crate) fn built_stub() -> PathBuf {
    let built = Path::new(HERMA).with_file_name("herma-stub");
    assert!(built.is_file(), "{} is not there: `cargo build -p herma-stub` makes it", built.display());
    built
}
