//! The list of all engines. Adding one is one line here and one file beside it.

use std::path::PathBuf;

use herma_model::engine::EngineName;

use crate::engine::Engine;
use crate::fake::Fake;

/// Every engine that this herma knows.
pub struct Registry {
    engines: Vec<Box<dyn Engine>>,
}

impl Registry {
    /// All engines; `herma` is the path of the running program, which is what `fake` runs.
    #[must_use]
    pub fn new(herma: PathBuf) -> Self {
        Self { engines: vec![Box::new(Fake::new(herma))] }
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
    use herma_model::engine::DestinationKind;

    use super::*;

    #[test]
    fn the_default_engine_comes_first_and_no_name_stands_there_twice() {
        let registry = Registry::new("/herma".into());
        let names = registry.names();
        assert_eq!(names[0], EngineName::fake());
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
            assert_eq!(registry.get(name).unwrap().name(), *name);
        }
        assert!(registry.get(&"no-such-engine".parse().unwrap()).is_none());
    }

    #[test]
    fn only_what_is_part_of_herma_runs_without_walls() {
        let registry = Registry::new("/herma".into());
        for name in registry.names() {
            let engine = registry.get(&name).unwrap();
            assert_eq!(engine.may_run_on(DestinationKind::Host), engine.built_in(), "{name}");
            assert!(engine.may_run_on(DestinationKind::Sandbox), "{name}");
        }
    }
}
