//! Records of `__consumer_offsets`: offsets and groups. A key's type says what the value is; no value is a tombstone.

#[allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]
mod generated {
    use crate::generated_prelude::*;

    include!(concat!(env!("OUT_DIR"), "/group_coordinator.rs"));
    include!(concat!(env!("OUT_DIR"), "/group_coordinator_enums.rs"));
}

pub use consumer_group_current_member_assignment_key::ConsumerGroupCurrentMemberAssignmentKey;
pub use consumer_group_current_member_assignment_value::ConsumerGroupCurrentMemberAssignmentValue;
pub use consumer_group_member_metadata_key::ConsumerGroupMemberMetadataKey;
pub use consumer_group_member_metadata_value::ConsumerGroupMemberMetadataValue;
pub use consumer_group_metadata_key::ConsumerGroupMetadataKey;
pub use consumer_group_metadata_value::ConsumerGroupMetadataValue;
pub use consumer_group_partition_metadata_key::ConsumerGroupPartitionMetadataKey;
pub use consumer_group_partition_metadata_value::ConsumerGroupPartitionMetadataValue;
pub use consumer_group_regular_expression_key::ConsumerGroupRegularExpressionKey;
pub use consumer_group_regular_expression_value::ConsumerGroupRegularExpressionValue;
pub use consumer_group_target_assignment_member_key::ConsumerGroupTargetAssignmentMemberKey;
pub use consumer_group_target_assignment_member_value::ConsumerGroupTargetAssignmentMemberValue;
pub use consumer_group_target_assignment_metadata_key::ConsumerGroupTargetAssignmentMetadataKey;
pub use consumer_group_target_assignment_metadata_value::ConsumerGroupTargetAssignmentMetadataValue;
pub use generated::*;
pub use group_metadata_key::GroupMetadataKey;
pub use group_metadata_value::GroupMetadataValue;
pub use legacy_offset_commit_key::LegacyOffsetCommitKey;
pub use legacy_offset_commit_value::LegacyOffsetCommitValue;
pub use offset_commit_key::OffsetCommitKey;
pub use offset_commit_value::OffsetCommitValue;
pub use share_group_current_member_assignment_key::ShareGroupCurrentMemberAssignmentKey;
pub use share_group_current_member_assignment_value::ShareGroupCurrentMemberAssignmentValue;
pub use share_group_member_metadata_key::ShareGroupMemberMetadataKey;
pub use share_group_member_metadata_value::ShareGroupMemberMetadataValue;
pub use share_group_metadata_key::ShareGroupMetadataKey;
pub use share_group_metadata_value::ShareGroupMetadataValue;
pub use share_group_state_partition_metadata_key::ShareGroupStatePartitionMetadataKey;
pub use share_group_state_partition_metadata_value::ShareGroupStatePartitionMetadataValue;
pub use share_group_target_assignment_member_key::ShareGroupTargetAssignmentMemberKey;
pub use share_group_target_assignment_member_value::ShareGroupTargetAssignmentMemberValue;
pub use share_group_target_assignment_metadata_key::ShareGroupTargetAssignmentMetadataKey;
pub use share_group_target_assignment_metadata_value::ShareGroupTargetAssignmentMetadataValue;
pub use streams_group_current_member_assignment_key::StreamsGroupCurrentMemberAssignmentKey;
pub use streams_group_current_member_assignment_value::StreamsGroupCurrentMemberAssignmentValue;
pub use streams_group_member_metadata_key::StreamsGroupMemberMetadataKey;
pub use streams_group_member_metadata_value::StreamsGroupMemberMetadataValue;
pub use streams_group_metadata_key::StreamsGroupMetadataKey;
pub use streams_group_metadata_value::StreamsGroupMetadataValue;
pub use streams_group_target_assignment_member_key::StreamsGroupTargetAssignmentMemberKey;
pub use streams_group_target_assignment_member_value::StreamsGroupTargetAssignmentMemberValue;
pub use streams_group_target_assignment_metadata_key::StreamsGroupTargetAssignmentMetadataKey;
pub use streams_group_target_assignment_metadata_value::StreamsGroupTargetAssignmentMetadataValue;
pub use streams_group_topology_key::StreamsGroupTopologyKey;
pub use streams_group_topology_value::StreamsGroupTopologyValue;

super::prefixed::coordinator_records!();
