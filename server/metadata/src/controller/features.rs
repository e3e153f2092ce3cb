//! Finalized features against what a node supports: nobody joins who could not live up to them.

use model::ErrorCode;

use super::{Controller, Refusal};
use crate::MetadataVersion;
use crate::image::{FeaturesImage, SupportedRange};

impl Controller {
    /// The finalized level of any feature, `kraft.version` included.
    #[must_use]
    pub fn finalized_level(&self, feature: &str) -> i16 {
        if feature == FeaturesImage::KRAFT {
            self.options.kraft_version
        } else {
            self.image().features.level(feature)
        }
    }

    /// Features at a level above 0, `kraft.version` included.
    pub fn finalized_features(&self) -> impl Iterator<Item = (&str, i16)> {
        let kraft = (FeaturesImage::KRAFT, self.options.kraft_version);
        let others = self.image().features.iter().map(|(name, level)| (&**name, level));
        others.chain((kraft.1 > 0).then_some(kraft))
    }

    /// # Errors
    /// If a finalized level lies outside what the node supports; a feature that it does not list counts as 0 to 0.
    pub(super) fn check_supports_features(&self, supported: &[SupportedRange]) -> Result<(), Refusal> {
        if !supported
            .iter()
            .any(|range| &*range.feature == MetadataVersion::FEATURE)
        {
            let message = "Request features do not contain 'metadata.version'";
            return Err(Refusal::new(ErrorCode::InvalidRegistration, message));
        }
        for range in supported {
            self.check_range(&range.feature, range.least, range.greatest)?;
        }
        for (feature, _) in self.finalized_features() {
            if !supported.iter().any(|range| &*range.feature == feature) {
                self.check_range(feature, 0, 0)?;
            }
        }
        Ok(())
    }

    fn check_range(&self, feature: &str, least: i16, greatest: i16) -> Result<(), Refusal> {
        let level = self.finalized_level(feature);
        if (least..=greatest).contains(&level) {
            return Ok(());
        }
        let message = format!(
            "Unable to register because the broker does not support finalized version {level} of {feature}. The broker \
             wants a version between {least} and {greatest}, inclusive."
        );
        Err(Refusal::new(ErrorCode::UnsupportedVersion, message))
    }
}
