//! What the log layer keeps beside the log: the snapshot of its producers, and records about remote segments (KIP-405).

#[allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]
mod generated {
    use crate::generated_prelude::*;

    include!(concat!(env!("OUT_DIR"), "/storage.rs"));
    include!(concat!(env!("OUT_DIR"), "/storage_enums.rs"));
}

pub use generated::*;
pub use producer_snapshot::ProducerSnapshot;
pub use remote_log_segment_metadata_record::RemoteLogSegmentMetadataRecord;
pub use remote_log_segment_metadata_snapshot_record::RemoteLogSegmentMetadataSnapshotRecord;
pub use remote_log_segment_metadata_update_record::RemoteLogSegmentMetadataUpdateRecord;
pub use remote_partition_delete_metadata_record::RemotePartitionDeleteMetadataRecord;

super::framed::framed_records!(RemoteLogRecord);
