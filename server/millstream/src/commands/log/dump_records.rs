//! Batches and their records, in the lines of Apache Kafka's own tool or as JSON objects.

use std::path::Path;

use model::record_batch::{
    Batch, BatchHeader, Compression, ControlType, DecompressionLimit, RecordReader, RecordView, TimestampType,
};
use protocol::internal_records::control::ControlRecord;
use serde_json::{Map, Value, json};
use storage::RealDisk;
use storage::inspect::{BatchAt, BatchFile, Step, Stretch};

use super::decoder::Decoded;
use super::dump::Sink;
use crate::commands::topic::record_format::put_bytes;

/// Dumps a file of batches: a log, or a snapshot of the metadata log.
pub(super) fn dump_batches(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let file = BatchFile::open(&RealDisk, path)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !sink.json {
        sink.line(&heading(name, file.base_offset().get()))?;
    }
    file.walk(0, |step| -> anyhow::Result<bool> {
        match step {
            Step::Batch(batch) => dump_batch(sink, &file, &batch)?,
            Step::Unreadable(stretch) => dump_stretch(sink, &stretch, stretch.to == file.size_bytes(), name)?,
        }
        Ok(true)
    })
}

fn heading(name: &str, base_offset: i64) -> String {
    let snapshot = name.strip_suffix(".checkpoint").and_then(|stem| {
        let (offset, epoch) = stem.split_once('-')?;
        Some((offset.parse::<i64>().ok()?, epoch.parse::<i32>().ok()?))
    });
    match snapshot {
        Some((offset, epoch)) => format!("Snapshot end offset: {offset}, epoch: {epoch}"),
        None => format!("Log starting offset: {base_offset}"),
    }
}

fn dump_stretch(sink: &mut Sink<'_>, stretch: &Stretch, ends_file: bool, name: &str) -> anyhow::Result<()> {
    let bytes = stretch.to - stretch.from;
    if sink.json {
        let reason = stretch.reason.to_string();
        sink.value(&json!({"kind": "unreadable", "position": stretch.from, "size": bytes, "reason": reason}))?;
    } else if ends_file {
        sink.line(&format!("Found {bytes} invalid bytes at the end of {name}"))?;
    } else {
        let at = stretch.from;
        sink.line(&format!(
            "Found {bytes} invalid bytes at position {at}: {}",
            stretch.reason
        ))?;
    }
    Ok(())
}

fn dump_batch(sink: &mut Sink<'_>, file: &BatchFile<storage::disk::RealFile>, batch: &BatchAt) -> anyhow::Result<()> {
    if sink.json {
        sink.value(&batch_json(batch))?;
    } else {
        sink.line(&batch_line(batch))?;
    }
    if !sink.deep {
        return Ok(());
    }
    let bytes = match file.read(batch) {
        Ok(bytes) => bytes,
        Err(error) => return dump_unreadable(sink, batch, &error.to_string()),
    };
    if let Err(error) = dump_records(sink, batch, &bytes)? {
        return dump_unreadable(sink, batch, &error.to_string());
    }
    Ok(())
}

/// The outer error is of printing, the inner one of reading.
fn dump_records(
    sink: &mut Sink<'_>,
    batch: &BatchAt,
    bytes: &[u8],
) -> anyhow::Result<Result<(), model::record_batch::BatchError>> {
    let reader = Batch::split_first(bytes).and_then(|(whole, _)| RecordReader::new(whole, DecompressionLimit::DEFAULT));
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        if sink.json {
            let value = record_json(sink, &batch.header, &record);
            sink.value(&value)?;
        } else {
            let line = record_line(sink, &batch.header, &record);
            sink.line(&line)?;
        }
    }
}

fn dump_unreadable(sink: &mut Sink<'_>, batch: &BatchAt, reason: &str) -> anyhow::Result<()> {
    if sink.json {
        sink.value(&json!({"kind": "unreadable-records", "position": batch.position, "reason": reason}))?;
    } else {
        sink.line(&format!("| the records cannot be read: {reason}"))?;
    }
    Ok(())
}

fn codec(header: &BatchHeader) -> &'static str {
    match header.attributes.compression() {
        Ok(Compression::None) => "none",
        Ok(Compression::Gzip) => "gzip",
        Ok(Compression::Snappy) => "snappy",
        Ok(Compression::Lz4) => "lz4",
        Ok(Compression::Zstd) => "zstd",
        Err(_) => "unknown",
    }
}

fn time_name(header: &BatchHeader) -> &'static str {
    match header.attributes.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn last_sequence(header: &BatchHeader) -> i32 {
    header.last_sequence().map_or(-1, model::Sequence::get)
}

fn batch_line(batch: &BatchAt) -> String {
    let BatchAt {
        header,
        position,
        is_sound,
    } = batch;
    let delete_horizon = match header.delete_horizon() {
        Some(at) => format!("OptionalLong[{at}]"),
        None => "OptionalLong.empty".to_owned(),
    };
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {delete_horizon} position: \
         {position} {}: {} size: {} magic: 2 compresscodec: {} crc: {} isvalid: {is_sound}",
        header.base_offset,
        header.last_offset(),
        header.record_count,
        header.base_sequence,
        last_sequence(header),
        header.producer_id,
        header.producer_epoch,
        header.partition_leader_epoch,
        header.attributes.is_transactional(),
        header.attributes.is_control(),
        time_name(header),
        header.max_timestamp,
        header.size_bytes(),
        codec(header),
        header.crc,
    )
}

