//! What the door counts, in Prometheus' text form (version 0.0.4).

mod plugins;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::gateway::{Build, Shared};

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS_SECONDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// How many combinations of method, route and status are counted apart.
const SERIES_MAX: usize = 2000;
/// The route of requests that no route is there for.
pub(crate) const NO_ROUTE: &str = "none";
const PAGE_BYTES: u64 = 4096;

/// Method, route and status of answers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Labels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Default)]
struct Series {
    count: u64,
    sum: Duration,
    /// Answers that took at most as long as the bound of the same place, and longer than the one before.
    buckets: [u64; BUCKETS_SECONDS.len()],
}

pub(crate) struct Metrics {
    start: Instant,
    build: Build,
    requests: Mutex<BTreeMap<Labels, Series>>,
    connections: AtomicI64,
    streams: AtomicI64,
}

/// Counts while it lives.
pub(crate) struct Counted<'a>(&'a AtomicI64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn new(build: &Build) -> Self {
        Metrics {
            start: Instant::now(),
            build: build.clone(),
            requests: Mutex::default(),
            connections: AtomicI64::new(0),
            streams: AtomicI64::new(0),
        }
    }

    pub(crate) fn connection(&self) -> Counted<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Counted(&self.connections)
    }

    pub(crate) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// An answer has begun to leave.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let labels = Labels {
            method: known_method(method).to_owned(),
            route: route.to_owned(),
            status,
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() >= SERIES_MAX && !requests.contains_key(&labels) {
            return;
        }
        let series = requests.entry(labels).or_default();
        series.count += 1;
        series.sum += took;
        let bucket = BUCKETS_SECONDS.iter().position(|bound| took.as_secs_f64() <= *bound);
        if let Some(bucket) = bucket {
            series.buckets[bucket] += 1;
        }
    }

    /// The whole page.
    pub(crate) fn page(gateway: &Shared) -> String {
        let mut text = gateway.metrics.text();
        for figure in (gateway.figures)() {
            let kind = if figure.is_counter { "counter" } else { "gauge" };
            describe(&mut text, figure.name, kind, figure.help);
            line(&mut text, figure.name, figure.value);
        }
        plugins::write(&mut text, &*gateway.plugins, &gateway.coders);
        text
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(8 * 1024);
        describe(&mut text, "millstream_build_info", "gauge", "The program; always 1.");
        let (version, commit) = (escaped(&self.build.version), escaped(&self.build.commit));
        line(
            &mut text,
            &format!("millstream_build_info{{version=\"{version}\",commit=\"{commit}\"}}"),
            1.0,
        );
        let up = self.start.elapsed().as_secs_f64();
        gauge(
            &mut text,
            "millstream_uptime_seconds",
            "How long the HTTP door is open.",
            up,
        );
        let connections = self.connections.load(Ordering::Relaxed);
        gauge(
            &mut text,
            "millstream_http_connections",
            "Open HTTP connections.",
            as_f64(connections),
        );
        let streams = self.streams.load(Ordering::Relaxed);
        gauge(
            &mut text,
            "millstream_http_streams",
            "Event streams that are being read.",
            as_f64(streams),
        );
        if let Some(bytes) = resident_bytes() {
            gauge(
                &mut text,
                "process_resident_memory_bytes",
                "Resident memory of the process.",
                bytes,
            );
        }
        if let Some(open) = open_files() {
            gauge(&mut text, "process_open_fds", "Open file descriptors.", open);
        }
        self.write_requests(&mut text);
        text
    }

    fn write_requests(&self, text: &mut String) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let name = "millstream_http_requests_total";
        describe(text, name, "counter", "Answered HTTP requests.");
        for (labels, series) in &requests {
            let count = as_f64(i64::try_from(series.count).unwrap_or(i64::MAX));
            line(text, &format!("{name}{{{}}}", labels.text()), count);
        }
        let name = "millstream_http_request_duration_seconds";
        describe(text, name, "histogram", "From a request's headers to its answer's.");
        for (labels, series) in &requests {
            let labels = labels.text();
            let mut sum = 0;
            for (bound, count) in BUCKETS_SECONDS.iter().zip(series.buckets) {
                sum += count;
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", series.count);
            line(text, &format!("{name}_sum{{{labels}}}"), series.sum.as_secs_f64());
            let _ = writeln!(text, "{name}_count{{{labels}}} {}", series.count);
        }
    }
}

impl Labels {
    fn text(&self) -> String {
        format!(
            "method=\"{}\",route=\"{}\",status=\"{}\"",
            escaped(&self.method),
            escaped(&self.route),
            self.status
        )
    }
}

/// A method is whatever a client sends; only the usual ones become labels.
fn known_method(method: &str) -> &str {
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => method,
        _ => "other",
    }
}

fn describe(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    describe(text, name, "gauge", help);
    line(text, name, value);
}

fn line(text: &mut String, name: &str, value: f64) {
    let _ = writeln!(text, "{name} {value}");
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus' numbers are 64-bit floats")]
fn as_f64(value: i64) -> f64 {
    value as f64
}

fn resident_bytes() -> Option<f64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(as_f64(i64::try_from(pages * PAGE_BYTES).ok()?))
}

fn open_files() -> Option<f64> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(as_f64(i64::try_from(open).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        Metrics::new(&Build {
            version: "1.2".into(),
            commit: "a\"b".into(),
        })
    }

    #[test]
    fn answers_are_counted_by_method_route_and_status() {
        let metrics = metrics();
        metrics.answered("GET", "/a/{b}", 200, Duration::from_millis(3));
        metrics.answered("GET", "/a/{b}", 200, Duration::from_secs(99));
        let text = metrics.text();
        let labels = r#"method="GET",route="/a/{b}",status="200""#;
        assert!(
            text.contains(&format!("millstream_http_requests_total{{{labels}}} 2\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("_bucket{{{labels},le=\"0.0025\"}} 0\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("_bucket{{{labels},le=\"0.005\"}} 1\n")),
            "{text}"
        );
        assert!(text.contains(&format!("_bucket{{{labels},le=\"+Inf\"}} 2\n")), "{text}");
        assert!(text.contains(r#"commit="a\"b""#), "{text}");
    }

    #[test]
    fn series_are_bounded_whatever_clients_send() {
        let metrics = metrics();
        for status in 0..u16::try_from(SERIES_MAX).unwrap() + 10 {
            metrics.answered("X", NO_ROUTE, status, Duration::ZERO);
        }
        assert_eq!(metrics.requests.lock().unwrap().len(), SERIES_MAX);
    }

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let metrics = metrics();
        let open = metrics.connection();
        assert!(metrics.text().contains("millstream_http_connections 1\n"));
        drop(open);
        assert!(metrics.text().contains("millstream_http_connections 0\n"));
    }
}
