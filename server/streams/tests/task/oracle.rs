//! The rules of time windows, written down as plainly as they can be: row by row, every window looked at.

use std::collections::BTreeMap;

use streams::{Counters, Emit};

use crate::doubles::{Conduct, Event, Seen};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) size: i64,
    pub(crate) advance: i64,
    pub(crate) grace: i64,
    pub(crate) emit: Emit,
}

#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) results: Vec<Seen>,
    pub(crate) causes: Vec<i64>,
    pub(crate) dead: Vec<i64>,
    pub(crate) refused: Vec<(i64, u32)>,
    pub(crate) counters: Counters,
    pub(crate) stream_time: Option<i64>,
    /// By start and key: rows and greatest event time.
    pub(crate) open: BTreeMap<(i64, String), (String, i64)>,
}

pub(crate) fn expected(events: &[Event], rules: Rules) -> Expected {
    let mut expected = Expected::default();
    for (offset, event) in (0i64..).zip(events) {
        expected.counters.processed += 1;
        if matches!(event.conduct, Conduct::RejectKey | Conduct::TrapKey) || event.time < 0 {
            expected.bury(offset);
        } else if let Some(key) = event.key {
            let stream_time = expected.stream_time.map_or(event.time, |before| before.max(event.time));
            expected.stream_time = Some(stream_time);
            expected.take(offset, event, key, rules, stream_time);
            expected.close(offset, rules, stream_time);
        } else {
            expected.counters.null_keys += 1;
            expected.refused.push((offset, 0));
        }
    }
    expected
}

impl Expected {
    fn bury(&mut self, offset: i64) {
        self.counters.rejected += 1;
        self.dead.push(offset);
    }

    fn take(&mut self, offset: i64, event: &Event, key: &str, rules: Rules, stream_time: i64) {
        let starts = (0..=event.time).filter(|start| start % rules.advance == 0 && event.time < start + rules.size);
        let (late, open): (Vec<i64>, Vec<i64>) =
            starts.partition(|start| stream_time >= start + rules.size + rules.grace);
        if !late.is_empty() {
            self.counters.late += late.len() as u64;
            self.counters.late_rows += u64::from(open.is_empty());
            self.refused
                .push((offset, u32::try_from(late.len()).expect("few windows")));
        }
        if open.is_empty() {
            return;
        }
        if event.conduct != Conduct::Fold {
            return self.bury(offset);
        }
        for start in open {
            let pane = self.open.entry((start, key.to_owned())).or_insert((String::new(), 0));
            let separator = if pane.0.is_empty() { "" } else { "," };
            *pane = (format!("{}{separator}{offset}", pane.0), pane.1.max(event.time));
            if rules.emit == Emit::Update {
                let (rows, timestamp) = pane.clone();
                self.give(offset, start, key, rows, timestamp, rules);
            }
        }
    }

    fn close(&mut self, offset: i64, rules: Rules, stream_time: i64) {
        let still = self
            .open
            .split_off(&(stream_time - rules.grace - rules.size + 1, String::new()));
        let closed = std::mem::replace(&mut self.open, still);
        if rules.emit == Emit::Final {
            for ((start, key), (rows, timestamp)) in closed {
                self.give(offset, start, &key, rows, timestamp, rules);
            }
        }
    }

    fn give(&mut self, cause: i64, start: i64, key: &str, rows: String, timestamp: i64, rules: Rules) {
        let (key, kind) = (key.to_owned(), rules.emit.kind().to_owned());
        self.results.push(Seen {
            key,
            start,
            end: start + rules.size,
            kind,
            rows,
            timestamp,
        });
        self.causes.push(cause);
    }
}
