//! What the instances of one deployment have measured: counters, gauges and summaries by name and labels.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most series of one deployment; what would be one more is left out.
pub const SERIES_MAX: usize = 256;
/// Longest name, label name or label value, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Most labels of a series.
pub const LABELS_MAX: usize = 8;

/// Name and labels, the labels by name.
pub type SeriesName = (String, Vec<(String, String)>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measurement {
    Count(u64),
    Gauge(f64),
    Summary { count: u64, sum: f64 },
}

/// The series of one deployment.
#[derive(Debug, Default)]
pub struct Measurements {
    series: Mutex<BTreeMap<SeriesName, Measurement>>,
}

impl Measurements {
    #[must_use]
    pub fn new() -> Self {
        Measurements::default()
    }

    pub fn count(&self, name: String, labels: Vec<(String, String)>, delta: u64) {
        self.change(name, labels, Measurement::Count(0), |series| {
            if let Measurement::Count(count) = series {
                *count = count.saturating_add(delta);
            }
        });
    }

    pub fn gauge(&self, name: String, labels: Vec<(String, String)>, value: f64) {
        self.change(name, labels, Measurement::Gauge(value), |series| {
            if let Measurement::Gauge(gauge) = series {
                *gauge = value;
            }
        });
    }

    pub fn observe(&self, name: String, labels: Vec<(String, String)>, value: f64) {
        self.change(name, labels, Measurement::Summary { count: 0, sum: 0.0 }, |series| {
            if let Measurement::Summary { count, sum } = series {
                *count = count.saturating_add(1);
                *sum += value;
            }
        });
    }

    #[must_use]
    pub fn series(&self) -> Vec<(SeriesName, Measurement)> {
        self.lock()
            .iter()
            .map(|(name, series)| (name.clone(), *series))
            .collect()
    }

    /// A series keeps the kind that it began with.
    fn change(
        &self,
        name: String,
        mut labels: Vec<(String, String)>,
        begin: Measurement,
        change: impl FnOnce(&mut Measurement),
    ) {
        let too_long = |text: &String| text.len() > NAME_BYTES_MAX;
        let long_label = labels.iter().any(|(label, value)| too_long(label) || too_long(value));
        if too_long(&name) || labels.len() > LABELS_MAX || long_label {
            return;
        }
        labels.sort();
        let mut all = self.lock();
        let full = all.len() >= SERIES_MAX;
        match all.entry((name, labels)) {
            std::collections::btree_map::Entry::Occupied(mut series) => change(series.get_mut()),
            std::collections::btree_map::Entry::Vacant(_) if full => {}
            std::collections::btree_map::Entry::Vacant(place) => change(place.insert(begin)),
        }
    }

    /// Each change is one step: a thread that panicked left nothing half done.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SeriesName, Measurement>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_its_name_and_its_labels_in_any_order() {
        let measurements = Measurements::new();
        let label = |name: &str| (name.to_owned(), "1".to_owned());
        measurements.count("rows".into(), vec![label("b"), label("a")], 2);
        measurements.count("rows".into(), vec![label("a"), label("b")], 3);
        measurements.gauge("rows".into(), vec![label("a"), label("b")], 9.0);
        let name = ("rows".to_owned(), vec![label("a"), label("b")]);
        assert_eq!(measurements.series(), [(name, Measurement::Count(5))]);
    }

    #[test]
    fn there_are_only_so_many_series_and_they_go_on() {
        let measurements = Measurements::new();
        for number in 0..2 * SERIES_MAX {
            measurements.observe(format!("{number:04}"), Vec::new(), 1.5);
        }
        measurements.observe("0000".into(), Vec::new(), 2.0);
        measurements.observe("x".repeat(NAME_BYTES_MAX + 1), Vec::new(), 2.0);
        let series = measurements.series();
        assert_eq!(series.len(), SERIES_MAX);
        assert_eq!(series[0].1, Measurement::Summary { count: 2, sum: 3.5 });
    }
}
