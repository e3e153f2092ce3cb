//! Memory that reads are made into, kept for the next read instead of being given back, zeroed and faulted in again.
//!
//! A consumer that catches up asks for a MiB at a time, which is also what clients ask for by default. A buffer goes out as
//! [`Bytes`] and comes back when the last slice of it is dropped, on whichever thread that is. Its old bytes are never
//! seen: a read that does not fill what it asked for is an error.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// What one kept buffer holds: `max.partition.fetch.bytes` and its like by default.
const KEPT_BUFFER_BYTES: usize = 1 << 20;
/// Smaller reads take memory of their size: they would hold a whole buffer for as long as their answer is unsent.
const KEPT_READ_BYTES_MIN: usize = KEPT_BUFFER_BYTES / 4;
/// How many buffers are kept while nobody uses them.
const KEPT_BUFFERS_MAX: usize = 8;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A buffer of [`KEPT_BUFFER_BYTES`] that is on loan.
struct Kept(Vec<u8>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_BUFFERS_MAX {
            kept.push(std::mem::take(&mut self.0));
        }
    }
}

/// `size` bytes that `fill` has written.
///
/// # Errors
/// As `fill`.
pub(super) fn filled(size: usize, fill: impl FnOnce(&mut [u8]) -> io::Result<()>) -> io::Result<Bytes> {
    if !(KEPT_READ_BYTES_MIN..=KEPT_BUFFER_BYTES).contains(&size) {
        let mut buffer = vec![0; size];
        fill(&mut buffer)?;
        return Ok(buffer.into());
    }
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut buffer = Kept(kept.unwrap_or_else(|| vec![0; KEPT_BUFFER_BYTES]));
    fill(&mut buffer.0[..size])?;
    Ok(Bytes::from_owner(buffer).slice(..size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(size: usize, byte: u8) -> Bytes {
        filled(size, |buffer| {
            buffer.fill(byte);
            Ok(())
        })
        .unwrap()
    }

    #[test]
    fn bytes_that_are_still_held_are_not_written_over() {
        let sizes = [
            0,
            1,
            KEPT_READ_BYTES_MIN,
            KEPT_BUFFER_BYTES - 1,
            KEPT_BUFFER_BYTES,
            KEPT_BUFFER_BYTES + 1,
        ];
        let held: Vec<Bytes> = (0..4 * KEPT_BUFFERS_MAX)
            .map(|turn| read(sizes[turn % sizes.len()], turn as u8).slice(..))
            .collect();
        for (turn, bytes) in held.iter().enumerate() {
            assert_eq!(bytes.len(), sizes[turn % sizes.len()]);
            assert!(bytes.iter().all(|byte| *byte == turn as u8));
        }
        drop(held);
        assert!(KEPT.lock().unwrap().len() <= KEPT_BUFFERS_MAX);
    }

    #[test]
    fn a_read_that_failed_gives_its_error() {
        let error = filled(KEPT_BUFFER_BYTES, |_| Err(io::ErrorKind::WouldBlock.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
