//! Records that a transaction wrote into a coordinator's log, held back until its marker says whether they count (KIP-98).
//!
//! A committed record counts as of its own place in the log, not as of the marker's: where a later one of the same key
//! counts already, it is superseded. What a transaction wrote that has no marker counts for nothing.

use std::collections::BTreeMap;

use model::{Offset, ProducerId};

use crate::shard::Record;

/// No more records are held back at a time.
const RECORDS_MAX: usize = 1 << 20;

/// More records of open transactions than are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {RECORDS_MAX} records belong to transactions that have not ended")]
pub struct TooManyPending;

/// The open transactions of one partition.
#[derive(Debug, Default)]
pub struct PendingTransactions {
    by_producer: BTreeMap<ProducerId, Vec<(Offset, Record)>>,
    records: usize,
}

impl PendingTransactions {
    /// Takes in the record at `offset`, written within a transaction of `producer` or outside of any. Gives it back if it
    /// counts at once.
    ///
    /// # Errors
    /// If too many wait already.
    pub fn record(
        &mut self,
        producer: Option<ProducerId>,
        offset: Offset,
        record: Record,
    ) -> Result<Option<Record>, TooManyPending> {
        let Some(producer) = producer else {
            self.supersede(&record, offset);
            return Ok(Some(record));
        };
        if self.records == RECORDS_MAX {
            return Err(TooManyPending);
        }
        self.records += 1;
        self.by_producer.entry(producer).or_default().push((offset, record));
        Ok(None)
    }

    /// The transaction of `producer` ends. Gives the records that count now, in their order.
    pub fn end(&mut self, producer: ProducerId, commits: bool) -> Vec<Record> {
        let records = self.by_producer.remove(&producer).unwrap_or_default();
        self.records -= records.len();
        if !commits {
            return Vec::new();
        }
        for (offset, record) in &records {
            self.supersede(record, *offset);
        }
        records.into_iter().map(|(_, record)| record).collect()
    }

    /// How many records wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Forgets what stands before `offset` under the record's key.
    fn supersede(&mut self, record: &Record, offset: Offset) {
        if self.records == 0 {
            return;
        }
        for waiting in self.by_producer.values_mut() {
            let before = waiting.len();
            waiting.retain(|(at, other)| *at > offset || other.key != record.key);
            self.records -= before - waiting.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn record(key: &'static str, value: &'static str) -> Record {
        Record {
            key: Bytes::from_static(key.as_bytes()),
            value: Some(Bytes::from_static(value.as_bytes())),
        }
    }

    /// Puts a line of `producer key value` (a producer of `-` for none), `commit producer` or `abort producer` after the
    /// other into the log; returns the values in the order in which they count.
    fn counted(log: &[&'static str]) -> Vec<String> {
        let mut pending = PendingTransactions::default();
        let mut counted = Vec::new();
        for (offset, line) in (0..).zip(log) {
            let words: Vec<&'static str> = line.split(' ').collect();
            match words[..] {
                ["commit", producer] => counted.extend(pending.end(id(producer), true)),
                ["abort", producer] => counted.extend(pending.end(id(producer), false)),
                [producer, key, value] => {
                    let producer = (producer != "-").then(|| id(producer));
                    counted.extend(
                        pending
                            .record(producer, Offset::new(offset), record(key, value))
                            .unwrap(),
                    );
                }
                _ => panic!("{line}"),
            }
        }
        let waiting: usize = pending.by_producer.values().map(Vec::len).sum();
        assert_eq!(pending.len(), waiting);
        let text = |record: Record| String::from_utf8(record.value.unwrap().to_vec()).unwrap();
        counted.into_iter().map(text).collect()
    }

    fn id(text: &str) -> ProducerId {
        ProducerId::new(text.parse().unwrap())
    }

    #[test]
    fn only_what_was_committed_counts() {
        let log = [
            "1 a one",
            "- b two",
            "2 a three",
            "1 c four",
            "abort 2",
            "commit 1",
            "3 a five",
        ];
        assert_eq!(counted(&log), ["two", "one", "four"]);
        assert_eq!(counted(&["commit 7", "abort 7"]), Vec::<String>::new());
    }

    #[test]
    fn a_record_counts_as_of_its_own_place() {
        assert_eq!(counted(&["1 a old", "- a new", "commit 1"]), ["new"]);
        assert_eq!(counted(&["1 a old", "2 a new", "commit 2", "commit 1"]), ["new"]);
        assert_eq!(counted(&["1 a old", "2 a new", "commit 1", "commit 2"]), ["old", "new"]);
        assert_eq!(counted(&["1 a old", "1 a new", "commit 1"]), ["old", "new"]);
    }

    #[test]
    fn a_producer_begins_its_next_transaction_with_nothing() {
        assert_eq!(counted(&["1 a one", "abort 1", "1 a two", "commit 1"]), ["two"]);
    }
}
