//! Every destination of an installation: opens one by its kind, and reaps through all of them.

use std::ffi::OsString;
use std::path::PathBuf;

use herma_core::RunId;
use herma_core::engine::DestinationKind;

use crate::capabilities::DestinationCapabilities;
use crate::destination::{Destination, ReapError, Unready};
use crate::docker::{Docker, DockerOptions, ImagePin};
use crate::host::Host;
use crate::sandbox::Sandbox;

/// The image and the runtime of containers, as an operator names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerOptions {
    /// The image that every container is made of.
    pub image: Option<ImagePin>,
    /// The runtime, such as `runsc`; the daemon's default if none is named.
    pub runtime: Option<String>,
}

/// The settings that destinations need from the installation.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// herma's own binary.
    pub herma: PathBuf,
    /// The directories in which tools are looked up.
    pub search_path: OsString,
    /// The socket of Docker's daemon, as in `DOCKER_HOST`.
    pub docker_socket: Option<String>,
    /// A directory of herma's own for small files that all containers see.
    pub docker_files: PathBuf,
}

impl Catalog {
    /// The destination of this kind, or why there is none.
    pub fn open(
        &self,
        kind: DestinationKind,
        container: ContainerOptions,
    ) -> Result<Box<dyn Destination>, Unready> {
        match kind {
            DestinationKind::Host => Ok(Box::new(Host::new(self.herma.clone()))),
            DestinationKind::Sandbox => Ok(Box::new(Sandbox::find(self.herma.clone(), &self.search_path))),
            DestinationKind::Docker => Ok(Box::new(self.docker(container))),
            DestinationKind::Kubernetes => Err(unavailable(kind)),
        }
    }

    /// Ends everything that a run left whose herma is dead. `planned` is the destination of the run, where that is known:
    /// a remote service is asked only about runs that it may have.
    pub fn reap(&self, run: RunId, planned: Option<DestinationKind>) -> Result<(), ReapError> {
        let may_have = |kind: DestinationKind| {
            DestinationCapabilities::of(kind).has_local_processes()
                || planned.is_none_or(|planned| planned == kind)
        };
        self.all().iter().filter(|each| may_have(each.kind())).try_for_each(|each| reap(each.as_ref(), run))
    }

    /// Ends the processes of this machine that a run left, and asks no remote service.
    pub fn reap_local(&self, run: RunId) -> Result<(), ReapError> {
        let all = self.all();
        all.iter()
            .filter(|each| each.capabilities().has_local_processes())
            .try_for_each(|each| reap(each.as_ref(), run))
    }

    /// Containers first: a process of this machine may serve one.
    fn all(&self) -> [Box<dyn Destination>; 3] {
        [
            Box::new(self.docker(ContainerOptions::default())),
            Box::new(Sandbox::find(self.herma.clone(), &self.search_path)),
            Box::new(Host::new(self.herma.clone())),
        ]
    }

    fn docker(&self, ContainerOptions { image, runtime }: ContainerOptions) -> Docker {
        let (socket, files) = (self.docker_socket.clone(), self.docker_files.clone());
        Docker::new(self.herma.clone(), DockerOptions { image, socket, runtime, files })
    }
}

/// Whether this version of herma has the destination.
#[must_use]
pub fn is_available(kind: DestinationKind) -> bool {
    kind != DestinationKind::Kubernetes
}

fn unavailable(kind: DestinationKind) -> Unready {
    Unready {
        what: format!("this version of herma has no destination `{}`", kind.as_str()),
        next_step: "choose `sandbox` or `docker`".to_owned(),
    }
}

/// A service that does not answer leaves nothing to do: its processes end when their herma dies.
fn reap(destination: &dyn Destination, run: RunId) -> Result<(), ReapError> {
    match destination.reap(run) {
        Ok(_) | Err(ReapError::Unreachable(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
