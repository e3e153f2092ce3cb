//! Positions as they are written on the command line: `start`, `end`, `42`, `-5`, `@1700000000000`, `@-1h`.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use client::Start;
use model::{Offset, Timestamp};

use super::duration::duration_ms;

/// Where to begin, or to put an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OffsetArgument {
    Start,
    End,
    /// That offset.
    At(Offset),
    /// So many records before the end.
    BeforeEnd(u64),
    /// The first record of that time or later.
    Time(Timestamp),
    /// The first record of so many milliseconds ago or later.
    Ago(i64),
}

impl FromStr for OffsetArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!(
                "{text:?} is none of start, end, N, -N (so many before the end), @MILLISECONDS, @-DURATION (as @-90m)"
            )
        };
        let number = |digits: &str| {
            digits
                .parse::<u64>()
                .ok()
                .filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))
        };
        if let Some(time) = text.strip_prefix('@') {
            if let Some(ago) = time.strip_prefix('-') {
                return duration_ms(ago).map(OffsetArgument::Ago).ok_or_else(error);
            }
            let millis = number(time).and_then(|millis| i64::try_from(millis).ok());
            return millis
                .map(|millis| OffsetArgument::Time(Timestamp::from_millis(millis)))
                .ok_or_else(error);
        }
        match text {
            "start" | "earliest" | "beginning" => Ok(OffsetArgument::Start),
            "end" | "latest" => Ok(OffsetArgument::End),
            _ => match text.strip_prefix('-') {
                Some(back) => number(back).map(OffsetArgument::BeforeEnd).ok_or_else(error),
                None => {
                    let offset = number(text)
                        .and_then(|value| i64::try_from(value).ok())
                        .and_then(Offset::from_wire);
                    offset.map(OffsetArgument::At).ok_or_else(error)
                }
            },
        }
    }
}

impl OffsetArgument {
    pub(crate) fn start(self) -> Start {
        match self {
            OffsetArgument::Start => Start::Earliest,
            OffsetArgument::End => Start::Latest,
            OffsetArgument::At(offset) => Start::Offset(offset),
            OffsetArgument::BeforeEnd(count) => Start::Last(count),
            OffsetArgument::Time(timestamp) => Start::Time(timestamp),
            OffsetArgument::Ago(millis) => {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_millis();
                let now = i64::try_from(now).unwrap_or(i64::MAX);
                Start::Time(Timestamp::from_millis(now.saturating_sub(millis).max(0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_position_is_read() {
        let cases = [
            ("start", OffsetArgument::Start),
            ("latest", OffsetArgument::End),
            ("0", OffsetArgument::At(Offset::ZERO)),
            ("9223372036854775807", OffsetArgument::At(Offset::MAX)),
            ("-5", OffsetArgument::BeforeEnd(5)),
            ("@12", OffsetArgument::Time(Timestamp::from_millis(12))),
            ("@-90m", OffsetArgument::Ago(5_400_000)),
        ];
        for (text, argument) in cases {
            assert_eq!(text.parse(), Ok(argument), "{text}");
        }
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            "",
            "-",
            "--5",
            "+5",
            "@",
            "@x",
            "@-",
            "@-5y",
            "@-h",
            "9223372036854775808",
            "5x",
            "@-9223372036854775807d",
        ] {
            assert!(text.parse::<OffsetArgument>().is_err(), "{text}");
        }
    }
}
