//! Unattached: in an epoch whose leader is not known, and no candidate. Where a node starts.
//!
//! Left for candidate at the election timer. The only voter of its set has nobody to wait for, so its timer has always
//! run out.

use model::ControllerEpoch;

use crate::candidate::Candidate;

#[derive(Clone, Debug)]
pub(crate) struct Unattached {
    pub(crate) epoch: ControllerEpoch,
}

impl Unattached {
    /// The next epoch's candidate; `None` when epochs are used up.
    pub(crate) fn stand(&self) -> Option<Candidate> {
        let epoch = self.epoch.next()?;
        Some(Candidate { epoch })
    }
}
