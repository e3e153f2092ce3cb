//! What a value must satisfy beyond its type; the messages are comparable to Kafka's.

use super::error::ConfigError;
use super::listeners::{Address, parse_voter};
use super::value::Value;

/// The rule of one key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Check {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// A range, or one number outside of it.
    BetweenOr(i64, i64, i64),
    DoubleBetween(f64, f64),
    OneOf(&'static [&'static str]),
    OneOfIgnoringCase(&'static [&'static str]),
    NonEmptyText,
    /// A list of distinct entries, none of them empty.
    Entries,
    /// The same with at least one entry.
    SomeEntries,
    /// A list of which every entry is one of these.
    EntriesOf(&'static [&'static str]),
    SomeEntriesOf(&'static [&'static str]),
    /// `*`, or a list of `partition:broker` (KIP-73).
    ThrottledReplicas,
    /// A list of `host:port`.
    BootstrapServers,
    /// A list of `id@host:port`.
    Voters,
    /// `earliest`, `latest` or `by_duration:` and an ISO 8601 duration (KIP-932).
    OffsetReset,
}

impl Check {
    /// # Errors
    /// If `value` of the key `name` breaks the rule.
    pub(super) fn apply(&self, name: &str, value: &Value) -> Result<(), ConfigError> {
        let invalid = |reason: String| Err(ConfigError::invalid(name, &value.to_text(), reason));
        match (self, value) {
            (Check::AtLeast(least), _) => match value.number() {
                Some(number) if number < i128::from(*least) => invalid(format!("Value must be at least {least}")),
                _ => Ok(()),
            },
            (Check::Between(least, most), _) => match value.number() {
                Some(number) if number < i128::from(*least) => invalid(format!("Value must be at least {least}")),
                Some(number) if number > i128::from(*most) => invalid(format!("Value must be no more than {most}")),
                _ => Ok(()),
            },
            (Check::BetweenOr(least, most, other), _) => match value.number() {
                Some(number)
                    if number != i128::from(*other) && !(i128::from(*least)..=i128::from(*most)).contains(&number) =>
                {
                    invalid(format!("Value must be between {least} and {most} or equal to {other}"))
                }
                _ => Ok(()),
            },
            (Check::DoubleBetween(least, _), Value::Double(number)) if number < least => {
                invalid(format!("Value must be at least {least}"))
            }
            (Check::DoubleBetween(_, most), Value::Double(number)) if number > most => {
                invalid(format!("Value must be no more than {most}"))
            }
            (Check::OneOf(allowed), Value::Text(text)) if !allowed.contains(&text.as_str()) => {
                invalid(format!("String must be one of: {}", allowed.join(", ")))
            }
            (Check::OneOfIgnoringCase(allowed), Value::Text(text))
                if !allowed.iter().any(|each| each.eq_ignore_ascii_case(text)) =>
            {
                invalid(format!(
                    "String must be one of (case insensitive): {}",
                    allowed.join(", ")
                ))
            }
            (Check::NonEmptyText, Value::Text(text)) if text.is_empty() => {
                invalid("String must be non-empty".to_owned())
            }
            (Check::OffsetReset, Value::Text(text)) if !is_offset_reset(text) => invalid(format!(
                "Invalid value `{text}` for configuration {name}. The value must be either 'earliest', 'latest' or of \
                 the format 'by_duration:<PnDTnHnMn.nS>'."
            )),
            (_, Value::List(entries)) => self.apply_to_list(name, entries),
            _ => Ok(()),
        }
    }

