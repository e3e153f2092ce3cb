//! `bench [ARGS…]`: runs `tests/bench/bench.py`, which prints Millstream's figures beside Apache Kafka's.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::root;

const SCRIPT: &str = "tests/bench/bench.py";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = root::path()?;
    let status = Command::new(root.join(SCRIPT))
        .args(arguments)
        .current_dir(&root)
        .status()
        .with_context(|| format!("start {SCRIPT}"))?;
    ensure!(status.success(), "bench: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures are not tested; how they are read, reckoned and judged is.
    #[test]
    fn the_checks_of_the_report_hold() {
        let output = Command::new("python3")
            .arg("tests/bench/checks.py")
            .current_dir(root::path().unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
