//! `wasm logs [-f]`: what a processor's module said.
//!
//! Following reads a stream of events, a line each, whose data is an entry; lines that are longer than an entry can be
//! are an error.

use anyhow::Context;
use clap::Args;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::Processor;
use super::show::text;
use crate::commands::http::{Door, HttpError};
use crate::output::{print_json, print_line, tell};

/// Longest line of a stream, in bytes: well above what an entry may take.
const LINE_BYTES_MAX: usize = 1 << 20;

const DAY_MS: i64 = 86_400_000;

/// Print what a processor's module has logged.
#[derive(Args, Debug)]
pub(crate) struct LogsArgs {
    name: Processor,
    /// Go on with what comes.
    #[arg(short, long)]
    follow: bool,
    /// Begin with the entry of this sequence number.
    #[arg(long, value_name = "SEQUENCE")]
    from: Option<u64>,
    /// At most so many entries.
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "follow")]
    limit: Option<u32>,
    /// Print one JSON object a line with everything of the entry.
    #[arg(short, long)]
    json: bool,
}

pub(super) async fn run(door: &Door, args: LogsArgs) -> anyhow::Result<()> {
    let mut query = Vec::new();
    query.extend(args.from.map(|sequence| format!("from={sequence}")));
    query.extend(args.limit.map(|limit| format!("limit={limit}")));
    let mut path = format!("{}/logs", args.name.path());
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    if args.follow {
        let stream = door.open(&path).await?;
        return tokio::select! {
            end = follow(stream, args.json) => end,
            signal = tokio::signal::ctrl_c() => Ok(signal?),
        };
    }
    let found = door.get(&path).await?;
    if let Some(count) = found["left_out"].as_u64().filter(|count| *count > 0) {
        tell(&format!("{count} entries were left out: too much was logged at once"));
    }
    for entry in found["entries"].as_array().map_or(&[][..], Vec::as_slice) {
        show(entry, args.json)?;
    }
    Ok(())
}

async fn follow(mut stream: Incoming, json: bool) -> anyhow::Result<()> {
    let mut events = Events::default();
    while let Some(frame) = stream.frame().await {
        let frame = frame.context("the stream broke off")?;
        let Some(data) = frame.data_ref() else { continue };
        for (name, data) in events.take(data)? {
            let value: Value = serde_json::from_str(&data).context("an event is no JSON")?;
            if name == "error" {
                return Err(HttpError::Refused(text(&value, "detail").to_owned()).into());
            }
            if value.get("message").is_some() {
                show(&value, json)?;
            }
        }
    }
    tell("the stream has ended");
    Ok(())
}

fn show(entry: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(print_json(entry)?);
    }
    Ok(print_line(&line(entry))?)
}

/// Time, level, partition, message and fields, in one line whatever the message holds.
fn line(entry: &Value) -> String {
    let time = entry["time"].as_i64().map_or_else(|| "-".to_owned(), utc);
    let partition = entry["partition"].as_i64();
    let mut line = format!("{time} {:<5}", text(entry, "level"));
    if let Some(partition) = partition {
        line.push_str(&format!(" {partition}"));
    }
    line.push_str(&format!(" {}", text(entry, "message")));
    for field in entry["fields"].as_array().map_or(&[][..], Vec::as_slice) {
        line.push_str(&format!(" {}={}", text(field, "name"), text(field, "value")));
    }
    line.replace('\n', "\\n").replace('\r', "\\r")
}

/// Milliseconds since 1970 as a date and a time of day, in the proleptic Gregorian calendar.
fn utc(millis: i64) -> String {
    let (days, of_day) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
    // Eras of 400 years that begin with a March, so that the leap day is the last of its year.
    let since = days + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Cuts a stream of server-sent events into events: name and data.
#[derive(Default)]
struct Events {
    /// A line whose end is still to come.
    partial: Vec<u8>,
    name: String,
    data: String,
}

impl Events {
    /// The events that these bytes complete.
    fn take(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<(String, String)>> {
        let mut complete = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8_lossy(&self.partial).into_owned();
                self.partial.clear();
                complete.extend(self.line(line.trim_end_matches('\r')));
            } else {
                self.partial.push(*byte);
            }
            let size = self.partial.len() + self.data.len();
            anyhow::ensure!(size <= LINE_BYTES_MAX, "an event has more than {LINE_BYTES_MAX} bytes");
        }
        Ok(complete)
    }

    fn line(&mut self, line: &str) -> Option<(String, String)> {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some((name, data));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_found_however_the_stream_is_cut() {
        let text =
            b"id: 1\nevent: entry\ndata: {\"a\":1}\n\n: comment\n\nevent: error\r\ndata: x\r\ndata:y\r\n\r\ndata: open";
        let expected =
            [("entry", "{\"a\":1}"), ("error", "x\ny")].map(|(name, data)| (name.to_owned(), data.to_owned()));
        for cut in 0..text.len() {
            let mut events = Events::default();
            let mut found = events.take(&text[..cut]).unwrap();
            found.extend(events.take(&text[cut..]).unwrap());
            assert_eq!(found, expected, "cut at {cut}");
        }
        assert!(Events::default().take(&vec![b'x'; LINE_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn an_entry_is_one_line() {
        let entry = json!({"sequence": 3, "time": 978_307_200_000_i64, "partition": 2, "level": "warn",
            "message": "two\nlines", "fields": [{"name": "a", "value": "b"}]});
        assert_eq!(line(&entry), "2001-01-01T00:00:00.000Z warn  2 two\\nlines a=b");
        let without_partition = json!({"time": 5, "level": "info", "message": "m"});
        assert_eq!(line(&without_partition), "1970-01-01T00:00:00.005Z info  m");
    }

    #[test]
    fn times_are_shown_as_dates() {
        for (millis, shown) in [
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_704_067_199_999, "2023-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(utc(millis), shown);
        }
    }
}
