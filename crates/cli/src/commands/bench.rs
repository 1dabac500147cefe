//! `herma bench`.

use crate::args;
use crate::commands::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

pub(crate) fn bench(_command: &args::Bench, _environment: &Environment, _screen: &Screen) -> Ended {
    Err(Failure::internal("not yet"))
}
