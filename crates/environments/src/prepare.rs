//! Finds everything on the machine that a definition names.

use herma_core::environment::EnvironmentDefinition;

use crate::build::EnvironmentPlan;
use crate::registries::{ClientConfiguration, RegistryAccess, RegistryError};
use crate::tools::{FoundTool, OperatorTool, ToolError, find_all};

/// A definition whose tools and registries were found.
#[derive(Clone, Debug)]
pub struct PreparedEnvironment {
    definition: EnvironmentDefinition,
    tools: Vec<FoundTool>,
    registries: Vec<RegistryAccess>,
}

/// A part of a definition is not there. Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// A tool is missing or cannot be mounted.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A registry cannot be used.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl PreparedEnvironment {
    /// Finds the tools and registries of a definition.
    pub fn find(
        definition: EnvironmentDefinition,
        clients: &ClientConfiguration<'_>,
        own: &[OperatorTool],
    ) -> Result<Self, PrepareError> {
        let tools = find_all(&definition.tools, clients.host, own)?;
        let find = |registry| RegistryAccess::find(registry, clients);
        let registries = definition.registries.iter().copied().map(find).collect::<Result<_, _>>()?;
        Ok(Self { definition, tools, registries })
    }

    /// The same where an image brings the tools: only the registries are looked for.
    pub fn find_registries(
        definition: EnvironmentDefinition,
        clients: &ClientConfiguration<'_>,
    ) -> Result<Self, PrepareError> {
        let find = |registry| RegistryAccess::find(registry, clients);
        let registries = definition.registries.iter().copied().map(find).collect::<Result<_, _>>()?;
        Ok(Self { definition, tools: Vec::new(), registries })
    }

    /// The plan of a build.
    #[must_use]
    pub fn plan(&self) -> EnvironmentPlan<'_> {
        EnvironmentPlan { definition: &self.definition, tools: &self.tools, registries: &self.registries }
    }

    /// Sentences for the operator, before the build: registries that need a credential or are not encrypted.
    #[must_use]
    pub fn notices(&self) -> Vec<&str> {
        self.registries.iter().flat_map(|registry| registry.notices.iter().map(String::as_str)).collect()
    }
}