    fn apply_to_list(&self, name: &str, entries: &[String]) -> Result<(), ConfigError> {
        let (allowed, may_be_empty): (&[&str], bool) = match self {
            Check::Entries => (&[], true),
            Check::SomeEntries => (&[], false),
            Check::EntriesOf(allowed) => (allowed, true),
            Check::SomeEntriesOf(allowed) => (allowed, false),
            Check::ThrottledReplicas => return check_throttled_replicas(name, entries),
            Check::BootstrapServers => return check_bootstrap_servers(name, entries),
            Check::Voters => return check_voters(name, entries),
            _ => return Ok(()),
        };
        if entries.is_empty() && !may_be_empty {
            let valid = if allowed.is_empty() {
                "any non-empty value".to_owned()
            } else {
                format!("[{}]", allowed.join(", "))
            };
            return Err(ConfigError::plain(format!(
                "Configuration '{name}' must not be empty. Valid values include: {valid}"
            )));
        }
        if entries.iter().any(|entry| entry.trim().is_empty()) {
            return Err(ConfigError::plain(format!(
                "Configuration '{name}' values must not be empty."
            )));
        }
        match entries
            .iter()
            .find(|entry| !allowed.is_empty() && !allowed.contains(&entry.as_str()))
        {
            None => Ok(()),
            Some(entry) => Err(ConfigError::invalid(
                name,
                entry,
                format!("String must be one of: {}", allowed.join(", ")),
            )),
        }
    }
}

fn check_throttled_replicas(name: &str, entries: &[String]) -> Result<(), ConfigError> {
    let is_pair = |entry: &String| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        entry
            .split_once(':')
            .is_some_and(|(partition, broker)| digits(partition) && digits(broker))
    };
    if entries == ["*"] || entries.iter().all(is_pair) {
        return Ok(());
    }
    Err(ConfigError::invalid(
        name,
        &format!("[{}]", entries.join(", ")),
        format!(
            "{name} must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        ),
    ))
}

fn check_bootstrap_servers(name: &str, entries: &[String]) -> Result<(), ConfigError> {
    match entries.iter().find(|entry| Address::parse(entry).is_none()) {
        None => Ok(()),
        Some(entry) => Err(ConfigError::plain(format!(
            "Failed to parse host name from {entry} for the configuration {name}. Each entry should be in the form \
             \"{{host}}:{{port}}\""
        ))),
    }
}

fn check_voters(name: &str, entries: &[String]) -> Result<(), ConfigError> {
    if entries.iter().all(|entry| parse_voter(entry).is_some()) {
        return Ok(());
    }
    Err(ConfigError::plain(format!(
        "Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`."
    )))
}

fn is_offset_reset(text: &str) -> bool {
    match text.strip_prefix("by_duration:") {
        Some(duration) => is_duration(duration),
        None => text == "earliest" || text == "latest",
    }
}

/// Whether `text` is a duration of ISO 8601 as `PnDTnHnMn.nS` that is not negative. Signs inside are not taken.
fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix(['P', 'p']) else {
        return false;
    };
    let (days, time) = match text.find(['T', 't']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let parts_follow = |mut rest: &str, units: &[u8]| {
        let mut next = 0;
        while !rest.is_empty() {
            let Some(at) = rest.find(|character: char| !character.is_ascii_digit() && character != '.') else {
                return false;
            };
            let unit = rest.as_bytes()[at].to_ascii_uppercase();
            let Some(place) = units[next..].iter().position(|each| *each == unit) else {
                return false;
            };
            let number = &rest[..at];
            let whole = number.split('.').next().unwrap_or_default();
            let fraction_fits = number.len() == whole.len() || (unit == b'S' && number.matches('.').count() == 1);
            if whole.is_empty() || whole.len() > 18 || number.len() > whole.len() + 10 || !fraction_fits {
                return false;
            }
            next += place + 1;
            rest = &rest[at + 1..];
        }
        true
    };
    match time {
        Some(time) => !time.is_empty() && parts_follow(days, b"D") && parts_follow(time, b"HMS"),
        None => !days.is_empty() && parts_follow(days, b"D"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_java_without_signs() {
        for good in ["PT1H", "P1D", "PT0.5S", "P2DT3H4M5.678S", "pt5m", "PT0S"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in [
            "", "P", "PT", "P1Y", "-PT1H", "PT-1H", "PT1M1H", "PT.5S", "1H", "PT1.5H", "P1DT", "PTé",
        ] {
            assert!(!is_duration(bad), "{bad}");
        }
    }
}