fn batch_json(batch: &BatchAt) -> Value {
    let header = &batch.header;
    json!({
        "kind": "batch",
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset().get(),
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": last_sequence(header),
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.attributes.is_transactional(),
        "isControl": header.attributes.is_control(),
        "deleteHorizonMs": header.delete_horizon().map(model::Timestamp::millis),
        "position": batch.position,
        "timestampType": time_name(header),
        "maxTimestamp": header.max_timestamp,
        "size": header.size_bytes(),
        "magic": 2,
        "compresscodec": codec(header),
        "crc": header.crc,
        "isvalid": batch.is_sound,
    })
}

/// That of nothing is -1.
fn size(bytes: Option<&[u8]>) -> i64 {
    bytes.and_then(|bytes| i64::try_from(bytes.len()).ok()).unwrap_or(-1)
}

fn sequence(header: &BatchHeader, record: &RecordView<'_>) -> i32 {
    let delta = i32::try_from(record.offset.since(header.first_offset())).unwrap_or(0);
    header.base_sequence().map_or(-1, |first| first.plus(delta).get())
}

fn record_line(sink: &Sink<'_>, header: &BatchHeader, record: &RecordView<'_>) -> String {
    let header_keys: Vec<_> = record.headers.map(|header| header.key_text().into_owned()).collect();
    let mut line = format!(
        "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
        record.offset,
        time_name(header),
        record.timestamp,
        size(record.key),
        size(record.value),
        sequence(header, record),
        header_keys.join(","),
    );
    if header.attributes.is_control() {
        line.push_str(&control_words(record));
    } else if sink.contents {
        let (key, value) = match sink.decoder {
            Some(decoder) => decoder.texts(record),
            None => (record.key.map(text), record.value.map(text)),
        };
        if let Some(key) = key {
            line.push_str(&format!(" key: {key}"));
        }
        if let Some(value) = value {
            line.push_str(&format!(" payload: {value}"));
        }
    }
    line
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn control_record(record: &RecordView<'_>) -> Option<ControlRecord> {
    let (key, value) = (record.key?.to_vec(), record.value?.to_vec());
    ControlRecord::from_bytes(key.into(), value.into()).ok()
}

fn control_words(record: &RecordView<'_>) -> String {
    match control_record(record) {
        Some(ControlRecord::Abort(marker)) => {
            format!(" endTxnMarker: ABORT coordinatorEpoch: {}", marker.coordinator_epoch)
        }
        Some(ControlRecord::Commit(marker)) => {
            format!(" endTxnMarker: COMMIT coordinatorEpoch: {}", marker.coordinator_epoch)
        }
        // The one that Kafka's tool ends with a colon.
        Some(change @ ControlRecord::LeaderChange(_)) => format!(" LeaderChange: {}", change.value_json()),
        Some(other) => format!(" {} {}", control_name(&other), other.value_json()),
        None => match record.key.and_then(ControlType::from_key) {
            Some(known) => format!(" controlType: {known:?}({}), which cannot be read", known as i16),
            None => " controlType: UNKNOWN(-1)".to_owned(),
        },
    }
}

fn control_name(record: &ControlRecord) -> &'static str {
    match record {
        ControlRecord::Abort(_) => "Abort",
        ControlRecord::Commit(_) => "Commit",
        ControlRecord::LeaderChange(_) => "LeaderChange",
        ControlRecord::SnapshotHeader(_) => "SnapshotHeader",
        ControlRecord::SnapshotFooter(_) => "SnapshotFooter",
        ControlRecord::KRaftVersion(_) => "KRaftVersion",
        ControlRecord::KRaftVoters(_) => "KRaftVoters",
    }
}

fn record_json(sink: &Sink<'_>, header: &BatchHeader, record: &RecordView<'_>) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("kind", json!("record"));
    put("offset", json!(record.offset.get()));
    put("timestamp", json!(record.timestamp.millis()));
    put("keySize", json!(size(record.key)));
    put("valueSize", json!(size(record.value)));
    put("sequence", json!(sequence(header, record)));
    if header.attributes.is_control() {
        if let Some(control) = control_record(record) {
            put("control", json!(control_name(&control)));
            put("value", parsed(&control.value_json()));
        }
        return Value::Object(fields);
    }
    let headers = record.headers.map(|header| {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(header.key_text()));
        put_bytes(&mut fields, "value", header.value);
        Value::Object(fields)
    });
    put("headers", headers.collect());
    if sink.contents {
        match sink.decoder.map(|decoder| decoder.decode(record)) {
            Some(Decoded::Read { key, value }) => {
                put("key", key.map_or(Value::Null, |key| parsed(&key)));
                put("value", value.map_or(Value::Null, |value| parsed(&value)));
            }
            Some(Decoded::Failed(why)) => {
                put("undecoded", json!(why));
            }
            None => {
                put_bytes(&mut fields, "key", record.key);
                put_bytes(&mut fields, "value", record.value);
            }
        }
    }
    Value::Object(fields)
}

/// The protocol writes its own JSON.
fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| json!(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_of_the_metadata_log_is_headed_by_where_it_ends() {
        let heading = |name| heading(name, 7);
        assert_eq!(
            heading("00000000000000000042-0000000003.checkpoint"),
            "Snapshot end offset: 42, epoch: 3"
        );
        assert_eq!(heading("00000000000000000007.log"), "Log starting offset: 7");
    }
}
