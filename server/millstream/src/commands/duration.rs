//! Spans of time as they are written on the command line: `500ms`, `90s`, `15m`, `2h`, `90d`.

/// Milliseconds; a number without a unit could mean anything, and is none.
pub(crate) fn duration_ms(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(unit)
}

/// The same for an argument.
pub(crate) fn duration_argument(text: &str) -> Result<i64, String> {
    duration_ms(text).ok_or_else(|| "a number with ms, s, m, h or d behind it is expected, as in 90s or 15m".to_owned())
}

/// The span in the largest unit that shows it exactly.
pub(crate) fn shown(millis: i64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.iter().find(|(unit, _)| millis != 0 && millis % unit == 0) {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        let cases = [
            ("7ms", 7),
            ("500ms", 500),
            ("90s", 90_000),
            ("15m", 900_000),
            ("2h", 7_200_000),
            ("90d", 7_776_000_000),
        ];
        for (text, millis) in cases {
            assert_eq!(duration_ms(text), Some(millis), "{text}");
        }
        for text in [
            "",
            "7",
            "m",
            "-5m",
            "+5",
            "1.5h",
            "5 m",
            "5w",
            "9223372036854775807d",
            "1m30s",
        ] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for (millis, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (900_000, "15m"),
            (3_600_000, "1h"),
            (7_776_000_000, "90d"),
        ] {
            assert_eq!(shown(millis), text);
            assert_eq!(duration_ms(text), Some(millis));
        }
    }
}
