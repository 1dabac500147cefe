//! Properties of each destination that its callers decide by, as one table.

use herma_core::engine::DestinationKind;

/// One property that a destination has or lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Property {
    /// The process has a network namespace of its own, so that only the relayed ports lead out of it.
    NetworkNamespace,
    /// The process has a user namespace of its own.
    UserNamespace,
    /// The system directories of this machine are visible inside.
    HostSystem,
    /// Containers are made of an image, which must be named by digest.
    Image,
    /// Several jobs of one run can run at once without ending each other.
    ParallelJobs,
    /// `/dev` is mounted read-only.
    ReadOnlyDevices,
    /// Directories of a job can be overlays, if the kernel permits it.
    Overlays,
    /// Its processes are children of this machine's kernel, found in `/proc` by the run's name.
    LocalProcesses,
}

/// The properties of one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestinationCapabilities {
    kind: DestinationKind,
    properties: &'static [Property],
}

impl DestinationCapabilities {
    /// The properties of a destination by its kind.
    #[must_use]
    pub fn of(kind: DestinationKind) -> Self {
        use Property::{
            HostSystem, Image, LocalProcesses, NetworkNamespace, Overlays, ParallelJobs, ReadOnlyDevices,
            UserNamespace,
        };
        let properties: &[Property] = match kind {
            DestinationKind::Host => &[HostSystem, LocalProcesses],
            DestinationKind::Sandbox => &[
                NetworkNamespace,
                UserNamespace,
                HostSystem,
                ParallelJobs,
                ReadOnlyDevices,
                LocalProcesses,
                Overlays,
            ],
            // The runtime of a container makes /dev, which belongs to root.
            DestinationKind::Docker | DestinationKind::Kubernetes => &[NetworkNamespace, Image, ParallelJobs],
        };
        Self { kind, properties }
    }

    /// Whether isolation layers surround the process; without them there is nothing to probe.
    #[must_use]
    pub fn confines(self) -> bool {
        self.kind.confines()
    }

    /// Whether the process has its own network namespace, and so reaches only the run's router and egress proxy.
    #[must_use]
    pub fn has_network_namespace(self) -> bool {
        self.has(Property::NetworkNamespace)
    }

    /// Whether the process has its own user namespace.
    #[must_use]
    pub fn has_user_namespace(self) -> bool {
        self.has(Property::UserNamespace)
    }

    /// Whether the programs of this machine's system directories are there inside.
    #[must_use]
    pub fn shows_host_system(self) -> bool {
        self.has(Property::HostSystem)
    }

    /// Whether an image must be named for it.
    #[must_use]
    pub fn needs_image(self) -> bool {
        self.has(Property::Image)
    }

    /// Whether several jobs of one run can run at once.
    #[must_use]
    pub fn runs_jobs_in_parallel(self) -> bool {
        self.has(Property::ParallelJobs)
    }

    /// Whether `/dev` is mounted read-only inside.
    #[must_use]
    pub fn has_read_only_devices(self) -> bool {
        self.has(Property::ReadOnlyDevices)
    }

    /// Whether a directory of a job can be an overlay, if the kernel permits it.
    #[must_use]
    pub fn mounts_overlays(self) -> bool {
        self.has(Property::Overlays)
    }

    /// Whether its processes are seen in this machine's `/proc`.
    #[must_use]
    pub fn has_local_processes(self) -> bool {
        self.has(Property::LocalProcesses)
    }

    fn has(self, property: Property) -> bool {
        self.properties.contains(&property)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_destination_that_confines_has_a_network_namespace() {
        for kind in DestinationKind::ALL {
            let capabilities = DestinationCapabilities::of(kind);
            assert_eq!(capabilities.confines(), capabilities.has_network_namespace(), "{kind:?}");
            assert_eq!(capabilities.confines(), kind != DestinationKind::Host, "{kind:?}");
        }
    }
}
