//! The benches: what each does between the clock's start and its end.

use std::ops::ControlFlow;

use model::record_batch::DecompressionLimit;
use model::{Offset, Timestamp};
use storage::compaction::CleaningLimits;
use storage::{ReadRequest, Wait};

use crate::Clock;
use crate::logs::{EPOCH_MS, KIB_16, Log, MIB_1, Numbers, ONE, OPENED_LOGS, Outcome, Place, ROLE, Shape};

/// What was done while the clock ran.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// 0 where bytes are not the point.
    pub(crate) bytes: u64,
    /// Batches appended or read again, fetches, look-ups, logs opened.
    pub(crate) calls: u64,
}

pub(crate) struct Bench {
    pub(crate) name: &'static str,
    /// The second argument divides the work that a full run does.
    pub(crate) run: fn(&Place, u64, &mut Clock) -> Outcome<Work>,
}

pub(crate) const BENCHES: &[Bench] = &[
    bench("append-one", |place, _, clock| {
        append(place, clock, ONE, None, u64::MAX)
    }),
    bench("append-one-sync-64", |place, part, clock| {
        append(place, clock, ONE, Some(64), SYNCS * 64 / part)
    }),
    bench("append-one-sync", |place, part, clock| {
        append(place, clock, ONE, Some(1), SYNCS / part)
    }),
    bench("append-16k", |place, _, clock| {
        append(place, clock, KIB_16, None, u64::MAX)
    }),
    bench("append-16k-sync-64", |place, _, clock| {
        append(place, clock, KIB_16, Some(64), u64::MAX)
    }),
    bench("append-16k-sync", |place, part, clock| {
        append(place, clock, KIB_16, Some(1), SYNCS / part)
    }),
    bench("append-1m", |place, _, clock| {
        append(place, clock, MIB_1, None, u64::MAX)
    }),
    bench("append-1m-sync-64", |place, _, clock| {
        append(place, clock, MIB_1, Some(64), u64::MAX)
    }),
    bench("append-1m-sync", |place, _, clock| {
        append(place, clock, MIB_1, Some(1), u64::MAX)
    }),
    bench("read-one-64k", |place, _, clock| read(place, clock, ONE, 64 << 10)),
    bench("read-one-1m", |place, _, clock| read(place, clock, ONE, 1 << 20)),
    bench("read-16k-64k", |place, _, clock| read(place, clock, KIB_16, 64 << 10)),
    bench("read-16k-1m", |place, _, clock| read(place, clock, KIB_16, 1 << 20)),
    bench("offset-one", |place, part, clock| {
        look_up_offsets(place, clock, ONE, LOOK_UPS / part)
    }),
    bench("offset-16k", |place, part, clock| {
        look_up_offsets(place, clock, KIB_16, LOOK_UPS / part)
    }),
    bench("time-one", |place, part, clock| {
        look_up_times(place, clock, ONE, LOOK_UPS / part)
    }),
    bench("time-16k", |place, part, clock| {
        look_up_times(place, clock, KIB_16, LOOK_UPS / part)
    }),
    bench("recover-one", |place, _, clock| recover(place, clock, ONE)),
    bench("recover-1m", |place, _, clock| recover(place, clock, MIB_1)),
    bench("compact", |place, _, clock| compact(place, clock)),
    bench("open", |place, _, clock| open(place, clock)),
];

/// How often at most a bench of small batches syncs.
const SYNCS: u64 = 20_000;
const LOOK_UPS: u64 = 200_000;

const fn bench(name: &'static str, run: fn(&Place, u64, &mut Clock) -> Outcome<Work>) -> Bench {
    Bench { name, run }
}

/// The same batch again and again, as a leader appends a producer's, with a sync after each `sync_every` of them.
fn append(place: &Place, clock: &mut Clock, shape: Shape, sync_every: Option<u64>, batches_max: u64) -> Outcome<Work> {
    let batch = shape.batch(0, || None)?;
    let batches = (place.log_bytes / batch.len() as u64).clamp(1, batches_max);
    let bytes = batches * batch.len() as u64;
    let mut log = place.empty(bytes)?;
    clock.measure(|| append_all(&mut log, &batch, batches, sync_every))?;
    place.remove_work()?;
    Ok(Work { bytes, calls: batches })
}

fn append_all(log: &mut Log, batch: &[u8], batches: u64, sync_every: Option<u64>) -> Outcome<()> {
    for number in 1..=batches {
        log.append(batch, ROLE, Place::now())?;
        if sync_every.is_some_and(|every| number % every == 0) {
            log.sync_now()?;
        }
    }
    Ok(())
}

