//! A failed command: the error, the exit code and the next step.

use std::fmt;

use herma_api::{
    ApprovalLookupError, ContractError, DestinationError, DirectoryError, EngineRequestError, QuestionError,
    ReportError, RouterError, RouterProbeError, RunLookupError, SheetError,
};
use herma_core::store::{StoreError, StoreErrorKind};
use herma_engines::EngineError;
use herma_harness::{ChoiceError, OpenError, OrderError};
use herma_home::HomeError;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// The error.
    pub(crate) what: String,
    /// The next step.
    pub(crate) next_step: Option<String>,
}

impl Failure {
    /// Invalid usage or input; nothing was done.
    pub(crate) const BAD_INPUT: u8 = 2;
    /// A precondition does not hold; nothing was done.
    pub(crate) const BLOCKED: u8 = 3;
    /// An internal or system error.
    pub(crate) const INTERNAL: u8 = 4;

    pub(crate) fn bad_input(what: impl fmt::Display) -> Self {
        Self { code: Self::BAD_INPUT, what: what.to_string(), next_step: None }
    }

    /// Arguments that clap does not understand. Its first paragraph says what is wrong, the others what would be right.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut paragraphs = text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
        let what = paragraphs.next().unwrap_or_default();
        let next_step = paragraphs.collect::<Vec<_>>().join(" ");
        Self::bad_input(what.trim_start_matches("error: ")).hint(next_step)
    }

    pub(crate) fn blocked(what: impl fmt::Display) -> Self {
        Self { code: Self::BLOCKED, what: what.to_string(), next_step: None }
    }

    pub(crate) fn internal(what: impl fmt::Display) -> Self {
        Self { code: Self::INTERNAL, what: what.to_string(), next_step: None }
    }

    pub(crate) fn hint(mut self, next_step: impl Into<String>) -> Self {
        self.next_step = Some(next_step.into());
        self
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = match &error {
            OpenError::Settings(_) => {
                return Self::bad_input(error).hint("fix the file, or remove it for the defaults");
            }
            OpenError::Home(home) => return home.into(),
            OpenError::StorePlace(place) => {
                let next_step = place.next_step();
                return Self::bad_input(error).hint(next_step);
            }
            OpenError::Store(error) => store_hint(error),
            OpenError::Key(_) => "restore the key, or move it away to start with a new one",
            OpenError::Git(_) => "install git, for example with `apt install git`",
        };
        Self::internal(error).hint(hint)
    }
}

impl From<&HomeError> for Failure {
    fn from(error: &HomeError) -> Self {
        let failure = match error {
            HomeError::Io { .. } => Self::internal(error),
            HomeError::Nowhere
            | HomeError::Missing { .. }
            | HomeError::NotADirectory { .. }
            | HomeError::NotOwn { .. }
            | HomeError::Foreign { .. }
            | HomeError::NoParent { .. }
            | HomeError::Format { .. }
            | HomeError::Readable { .. }
            | HomeError::Writable { .. } => Self::bad_input(error),
        };
        failure.hint(error.next_step())
    }
}

impl From<OrderError> for Failure {
    fn from(error: OrderError) -> Self {
        match error {
            OrderError::Engine(EngineError::NoScript { .. }) => Self::bad_input(error).hint(
                "choose an agent with --engine NAME (`herma engines` lists them), or say what `fake` does with --script FILE",
            ),
            OrderError::Contract(_) | OrderError::Engine(_) => Self::bad_input(error),
            OrderError::Policy(_) => {
                Self::bad_input(error).hint("fix it; `herma policy check` shows whether it is valid")
            }
            OrderError::Write(_) => Self::internal(error).hint(
                "free space or make herma's home writable; the next herma command closes what was left",
            ),
            other => Self::internal(other),
        }
    }
}

impl From<ChoiceError> for Failure {
    fn from(error: ChoiceError) -> Self {
        let hint = error.next_step();
        Self::bad_input(error).hint(hint)
    }
}

impl From<ContractError> for Failure {
    fn from(error: ContractError) -> Self {
        let next_step = error.next_step();
        let failure = match error {
            ContractError::WorkingDirectory(_) => Self::internal(error),
            error => Self::bad_input(error),
        };
        Self { next_step, ..failure }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        let hint = error.next_step();
        Self::bad_input(error).hint(hint)
    }
}

impl From<SheetError> for Failure {
    fn from(error: SheetError) -> Self {
        match error {
            SheetError::Store(error) => error.into(),
            SheetError::Policy(error) => Self::bad_input(error),
        }
    }
}

impl From<DestinationError> for Failure {
    fn from(error: DestinationError) -> Self {
        let hint = error.next_step();
        Self::bad_input(error).hint(hint)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = store_hint(&error);
        Self::internal(error).hint(hint)
    }
}

fn store_hint(error: &StoreError) -> &'static str {
    match error.kind() {
        StoreErrorKind::Unavailable => {
            "make the store available again; bundles under runs/ are the evidence, and the next herma command records what \
             the store missed"
        }
        StoreErrorKind::Corrupt => "`herma store rebuild` makes it anew from the bundles under runs/",
        _ => "the bundles under runs/ are the evidence; the store is only their index",
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        let next_step = error.next_step();
        Self { next_step, ..Self::bad_input(error) }
    }
}

impl From<RunLookupError> for Failure {
    fn from(error: RunLookupError) -> Self {
        let next_step = error.next_step().map(str::to_owned);
        match error {
            RunLookupError::Store(error) => error.into(),
            error => Self { next_step, ..Self::bad_input(error) },
        }
    }
}

impl From<ApprovalLookupError> for Failure {
    fn from(error: ApprovalLookupError) -> Self {
        let next_step = error.next_step().map(str::to_owned);
        match error {
            ApprovalLookupError::Store(error) => error.into(),
            error => Self { next_step, ..Self::bad_input(error) },
        }
    }
}

impl From<EngineRequestError> for Failure {
    fn from(error: EngineRequestError) -> Self {
        let hint = error.next_step();
        match error {
            EngineRequestError::Write { .. } => Self::internal(error).hint(hint),
            error => Self::bad_input(error).hint(hint),
        }
    }
}

impl From<QuestionError> for Failure {
    fn from(error: QuestionError) -> Self {
        let hint = error.next_step();
        Self::bad_input(error).hint(hint)
    }
}

impl From<RouterError> for Failure {
    fn from(error: RouterError) -> Self {
        match error {
            RouterError::Config(_) | RouterError::Upstream(_) => Self::bad_input(error)
                .hint("`herma router example` prints a whole configuration to start from"),
            RouterError::Restart(_) => Self::bad_input(error),
            RouterError::State(error) => error.into(),
            RouterError::Listen(_) => {
                Self::internal(error).hint("choose another address in the configuration")
            }
            error => Self::internal(error),
        }
    }
}

impl From<RouterProbeError> for Failure {
    fn from(error: RouterProbeError) -> Self {
        let next_step = error.next_step();
        let failure = if error.is_bad_input() { Self::bad_input(error) } else { Self::internal(error) };
        Self { next_step, ..failure }
    }
}
