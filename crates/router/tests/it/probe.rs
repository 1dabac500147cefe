//! Probes of models, through a router with scripts behind it, and of servers with arbitrary answers.

mod anything;
mod blocked;
mod kit;
mod servers;
mod shapes;
