//! The guided set-up: from an empty home to a first run. Each step does what a single command does, and a step that is done is
//! not done again, so that an interrupted set-up continues where it stopped. No terminal: questions go to a [`Person`], progress
//! to a [`Watch`].

mod admit;
mod agent;
mod approver;
mod choices;
mod defaults;
mod error;
mod inspect;
mod model;
mod page;
mod person;
mod prove;
mod repository;
mod session;
mod settings_file;
mod shell;
mod steps;
mod target;
mod watch;

pub use choices::{Choices, Credential, DEFAULT_ENGINE, Landing, ProviderChoice};
pub use error::QuickstartError;
pub use page::Page;
pub use person::{Person, Unanswered};
pub use steps::quickstart;
pub use watch::Watch;
