//! `cargo xtask config-keys [--jars DIR]`: asks Kafka's classes for their configuration keys and prints what differs from the
//! facts that `server/metadata` keeps and tests its table against.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

const FACTS: &str = "server/metadata/golden/config_keys.tsv";
const PROGRAM: &str = "tests/golden/ConfigKeys.java";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::root::path()?;
    let library = match arguments {
        [] => peer_library(&root)?,
        [flag, directory] if flag == "--jars" => PathBuf::from(directory),
        _ => bail!("usage: cargo xtask config-keys [--jars DIR]"),
    };
    let answer = Command::new("java")
        .arg("-cp")
        .arg(library.join("*"))
        .arg(root.join(PROGRAM))
        .output()
        .context("run java")?;
    ensure!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let theirs = String::from_utf8(answer.stdout).context("read the program's lines")?;
    let ours = std::fs::read_to_string(root.join(FACTS)).context(FACTS)?;
    let (ours, theirs): (BTreeSet<&str>, BTreeSet<&str>) = (ours.lines().collect(), theirs.lines().collect());
    for line in ours.difference(&theirs) {
        crate::console::line(&format!("- {line}"));
    }
    for line in theirs.difference(&ours) {
        crate::console::line(&format!("+ {line}"));
    }
    ensure!(ours == theirs, "{FACTS} is not what {} says", library.display());
    Ok(())
}

/// Where tests/peers/kafka/fetch has put the jars.
fn peer_library(root: &Path) -> anyhow::Result<PathBuf> {
    let peers = match std::env::var_os("PEERS_HOME") {
        Some(home) => PathBuf::from(home),
        None => {
            PathBuf::from(std::env::var_os("HOME").context("neither PEERS_HOME nor HOME is set")?).join(".cache/peers")
        }
    };
    let pom = std::fs::read_to_string(root.join("tests/peers/kafka/pom.xml")).context("tests/peers/kafka/pom.xml")?;
    let version = pom
        .split_once("<kafka.version>")
        .and_then(|(_, rest)| rest.split_once("</kafka.version>"))
        .map(|(version, _)| version.trim())
        .context("the pom names no kafka.version")?;
    Ok(peers.join(format!("kafka-{version}/lib")))
}
