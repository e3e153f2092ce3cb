//! Logs: to standard error, one line an event, filtered by `MILLSTREAM_LOG` (`info` unless set).

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

const VARIABLE: &str = "MILLSTREAM_LOG";
const DEFAULT_FILTER: &str = "info";

/// Installs the logger for the process. A filter that cannot be read is told of and replaced by the default.
pub(crate) fn install() {
    let wanted = std::env::var(VARIABLE).ok();
    let parsed = wanted.as_deref().map(EnvFilter::try_new);
    let (filter, wrong) = match parsed {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(DEFAULT_FILTER), Some(error)),
        None => (EnvFilter::new(DEFAULT_FILTER), None),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
    if let Some(error) = wrong {
        tracing::warn!(variable = VARIABLE, %error, "log filter not understood");
    }
}
