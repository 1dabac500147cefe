//! Who turns a name into addresses. The proxy asks once for each request, and connects to nothing but the answer.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::addresses::MOST_ANSWERS;
use crate::host::Name;

/// The most names that the system is asked for at once. One that hangs holds its place until the system gives up.
const MOST_AT_ONCE: usize = 16;

/// Something that comes later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves names.
pub trait Resolve: Send + Sync {
    /// All addresses of a name, or one more than can be checked. The caller bounds the time.
    fn resolve<'a>(&'a self, name: &'a Name) -> Later<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Clone, Debug)]
pub struct System {
    room: Arc<Semaphore>,
}

impl Default for System {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a Name) -> Later<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let place = self.room.clone().acquire_owned().await.map_err(io::Error::other)?;
            // With the dot the name is whole: the system's search list cannot make another one of it.
            let whole = format!("{name}.");
            let asked = tokio::task::spawn_blocking(move || {
                let _place = place;
                let mut answers = Vec::new();
                for answer in (whole.as_str(), 0).to_socket_addrs()? {
                    if !answers.contains(&answer.ip()) {
                        answers.push(answer.ip());
                    }
                    if answers.len() > MOST_ANSWERS {
                        break;
                    }
                }
                Ok(answers)
            });
            asked.await.map_err(io::Error::other)?
        })
    }
}
