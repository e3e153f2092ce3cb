//! Processors and what plugins measure, in Prometheus' text form.
//!
//! A plugin chooses its names and labels freely. So they are values of labels here, or names of labels that are made fit
//! and marked, and never names of metrics: whatever a plugin writes, the page stays one that can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use plugin::RunningPlugins;
use plugin::measurements::{Measurement, SeriesName};
use plugin::running::ProcessorStatus;

use super::{as_f64, describe, escaped, line};
use crate::coders::{Coders, Measured};
use crate::routes::{TaskState, lag};

/// For how many processors there are series.
const PROCESSORS_MAX: usize = 1000;
/// How many series of all plugins are shown.
const MEASUREMENTS_MAX: usize = 5000;
/// Before the names of a plugin's own labels.
const OWN_LABEL: &str = "label_";

/// A family of one number a processor.
type Family = (&'static str, &'static str, &'static str, fn(&ProcessorStatus) -> i64);

const FAMILIES: [Family; 7] = [
    (
        "millstream_processor_lag_records",
        "gauge",
        "Offsets of the input between the tasks of this node and its end.",
        |status| status.tasks.iter().filter_map(lag).sum(),
    ),
    (
        "millstream_processor_processed_total",
        "counter",
        "Rows behind the positions of the tasks of this node.",
        |status| sum(status, |task| task.processed),
    ),
    (
        "millstream_processor_late_total",
        "counter",
        "How often a window refused a row because it had closed.",
        |status| sum(status, |task| task.late),
    ),
    (
        "millstream_processor_rejected_total",
        "counter",
        "Rows and results that went to the dead letters.",
        |status| sum(status, |task| task.rejected),
    ),
    (
        "millstream_processor_null_keys_total",
        "counter",
        "Rows without a key.",
        |status| sum(status, |task| task.null_keys),
    ),
    (
        "millstream_processor_guest_calls_total",
        "counter",
        "Calls into the module since its tasks started.",
        |status| sum(status, |task| task.guest_calls),
    ),
    (
        "millstream_processor_traps_total",
        "counter",
        "Calls that broke off since the tasks started.",
        |status| sum(status, |task| task.traps),
    ),
];

fn sum(status: &ProcessorStatus, of: fn(&plugin::running::TaskStatus) -> u64) -> i64 {
    let sum = status.tasks.iter().map(of).fold(0u64, u64::saturating_add);
    i64::try_from(sum).unwrap_or(i64::MAX)
}

/// All of it.
pub(crate) fn write(text: &mut String, plugins: &dyn RunningPlugins, coders: &Coders) {
    let deployed = plugins.processors();
    let names = deployed.iter().take(PROCESSORS_MAX).map(|deployed| &deployed.name);
    let statuses: Vec<ProcessorStatus> = names.filter_map(|name| plugins.status(name)).collect();
    write_statuses(text, &statuses);
    let mut measured: Vec<(String, Vec<(SeriesName, Measurement)>)> = Vec::new();
    for status in &statuses {
        let name = &status.deployed.name;
        let series = plugins.measurements(name).map(|measurements| measurements.series());
        measured.push((
            format!("processor=\"{}\"", escaped(name.as_str())),
            series.unwrap_or_default(),
        ));
    }
    measured.extend(coders.measured().into_iter().map(of_topic));
    write_measured(text, &measured);
}

fn of_topic(((topic, role), series): Measured) -> (String, Vec<(SeriesName, Measurement)>) {
    let labels = format!("topic=\"{}\",role=\"{}\"", escaped(topic.as_str()), role.name());
    (labels, series)
}

fn write_statuses(text: &mut String, statuses: &[ProcessorStatus]) {
    if statuses.is_empty() {
        return;
    }
    for (name, kind, help, value) in FAMILIES {
        describe(text, name, kind, help);
        for status in statuses {
            let processor = escaped(status.deployed.name.as_str());
            line(
                text,
                &format!("{name}{{processor=\"{processor}\"}}"),
                as_f64(value(status)),
            );
        }
    }
    let name = "millstream_processor_tasks";
    describe(text, name, "gauge", "Tasks on this node by what they are doing.");
    for status in statuses {
        let processor = escaped(status.deployed.name.as_str());
        let mut counts: BTreeMap<TaskState, i64> = BTreeMap::new();
        for task in &status.tasks {
            *counts.entry(TaskState::of(&task.phase)).or_default() += 1;
        }
        for (state, count) in counts {
            let labels = format!("processor=\"{processor}\",state=\"{}\"", state.name());
            line(text, &format!("{name}{{{labels}}}"), as_f64(count));
        }
    }
}

/// The lines of each family stand together.
#[derive(Default)]
struct Families {
    counts: String,
    gauges: String,
    summaries: String,
}

fn write_measured(text: &mut String, measured: &[(String, Vec<(SeriesName, Measurement)>)]) {
    let mut families = Families::default();
    let mut seen = BTreeSet::new();
    let series = measured
        .iter()
        .flat_map(|(owner, series)| series.iter().map(move |series| (owner, series)));
    for (owner, ((name, own), measurement)) in series.take(MEASUREMENTS_MAX) {
        let labels = labels(owner, name, own);
        // Two labels may have become one name; a series that then is another's double would spoil the page.
        let kind = match measurement {
            Measurement::Count(_) => 'c',
            Measurement::Gauge(_) => 'g',
            Measurement::Summary { .. } => 's',
        };
        if !seen.insert((kind, labels.clone())) {
            continue;
        }
        match measurement {
            Measurement::Count(count) => {
                let _ = writeln!(families.counts, "millstream_plugin_count_total{{{labels}}} {count}");
            }
            Measurement::Gauge(value) => {
                let _ = writeln!(
                    families.gauges,
                    "millstream_plugin_gauge{{{labels}}} {}",
                    number(*value)
                );
            }
            Measurement::Summary { count, sum } => {
                let name = "millstream_plugin_summary";
                let _ = writeln!(families.summaries, "{name}_sum{{{labels}}} {}", number(*sum));
                let _ = writeln!(families.summaries, "{name}_count{{{labels}}} {count}");
            }
        }
    }
    for (name, kind, help, lines) in [
        (
            "millstream_plugin_count_total",
            "counter",
            "What plugins count.",
            families.counts,
        ),
        (
            "millstream_plugin_gauge",
            "gauge",
            "What plugins measure.",
            families.gauges,
        ),
        (
            "millstream_plugin_summary",
            "summary",
            "What plugins observe.",
            families.summaries,
        ),
    ] {
        if !lines.is_empty() {
            describe(text, name, kind, help);
            text.push_str(&lines);
        }
    }
}

fn labels(owner: &str, name: &str, own: &[(String, String)]) -> String {
    let mut labels = format!("{owner},name=\"{}\"", escaped(name));
    let mut used = BTreeSet::new();
    for (label, value) in own {
        let fit: String = label
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
            .collect();
        if used.insert(fit.clone()) {
            let _ = write!(labels, ",{OWN_LABEL}{fit}=\"{}\"", escaped(value));
        }
    }
    labels
}

/// As Prometheus writes numbers that are none.
fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "+Inf".to_owned()
    } else if value == f64::NEG_INFINITY {
        "-Inf".to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, labels: &[(&str, &str)], measurement: Measurement) -> (SeriesName, Measurement) {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ((name.to_owned(), labels.collect()), measurement)
    }

    #[test]
    fn whatever_a_plugin_calls_its_series_the_page_can_be_read() {
        let measured = [(
            "processor=\"p\"".to_owned(),
            vec![
                series("rows\n\"x\"", &[("a b", "1\\"), ("a-b", "2")], Measurement::Count(3)),
                series("heat", &[], Measurement::Gauge(f64::INFINITY)),
                series("size", &[], Measurement::Summary { count: 2, sum: 3.5 }),
            ],
        )];
        let mut text = String::new();
        write_measured(&mut text, &measured);
        let expected = [
            r#"millstream_plugin_count_total{processor="p",name="rows\n\"x\"",label_a_b="1\\"} 3"#,
            r#"millstream_plugin_gauge{processor="p",name="heat"} +Inf"#,
            r#"millstream_plugin_summary_sum{processor="p",name="size"} 3.5"#,
            r#"millstream_plugin_summary_count{processor="p",name="size"} 2"#,
        ];
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, expected);
        assert_eq!(text.matches("# TYPE ").count(), 3);
    }

    #[test]
    fn series_that_become_the_same_are_shown_once() {
        let measured = [(
            "processor=\"p\"".to_owned(),
            vec![
                series("rows", &[("a-b", "1")], Measurement::Count(3)),
                series("rows", &[("a.b", "1")], Measurement::Count(4)),
            ],
        )];
        let mut text = String::new();
        write_measured(&mut text, &measured);
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 1);
    }
}
