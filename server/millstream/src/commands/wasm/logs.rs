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
use super::http::{Door, HttpError};
use super::show::text;
use crate::output::{print_json, print_line, tell};

/// Longest line of a stream, in bytes: well above what an entry may take.
const LINE_BYTES_MAX: usize = 1 << 20;

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
        tell(&format!("{count} entries are gone"));
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
            } else if let Some(count) = value["left_out"].as_u64().filter(|count| *count > 0) {
                tell(&format!("{count} entries are gone"));
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
    let time = &entry["time"];
    let time = time.as_str().map_or_else(|| time.to_string(), str::to_owned);
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
        let entry = json!({"sequence": 3, "time": "2001-01-01T00:00:00.000Z", "partition": 2, "level": "warn",
            "message": "two\nlines", "fields": [{"name": "a", "value": "b"}]});
        assert_eq!(line(&entry), "2001-01-01T00:00:00.000Z warn  2 two\\nlines a=b");
        let without_partition = json!({"time": 5, "level": "info", "message": "m"});
        assert_eq!(line(&without_partition), "5 info  m");
    }
}