/// From the log's start to its end, as a consumer that catches up.
fn read(place: &Place, clock: &mut Clock, shape: Shape, fetch_bytes: usize) -> Outcome<Work> {
    let log = place.open_clean(&place.filled(shape)?)?;
    let reader = log.reader();
    let mut work = Work { bytes: 0, calls: 0 };
    clock.measure(|| {
        let mut from = Offset::ZERO;
        while from < log.log_end_offset() {
            let read = reader.read(request(from, fetch_bytes))?;
            work.bytes += read.bytes.len() as u64;
            work.calls += 1;
            from = read.next_offset;
        }
        Outcome::Ok(())
    })?;
    if work.bytes != reader.size_bytes() {
        return Err("not all of the log was read".into());
    }
    Ok(work)
}

fn request(from: Offset, max_bytes: usize) -> ReadRequest {
    ReadRequest {
        from,
        max_bytes,
        up_to: Offset::MAX,
        min_one: true,
        wait: Wait::Allowed,
    }
}

/// Each finds the batch that holds an offset anywhere in the log, and reads that alone.
fn look_up_offsets(place: &Place, clock: &mut Clock, shape: Shape, count: u64) -> Outcome<Work> {
    let log = place.open_clean(&place.filled(shape)?)?;
    let (reader, end) = (log.reader(), log.log_end_offset().get() as u64);
    let mut numbers = Numbers::new();
    clock.measure(|| {
        for _ in 0..count {
            let wanted = Offset::new(numbers.below(end) as i64);
            let read = reader.read(request(wanted, 1))?;
            if wanted < read.first_offset || wanted >= read.next_offset {
                return Err(format!("looked for offset {wanted} and got {}", read.first_offset).into());
            }
        }
        Outcome::Ok(())
    })?;
    Ok(Work { bytes: 0, calls: count })
}

/// Each finds the first record that is not older than a time, as ListOffsets does.
fn look_up_times(place: &Place, clock: &mut Clock, shape: Shape, count: u64) -> Outcome<Work> {
    let log = place.open_clean(&place.filled(shape)?)?;
    let (reader, end) = (log.reader(), log.log_end_offset().get() as u64);
    let mut numbers = Numbers::new();
    clock.measure(|| {
        for _ in 0..count {
            let wanted = numbers.below(end) as i64;
            let timestamp = Timestamp::from_millis(EPOCH_MS + wanted);
            let found = reader.offset_for_timestamp(timestamp, DecompressionLimit::DEFAULT, Wait::Allowed)?;
            if found.map(|found| found.offset) != Some(Offset::new(wanted)) {
                return Err(format!("looked for the time of offset {wanted} and got {found:?}").into());
            }
        }
        Outcome::Ok(())
    })?;
    Ok(Work { bytes: 0, calls: count })
}

/// Opens a log of which nothing is known to be durable.
fn recover(place: &Place, clock: &mut Clock, shape: Shape) -> Outcome<Work> {
    let made = place.filled(shape)?;
    let mut log = clock.measure(|| place.recover(&made))?;
    let records_a_batch = log.reader().read(request(Offset::ZERO, 1))?.next_offset;
    let calls = log.log_end_offset().get() / records_a_batch.get();
    let work = Work {
        bytes: log.reader().size_bytes(),
        calls: calls as u64,
    };
    log.close()?;
    Ok(work)
}

/// One round over all of a log: keys mapped, segments written anew and swapped in. Its calls are the records that it saw.
fn compact(place: &Place, clock: &mut Clock) -> Outcome<Work> {
    let mut log = place.to_compact()?;
    let mut pace = |_bytes| ControlFlow::Continue(());
    let tally = clock.measure(|| {
        let view = log
            .compaction_view(log.log_end_offset())
            .ok_or("the log is not for the cleaner")?;
        let backlog = view.backlog(None, Place::now())?;
        let mut cleaning = log.begin_cleaning(&backlog, CleaningLimits::default(), Place::now());
        cleaning.map_keys(&mut pace)?;
        while let Some(cleaned) = cleaning.clean_group(&mut pace)? {
            log.swap_in(cleaned)?;
        }
        Outcome::Ok(cleaning.tally())
    })?;
    if tally.records_after != tally.keys as u64 {
        return Err(format!("not one record a key: {tally:?}").into());
    }
    place.remove_work()?;
    Ok(Work {
        bytes: tally.bytes_before,
        calls: tally.records_before,
    })
}

/// Opens logs that were closed in good order, one after the other.
fn open(place: &Place, clock: &mut Clock) -> Outcome<Work> {
    let all = place.many()?;
    let logs = clock.measure(|| {
        all.iter()
            .map(|made| place.open_clean(made))
            .collect::<Outcome<Vec<Log>>>()
    })?;
    if logs.iter().any(|log| log.log_end_offset() == Offset::ZERO) {
        return Err("a log was opened as an empty one".into());
    }
    Ok(Work {
        bytes: 0,
        calls: OPENED_LOGS,
    })
}
