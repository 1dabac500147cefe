//! Log records: which of them are written to standard error, and in which format. None by default.
//!
//! Only herma's own crates log. Records of HTTP and TLS libraries contain headers, and with them keys.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{fmt, registry};

use crate::args::{Cli, LogFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::LogLine;

/// The crates that log.
const CRATES: [(&str, &str); 3] =
    [("harness", "herma_harness"), ("router", "herma_router"), ("store", "herma_store")];

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// Starts logging where a flag or a variable asks for it. Flags precede variables. Returns whether anything is logged.
pub(crate) fn start(cli: &Cli, environment: &Environment) -> Result<bool, Failure> {
    let format = match (cli.log_format, environment.log_format.as_deref()) {
        (Some(format), _) => format,
        (None, Some(name)) => parse_format(name)?,
        (None, None) => LogFormat::Text,
    };
    let filter = match (cli.verbose, environment.log.as_deref()) {
        (0, None) => return Ok(false),
        (0, Some(text)) => parse_filter(text)?,
        (1, _) => every_crate(LevelFilter::INFO),
        (2, _) => every_crate(LevelFilter::DEBUG),
        (_, _) => every_crate(LevelFilter::TRACE),
    };
    if !LEVELS.iter().any(|(_, level)| is_enabled(&filter, *level)) {
        return Ok(false);
    }
    let is_json = format == LogFormat::Json;
    let layer = fmt::layer().with_ansi(false).with_writer(move || LogLine { is_json });
    let installed = if is_json {
        let layer = layer.json().flatten_event(true).with_current_span(false);
        tracing::subscriber::set_global_default(registry().with(layer).with(filter))
    } else {
        tracing::subscriber::set_global_default(registry().with(layer).with(filter))
    };
    installed.map_err(Failure::internal)?;
    Ok(true)
}

fn is_enabled(filter: &Targets, level: LevelFilter) -> bool {
    level
        .into_level()
        .is_some_and(|level| CRATES.iter().any(|(_, target)| filter.would_enable(target, &level)))
}

fn parse_format(name: &str) -> Result<LogFormat, Failure> {
    match name {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(Failure::bad_input(format!("HERMA_LOG_FORMAT is `{name}`")).hint("set it to text or json")),
    }
}

/// Parses levels for all crates or single ones: `info`, or `warn,router=debug`.
fn parse_filter(text: &str) -> Result<Targets, Failure> {
    let mut filter = Targets::new();
    for directive in text.split(',').map(str::trim) {
        let (name, level) = match directive.split_once('=') {
            Some((name, level)) => (Some(name), level),
            None => (None, directive),
        };
        let (_, level) = *LEVELS.iter().find(|(name, _)| *name == level).ok_or_else(|| bad_filter(text))?;
        filter = match name {
            None => filter.with_targets(every_crate(level)),
            Some(name) => {
                let known = CRATES.iter().find(|(short, _)| *short == name);
                filter.with_target(known.ok_or_else(|| bad_filter(text))?.1, level)
            }
        };
    }
    Ok(filter)
}

fn every_crate(level: LevelFilter) -> Targets {
    Targets::new().with_targets(CRATES.map(|(_, target)| (target, level)))
}

fn bad_filter(text: &str) -> Failure {
    let (levels, crates) = (LEVELS.map(|(name, _)| name).join(", "), CRATES.map(|(name, _)| name).join(", "));
    Failure::bad_input(format!("HERMA_LOG is `{text}`"))
        .hint(format!("set a level ({levels}), or CRATE=LEVEL for {crates}, separated by commas"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_has_levels_for_all_crates_or_single_ones() {
        let filter = parse_filter("warn,router=debug").unwrap();
        assert!(filter.would_enable("herma_router::service", &Level::DEBUG));
        assert!(filter.would_enable("herma_harness::pipeline", &Level::WARN));
        assert!(!filter.would_enable("herma_harness::pipeline", &Level::INFO));
        let off = parse_filter("off").unwrap();
        assert!(!LEVELS.iter().any(|(_, level)| is_enabled(&off, *level)));
    }

    #[test]
    fn no_filter_lets_records_of_other_crates_through() {
        for filter in [parse_filter("trace").unwrap(), every_crate(LevelFilter::TRACE)] {
            for target in ["hyper", "h2::codec", "rustls", "sqlx::query", "herma"] {
                assert!(!filter.would_enable(target, &Level::ERROR), "{target}");
            }
        }
        for text in ["h2=trace", "hyper=debug", "verbose", "", "router=", "=info", "info,"] {
            assert_eq!(parse_filter(text).unwrap_err().code, Failure::BAD_INPUT, "{text:?}");
        }
    }
}
