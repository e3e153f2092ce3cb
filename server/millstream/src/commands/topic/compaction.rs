//! `topic describe --compaction`: how far each partition is compacted, as the HTTP door of a node says it.

use std::collections::BTreeMap;
use std::time::Duration;

use model::TopicName;
use serde_json::Value;

use crate::commands::duration::shown;
use crate::commands::http::{Door, DoorArgs};
use crate::output::{Table, print_line, tell};

/// What the door says of each partition that is compacted.
pub(super) struct Compaction(BTreeMap<i64, Value>);

impl Compaction {
    pub(super) async fn ask(door: DoorArgs, timeout: Duration, topic: &TopicName) -> anyhow::Result<Self> {
        let topic = Door::new(door.http, timeout)
            .get(&format!("/api/v1/topics/{topic}"))
            .await?;
        let partitions = topic["partitions"].as_array().map_or(&[][..], Vec::as_slice);
        let compacted = partitions
            .iter()
            .filter_map(|partition| Some((partition["partition"].as_i64()?, partition.get("compaction")?.clone())));
        Ok(Compaction(compacted.collect()))
    }

    pub(super) fn of(&self, partition: i32) -> Value {
        self.0.get(&i64::from(partition)).cloned().unwrap_or_default()
    }

    pub(super) fn print(&self) -> anyhow::Result<()> {
        if self.0.is_empty() {
            tell("no partition of it is compacted");
            return Ok(());
        }
        print_line("")?;
        self.table().print()?;
        for (partition, compaction) in &self.0 {
            if let Some(reason) = compaction["reason"].as_str() {
                print_line(&format!("partition {partition}: {reason}"))?;
            }
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let headings = &[
            "PARTITION",
            "COMPACTION",
            "FIRST DIRTY",
            "CLEAN BYTES",
            "DIRTY BYTES",
            "DIRTY RATIO",
            "HELD BACK BYTES",
            "LAST ROUND",
        ];
        let mut table = Table::new(headings);
        for (partition, compaction) in &self.0 {
            let number = |name| match &compaction["backlog"][name] {
                Value::Null => "-".to_owned(),
                number => number.to_string(),
            };
            let ratio = compaction["backlog"]["dirty_ratio"].as_f64();
            table.row([
                partition.to_string(),
                compaction["state"].as_str().unwrap_or("-").to_owned(),
                number("first_dirty"),
                number("clean_bytes"),
                number("dirty_bytes"),
                ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
                number("held_back_bytes"),
                round(&compaction["last_round"]),
            ]);
        }
        table
    }
}

/// `1000 to 200 bytes in 3s`.
fn round(round: &Value) -> String {
    match (
        &round["bytes_before"],
        &round["bytes_after"],
        round["duration_ms"].as_i64(),
    ) {
        (before, after, Some(millis)) => format!("{before} to {after} bytes in {}", shown(millis)),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_round_is_told_in_a_line_and_none_is_a_dash() {
        assert_eq!(round(&Value::Null), "-");
        let ended =
            json!({"ended": 1, "duration_ms": 1500, "bytes_before": 1000, "bytes_after": 200, "records_removed": 3});
        assert_eq!(round(&ended), "1000 to 200 bytes in 1500ms");
    }
}
