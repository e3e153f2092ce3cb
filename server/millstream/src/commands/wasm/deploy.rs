//! `wasm upload` and `wasm deploy`: a file becomes a module, a module a processor over a topic.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use anyhow::Context;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use hyper::{Method, StatusCode};
use model::TopicName;
use plugin::deployment::From;
use plugin::host::{Digest, MODULE_BYTES_MAX};
use serde_json::{Value, json};

use super::Processor;
use super::show::{module_line, processors, text};
use crate::commands::config::{key_value, topic_name};
use crate::commands::duration::duration_argument;
use crate::commands::http::{Door, Payload};
use crate::output::{print_json, tell};

/// Let a module run over a topic, or change how it does.
///
/// The topics that the processor writes to are made if they are not there.
#[derive(Args, Debug)]
pub(crate) struct DeployArgs {
    name: Processor,
    /// The module: a file, which is uploaded, or the digest of one that was.
    #[arg(short, long, value_name = "FILE|SHA256")]
    module: String,
    /// The topic that is read.
    #[arg(short, long, value_name = "TOPIC", value_parser = topic_name)]
    input: TopicName,
    /// The topic that results are written to.
    #[arg(short, long, value_name = "TOPIC", value_parser = topic_name)]
    output: TopicName,
    #[arg(short, long)]
    window: WindowKind,
    /// How long a window is, as in 60m or 90d.
    #[arg(short, long, value_name = "DURATION", value_parser = duration_argument)]
    size: i64,
    /// How far apart hopping windows begin.
    #[arg(short, long, value_name = "DURATION", value_parser = duration_argument, required_if_eq("window", "hopping"))]
    advance: Option<i64>,
    /// How long after its end a window still takes rows.
    #[arg(short, long, value_name = "DURATION", value_parser = duration_argument, default_value = "0ms")]
    grace: i64,
    /// A result after every row, or one when the window has closed.
    #[arg(short, long, value_enum, default_value_t = Emit::Update)]
    emit: Emit,
    /// Where a new processor begins: earliest, latest, offset:N or time:MILLISECONDS.
    #[arg(short, long, default_value = "earliest", value_parser = begin)]
    from: From,
    /// A setting of the module.
    #[arg(short, long = "config", value_name = "KEY=VALUE", value_parser = key_value)]
    configs: Vec<(String, String)>,
    /// Print the processor as JSON.
    #[arg(long)]
    json: bool,
}

fn begin(text: &str) -> Result<From, String> {
    From::from_str(text).map_err(|error| error.to_string())
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum WindowKind {
    Tumbling,
    Hopping,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Emit {
    Update,
    Final,
}

/// The name that the command line and the door have for it.
fn word(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

pub(super) async fn run(door: &Door, args: DeployArgs) -> anyhow::Result<()> {
    let module = match args.module.parse::<Digest>() {
        Ok(digest) => digest.to_string(),
        Err(_) => {
            let uploaded = upload(door, Path::new(&args.module)).await?;
            tell(&format!("{}: {}", args.module, module_line(&uploaded)));
            text(&uploaded, "sha256").to_owned()
        }
    };
    let wanted = Payload::Json(request(&args, &module));
    let (status, processor) = door.send(Method::PUT, &args.name.path(), wanted).await?;
    let done = if status == StatusCode::CREATED {
        "deployed"
    } else {
        "changed"
    };
    tell(&format!("{} {done}", args.name.0));
    if args.json {
        print_json(&processor)?;
    } else {
        processors(std::slice::from_ref(&processor)).print()?;
    }
    Ok(())
}

fn request(args: &DeployArgs, module: &str) -> Value {
    let mut window = json!({"type": word(args.window), "size_ms": args.size, "grace_ms": args.grace});
    if let Some(advance) = args.advance {
        window["advance_ms"] = advance.into();
    }
    let config: BTreeMap<&str, &str> = args
        .configs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    json!({
        "module": module,
        "input": args.input.as_str(),
        "from": args.from.to_string(),
        "output": args.output.as_str(),
        "window": window,
        "emit": word(args.emit),
        "config": config,
    })
}

/// What the door says of the module.
pub(super) async fn upload(door: &Door, file: &Path) -> anyhow::Result<Value> {
    let read = || format!("reading {}", file.display());
    let size = std::fs::metadata(file).with_context(read)?.len();
    anyhow::ensure!(
        size <= MODULE_BYTES_MAX as u64,
        "{} has {size} bytes, a module at most {MODULE_BYTES_MAX}",
        file.display()
    );
    let bytes = std::fs::read(file).with_context(read)?;
    let (_, uploaded) = door
        .send(Method::POST, "/api/v1/modules", Payload::Module(Bytes::from(bytes)))
        .await?;
    Ok(uploaded)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: DeployArgs,
    }

    fn parse(line: &str) -> Result<DeployArgs, clap::Error> {
        Line::try_parse_from(["deploy"].into_iter().chain(line.split(' '))).map(|line| line.args)
    }

    #[test]
    fn the_request_is_what_was_asked_for() {
        let line = "delays --module x --input flights --output by-origin --window hopping --size 60m \
                    --advance 15m --emit final --from offset:7 --config a=b=c --config d=";
        let args = parse(&line.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap();
        let expected = json!({
            "module": "abc", "input": "flights", "from": "offset:7", "output": "by-origin", "emit": "final",
            "window": {"type": "hopping", "size_ms": 3_600_000, "advance_ms": 900_000, "grace_ms": 0},
            "config": {"a": "b=c", "d": ""},
        });
        assert_eq!(request(&args, "abc"), expected);
    }

    #[test]
    fn hopping_windows_want_an_advance_and_tumbling_ones_do_not() {
        assert!(parse("d --module x --input a --output b --window hopping --size 1m").is_err());
        let args = parse("d --module x --input a --output b --window tumbling --size 1m").unwrap();
        assert_eq!(request(&args, "x")["window"].get("advance_ms"), None);
        assert!(parse("d --module x --input a --output b --window tumbling --size 1m --from never").is_err());
    }
}
