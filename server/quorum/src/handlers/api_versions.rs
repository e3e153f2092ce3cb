//! ApiVersions 0–5 of a controller: its APIs, the features it supports and those finalized (KIP-511, KIP-584).
//!
//! Versions up to 3 leave out supported features that begin at 0, which their readers refuse (KAFKA-17011).

use std::ops::RangeInclusive;

use metadata::Image;
use metadata::image::FeaturesImage;
use network::ApiVersionRange;
use protocol::messages::api_versions_request::ApiVersionsRequest;
use protocol::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=5;
/// From here on supported features may begin at 0.
const FIRST_WITH_ZERO: i16 = 4;

pub(crate) fn answer(
    _request: &ApiVersionsRequest,
    version: i16,
    served: &[ApiVersionRange],
    image: &Image,
    kraft_version: i16,
) -> ApiVersionsResponse {
    let api_keys = served.iter().map(|range| ApiVersion {
        api_key: range.api_key.code(),
        min_version: *range.advertised.start(),
        max_version: *range.advertised.end(),
        ..ApiVersion::default()
    });
    let supported = FeaturesImage::SUPPORTED
        .iter()
        .filter(|(_, least, _)| version >= FIRST_WITH_ZERO || *least > 0);
    let supported = supported.map(|(name, least, greatest)| SupportedFeatureKey {
        name: (*name).into(),
        min_version: *least,
        max_version: *greatest,
        ..SupportedFeatureKey::default()
    });
    let kraft = (FeaturesImage::KRAFT, kraft_version);
    let levels = image.features.iter().map(|(name, level)| (&**name, level));
    let levels = levels.chain((kraft_version > 0).then_some(kraft));
    let finalized = levels.map(|(name, level)| FinalizedFeatureKey {
        name: name.into(),
        max_version_level: level,
        min_version_level: level,
        ..FinalizedFeatureKey::default()
    });
    ApiVersionsResponse {
        api_keys: api_keys.collect(),
        supported_features: supported.collect(),
        finalized_features: finalized.collect(),
        finalized_features_epoch: image.end_offset.get() - 1,
        ..ApiVersionsResponse::default()
    }
}
