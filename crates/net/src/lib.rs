//! Shared by the network services of herma: listeners, long socket paths, idle timeouts,
//! and HTTP/1 whose request heads are validated before hyper reads them.

pub mod client;
pub mod head;
mod idle_timeout;
mod listener;
mod serve;
mod serve_single;
mod socket_path;
mod stream;
mod strict_stream;

pub use idle_timeout::IdleTimeout;
pub use listener::{Address, Listener, stopped};
pub use serve::{Options, serve};
pub use serve_single::{Pipelining, SingleOptions, SingleRequest, serve_single};
pub use socket_path::{MAX_SOCKET_PATH_BYTES, SocketDir, connect};
pub use stream::Stream;
