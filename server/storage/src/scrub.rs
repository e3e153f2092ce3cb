//! Looks for damage where nobody reads: segment by segment, as fast as the caller lets it.
//!
//! What is found is quarantined as if a reader had come upon it. No lock is held while a segment is read.

use std::io;
use std::ops::ControlFlow;

use model::Offset;

use crate::disk::Disk;
use crate::log_reader::{LogReader, ReadError};
use crate::quarantine::examine;

/// What one step of the scrubber did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scrubbed {
    /// Where the next step begins; the log's end if there is no more.
    pub next: Offset,
    pub bytes: u64,
    /// Whether anything was found that was not known.
    pub found: bool,
}

impl<D: Disk> LogReader<D> {
    /// Checks the segment that holds `from`, or the first behind it; `None` if there is no more to check. `pace` is told of
    /// the bytes that were read since it was called last; it may wait, and may say that it is enough.
    ///
    /// # Errors
    /// As the disk says. Damage is none.
    pub fn scrub(
        &self,
        from: Offset,
        mut pace: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Scrubbed>, ReadError> {
        let shared = self.shared();
        let segments = shared.segments.load_full();
        let first = segments
            .partition_point(|segment| segment.base_offset <= from)
            .saturating_sub(1);
        let log_end = self.log_end_offset();
        let Some(segment) = segments.get(first).filter(|_| from < log_end) else {
            return Ok(None);
        };
        let size = segment.size();
        let next = segment.limit().unwrap_or(log_end);
        let epochs = shared.with_epochs(Clone::clone);
        let examined = examine(segment, next, &epochs, |header| match pace(header.size_bytes()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(io::ErrorKind::Interrupted.into()),
        });
        let examined = match examined {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            examined => examined?,
        };
        let known = segment.holes();
        let found = *known != examined.holes || examined.is_list_useless;
        if found {
            // Once more and at once: the log may have been truncated meanwhile.
            shared.examine(segment)?;
        }
        Ok(Some(Scrubbed {
            next,
            bytes: size,
            found: found && *segment.holes() != *known,
        }))
    }
}
