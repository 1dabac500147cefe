//! The list of all engines. Adding one is one line here and one file beside it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use herma_core::engine::EngineName;

use crate::acp::{self, Acp, AcpAgent};
use crate::case::{self, Case};
use crate::claude::{self, Claude};
use crate::codex::{self, Codex};
use crate::engine::Engine;
use crate::fake::Fake;
use crate::hermes::{self, Hermes};
use crate::installed::AgentEngine;
use crate::opencode::{self, OpenCode};
use crate::pi::{self, Pi};
use crate::stub::{self, Stub};

/// Creates an engine from its name and its admitted program.
type Make = fn(EngineName, Option<PathBuf>) -> Box<dyn Engine>;

/// The engines with a program of their own.
const EXTERNAL: &[(&str, Make)] = &[
    (stub::NAME, |name, program| Box::new(Stub::new(name, program))),
    (codex::NAME, |name, program| Box::new(AgentEngine::<Codex>::new(name, program))),
    (claude::NAME, |name, program| Box::new(AgentEngine::<Claude>::new(name, program))),
    (opencode::NAME, |name, program| Box::new(AgentEngine::<OpenCode>::new(name, program))),
    (pi::NAME, |name, program| Box::new(AgentEngine::<Pi>::new(name, program))),
    (hermes::NAME, |name, program| Box::new(AgentEngine::<Hermes>::new(name, program))),
    (case::NAME, |name, program| Box::new(Case::new(name, program))),
];

/// Every engine that this herma knows.
pub struct Registry {
    engines: Vec<Box<dyn Engine>>,
}

impl Registry {
    /// All engines; `herma` is the path of the running program, which is what `fake` runs and whose digest is kept in
    /// `memory`, if anywhere, and `programs` are those that were admitted. An engine without a program is known all the
    /// same, and cannot run.
    ///
    /// `agents` are those that the operator configured for `acp`, each an engine of its own.
    #[must_use]
    pub fn new(
        herma: PathBuf,
        memory: Option<PathBuf>,
        mut programs: BTreeMap<EngineName, PathBuf>,
        agents: &BTreeMap<EngineName, AcpAgent>,
    ) -> Self {
        let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(Fake::new(herma, memory))];
        engines.extend(EXTERNAL.iter().filter_map(|(name, make)| {
            let name: EngineName = name.parse().ok()?;
            let program = programs.remove(&name);
            Some(make(name, program))
        }));
        engines.extend(acp::engines(agents).into_iter().map(|(name, agent)| {
            let program = programs.remove(&name);
            Box::new(Acp::new(name, agent, program)) as Box<dyn Engine>
        }));
        Self { engines }
    }

    /// The engine with this name.
    #[must_use]
    pub fn get(&self, name: &EngineName) -> Option<&dyn Engine> {
        self.engines.iter().map(AsRef::as_ref).find(|engine| engine.name() == *name)
    }

    /// The names of all engines, the default first.
    #[must_use]
    pub fn names(&self) -> Vec<EngineName> {
        self.engines.iter().map(|engine| engine.name()).collect()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn registry() -> Registry {
        Registry::new("/herma".into(), None, BTreeMap::new(), &BTreeMap::new())
    }

    #[test]
    fn the_default_engine_comes_first_and_names_are_unique() {
        let registry = registry();
        let names = registry.names();
        assert_eq!(names[0], EngineName::fake());
        assert_eq!(names.len(), 1 + EXTERNAL.len() + 1, "a name in the table is not one");
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
            assert_eq!(registry.get(name).unwrap().name(), *name);
        }
        assert!(registry.get(&"no-such-engine".parse().unwrap()).is_none());
    }

    #[test]
    fn only_built_in_engines_run_unconfined() {
        let registry = registry();
        for name in registry.names() {
            let engine = registry.get(&name).unwrap();
            assert_eq!(engine.may_run_unconfined(), engine.built_in(), "{name}");
        }
    }

    #[test]
    fn a_program_reaches_the_engine_that_it_was_admitted_for_and_no_other() {
        let program = |name: &str| (name.parse().unwrap(), PathBuf::from(format!("/programs/{name}")));
        let registry = Registry::new(
            "/herma".into(),
            None,
            ["stub", "codex", "claude", "opencode", "pi", "hermes", "case", "acp", "fake", "no-such-engine"]
                .map(program)
                .into(),
            &BTreeMap::new(),
        );
        for name in registry.names() {
            let engine = registry.get(&name).unwrap();
            let expected = (!engine.built_in()).then(|| PathBuf::from(format!("/programs/{name}")));
            assert_eq!(engine.program().map(ToOwned::to_owned), expected);
        }
        assert!(registry.get(&"no-such-engine".parse().unwrap()).is_none());
    }
}
