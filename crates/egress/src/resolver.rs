//! Name resolution. The proxy resolves once per request, and connects to nothing but the answer.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::addresses::MAX_ANSWERS;
use crate::host::Name;

/// Concurrent lookups. One that hangs holds its permit until the system gives up.
const MAX_LOOKUPS: usize = 16;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves names.
pub trait Resolve: Send + Sync {
    /// All addresses of a name, or one more than can be checked. The caller bounds the time.
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Clone, Debug)]
pub struct System {
    permits: Arc<Semaphore>,
}

impl Default for System {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = self.permits.clone().acquire_owned().await.map_err(io::Error::other)?;
            // The final dot makes the name absolute: the system's search list is not used.
            let whole = format!("{name}.");
            let asked = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let mut answers = Vec::new();
                for answer in (whole.as_str(), 0).to_socket_addrs()? {
                    if !answers.contains(&answer.ip()) {
                        answers.push(answer.ip());
                    }
                    if answers.len() > MAX_ANSWERS {
                        break;
                    }
                }
                Ok(answers)
            });
            asked.await.map_err(io::Error::other)?
        })
    }
}
