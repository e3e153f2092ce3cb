//! Resigned: led this epoch and has given it up, at shutdown. It appends nothing more. The next start raises the epoch.

use model::ControllerEpoch;

#[derive(Clone, Debug)]
pub(crate) struct Resigned {
    pub(crate) epoch: ControllerEpoch,
}
