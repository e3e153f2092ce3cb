//! A guest that misbehaves as its rows and its settings ask; the host is tested with it.
//!
//! It counts the rows of a window. A row's value names what the row does to the call; the setting `start` does the same to
//! the start, and `fire` to the results.

use millstream_sdk::bindings::exports::millstream::plugin::{aggregation, lifecycle};
use millstream_sdk::bindings::millstream::plugin::{log, metrics, output, types};
use millstream_sdk::host;

struct Evil;

/// What the value of a row, or a setting, may ask for.
fn act(wish: &str) {
    match wish.split_once(' ').map_or((wish, ""), |(verb, rest)| (verb, rest)) {
        ("trap", why) => panic!("asked to: {why}"),
        ("loop", _) => loop {
            std::hint::black_box(());
        },
        ("memory", _) => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(vec![1u8; 1 << 20]);
                std::hint::black_box(&hoard);
            }
        }
        ("hoard", mebibytes) => {
            let bytes: usize = mebibytes.parse::<usize>().unwrap_or(0) << 20;
            std::mem::forget(std::hint::black_box(vec![1u8; bytes]));
        }
        ("stack", _) => {
            std::hint::black_box(descend(1));
        }
        ("spin", rounds) => {
            for round in 0..rounds.parse().unwrap_or(0u64) {
                std::hint::black_box(round);
            }
        }
        ("flood", _) => (0..100_000).for_each(|_| host::log(host::Level::Info, &"x".repeat(1_000))),
        ("shout", _) => host::log(host::Level::Error, &"x".repeat(4 << 20)),
        ("series", _) => (0..10_000).for_each(|number| metrics::count(&format!("series-{number}"), 1, &[])),
        ("fields", _) => {
            let fields: Vec<_> = (0..100)
                .map(|number| (format!("field-{number}"), "x".repeat(10_000)))
                .collect();
            log::log(log::Level::Warn, "many fields", &fields);
        }
        _ => {}
    }
}

fn descend(depth: u64) -> u64 {
    if std::hint::black_box(depth) == 0 {
        return 0;
    }
    descend(depth + 1) + std::hint::black_box(1)
}

impl lifecycle::Guest for Evil {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            name: "evil".into(),
            version: "0.1.0".into(),
            doc: String::new(),
            parameters: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            stores: Vec::new(),
        }
    }

    fn init(_task: types::Task) -> Result<(), String> {
        host::report_panics();
        match host::config("start").unwrap_or_default().as_str() {
            "refuse" => Err("asked to refuse".into()),
            wish => {
                act(wish);
                Ok(())
            }
        }
    }
}

fn value(rows: &types::Batch, row: u32) -> String {
    let span = &rows.spans[4 * row as usize + 2..][..2];
    let bytes = rows
        .arena
        .get(span[0] as usize..(span[0] as usize).saturating_add(span[1] as usize));
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

impl aggregation::Guest for Evil {
    fn accumulate(
        rows: types::Batch,
        panes: Vec<aggregation::Pane>,
    ) -> Result<aggregation::Accumulated, types::Failure> {
        let mut accs = Vec::new();
        let mut rejections = Vec::new();
        for pane in &panes {
            let before = pane
                .acc
                .as_deref()
                .map_or(0, |acc| u64::from_le_bytes(acc.try_into().expect("eight bytes")));
            let mut count = before;
            for row in &pane.rows {
                let wish = value(&rows, *row);
                match wish.as_str() {
                    "reject" => rejections.push(types::Rejection {
                        row: *row,
                        reason: "asked to reject".into(),
                    }),
                    "reject-none" => rejections.push(types::Rejection {
                        row: u32::MAX,
                        reason: String::new(),
                    }),
                    "retry" => return Err(types::Failure::Retry("not now".into())),
                    "fatal" => return Err(types::Failure::Fatal("never".into())),
                    "short" => {
                        return Ok(aggregation::Accumulated {
                            accs: Vec::new(),
                            rejections,
                        });
                    }
                    "emit" => give_out(vec![0, 0, 0, 0], Vec::new()),
                    wish => {
                        act(wish);
                        count += 1;
                    }
                }
                if pane.each {
                    accs.push(count.to_le_bytes().to_vec());
                }
            }
            if !pane.each {
                accs.push(count.to_le_bytes().to_vec());
            }
        }
        Ok(aggregation::Accumulated { accs, rejections })
    }

    fn merge(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<Vec<u8>> {
        pairs.into_iter().map(|(left, _)| left).skip(1).collect()
    }

    fn fire(firings: Vec<aggregation::Firing>) -> Result<(), types::Failure> {
        match host::config("fire").unwrap_or_default().as_str() {
            "spans" => give_out(vec![0, 1, 0, 0xffff_0000], vec![0]),
            "uneven" => give_out(vec![0, 0, 0], vec![0]),
            "origins" => give_out(vec![0, 0, 0, 0], vec![firings.len() as u32]),
            "large" => loop {
                give_out_arena(vec![0, 0, 0, 20 << 20], vec![0], vec![1; 20 << 20]);
            },
            "forward" => output::forward(0, &[0]),
            wish => {
                act(wish);
                for (index, firing) in (0u32..).zip(&firings) {
                    let mut arena = firing.key.clone();
                    let key = arena.len() as u32;
                    arena.extend_from_slice(&firing.acc);
                    give_out_arena(vec![0, key, key, firing.acc.len() as u32], vec![index], arena);
                }
            }
        }
        Ok(())
    }
}

fn give_out(spans: Vec<u32>, origins: Vec<u32>) {
    give_out_arena(spans, origins, Vec::new());
}

fn give_out_arena(spans: Vec<u32>, origins: Vec<u32>, arena: Vec<u8>) {
    output::emit(&output::Rows {
        outputs: Vec::new(),
        partitions: Vec::new(),
        timestamps: Vec::new(),
        origins,
        spans,
        header_index: Vec::new(),
        header_spans: Vec::new(),
        arena,
    });
}

millstream_sdk::__world!(Evil, WINDOW_AGGREGATOR,
    lifecycle __export_millstream_plugin_lifecycle_0_1_0_cabi
    aggregation __export_millstream_plugin_aggregation_0_1_0_cabi
);
