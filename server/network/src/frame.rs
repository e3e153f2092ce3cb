//! Frames: an int32 length, then that many bytes.
//!
//! ```text
//!   ┌────────────┬───────────────────────────────┐
//!   │ int32  n   │ n bytes: header, then body    │   0 < n ≤ frame_bytes_max
//!   └────────────┴───────────────────────────────┘
//! ```
//! Memory follows the bytes that have come, not the length that was promised.

use std::io::{self, IoSlice};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a read asks of the socket at the least; small frames share one such piece of memory.
const READ_BYTES_MIN: usize = 16 * 1024;
/// How much memory a promised length may reserve before its bytes have come.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;
/// How many pieces one vectored write hands to the kernel.
const WRITE_SLICES_MAX: usize = 128;
const LENGTH_BYTES: usize = 4;

/// Why no further frame can be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("reading from the socket")]
    Io(#[from] io::Error),
    #[error("a frame of {length} bytes was announced, from 1 to {max} are accepted")]
    Length { length: i32, max: usize },
    #[error("the connection ended inside a frame, after {received} bytes of it")]
    Truncated { received: usize },
}

/// Cuts a byte stream into frames.
pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    frame_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(stream: R, frame_bytes_max: usize) -> Self {
        FrameReader {
            stream,
            buffer: BytesMut::new(),
            frame_bytes_max,
        }
    }

    /// The next frame without its length; `None` where the stream ends between frames. May be dropped and called again:
    /// what has been read stays.
    ///
    /// # Errors
    /// If the socket fails, the length is out of bounds or the stream ends inside a frame.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            let wanted = match self.announced()? {
                Some(length) if self.buffer.len() >= LENGTH_BYTES + length => {
                    self.buffer.advance(LENGTH_BYTES);
                    return Ok(Some(self.buffer.split_to(length).freeze()));
                }
                Some(length) => LENGTH_BYTES + length - self.buffer.len(),
                None => LENGTH_BYTES,
            };
            if self.buffer.capacity() == self.buffer.len() {
                self.buffer.reserve(self.reservation(wanted));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return match self.buffer.len() {
                    0 => Ok(None),
                    received => Err(FrameError::Truncated { received }),
                };
            }
        }
    }

    /// Whether the next frame has come whole, so that [`FrameReader::next`] gives it at once.
    pub fn has_frame(&self) -> bool {
        matches!(self.announced(), Ok(Some(length)) if self.buffer.len() - LENGTH_BYTES >= length)
    }

    fn announced(&self) -> Result<Option<usize>, FrameError> {
        let Some(prefix) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*prefix);
        match usize::try_from(length) {
            Ok(bytes) if bytes > 0 && bytes <= self.frame_bytes_max => Ok(Some(bytes)),
            _ => Err(FrameError::Length {
                length,
                max: self.frame_bytes_max,
            }),
        }
    }

    /// As much as is missing; but past the first MiB never more than what has come already.
    fn reservation(&self, wanted: usize) -> usize {
        wanted.min(self.buffer.len().max(RESERVE_BYTES_MAX)).max(READ_BYTES_MIN)
    }
}

/// Writes `pieces` behind their common length, without copying them together.
///
/// # Errors
/// If the socket fails.
///
/// # Panics
/// If the pieces are longer than an int32 can say: a response of that size is a bug.
pub async fn write_frame<W: AsyncWrite + Unpin>(stream: &mut W, pieces: &[Bytes]) -> io::Result<()> {
    write_frames(stream, &[pieces]).await
}

/// Writes several frames, each the pieces of one, in as few calls as the stream allows.
///
/// # Errors
/// If the socket fails.
///
/// # Panics
/// As [`write_frame`].
pub async fn write_frames<W: AsyncWrite + Unpin, P: AsRef<[Bytes]>>(stream: &mut W, frames: &[P]) -> io::Result<()> {
    let lengths: Vec<[u8; LENGTH_BYTES]> = frames.iter().map(|pieces| length_of(pieces.as_ref())).collect();
    let mut queue: Vec<&[u8]> = Vec::with_capacity(2 * frames.len());
    for (length, pieces) in lengths.iter().zip(frames) {
        queue.push(length);
        queue.extend(
            pieces
                .as_ref()
                .iter()
                .map(Bytes::as_ref)
                .filter(|piece| !piece.is_empty()),
        );
    }
    let mut first = 0;
    while first < queue.len() {
        let last = queue.len().min(first + WRITE_SLICES_MAX);
        let slices: Vec<IoSlice<'_>> = queue[first..last].iter().map(|piece| IoSlice::new(piece)).collect();
        let mut written = stream.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while written > 0 {
            let taken = written.min(queue[first].len());
            queue[first] = &queue[first][taken..];
            written -= taken;
            if queue[first].is_empty() {
                first += 1;
            }
        }
    }
    Ok(())
}

fn length_of(pieces: &[Bytes]) -> [u8; LENGTH_BYTES] {
    let total: usize = pieces.iter().map(Bytes::len).sum();
    i32::try_from(total)
        .expect("a response is shorter than 2 GiB")
        .to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(input: &[u8]) -> FrameReader<&[u8]> {
        FrameReader::new(input, 1000)
    }

    #[tokio::test]
    async fn frames_come_out_as_they_went_in() {
        let mut wire = Vec::new();
        write_frame(
            &mut wire,
            &[Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"cde")],
        )
        .await
        .unwrap();
        write_frame(&mut wire, &[Bytes::from(vec![7; 900])]).await.unwrap();
        let mut frames = reader(&wire);
        assert!(!frames.has_frame());
        assert_eq!(frames.next().await.unwrap().unwrap(), "abcde");
        assert!(frames.has_frame(), "both came in one read");
        assert_eq!(frames.next().await.unwrap().unwrap(), vec![7; 900]);
        assert!(!frames.has_frame());
        assert!(frames.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn lengths_out_of_bounds_are_refused_at_once() {
        for length in [-1, 0, 1001, i32::MAX, i32::MIN] {
            let wire = length.to_be_bytes();
            let error = reader(&wire).next().await.unwrap_err();
            assert!(
                matches!(error, FrameError::Length { length: said, max: 1000 } if said == length),
                "{error:?}"
            );
        }
    }

    #[tokio::test]
    async fn an_end_inside_a_frame_is_told_from_one_between_frames() {
        assert!(matches!(
            reader(&[0, 0]).next().await,
            Err(FrameError::Truncated { received: 2 })
        ));
        assert!(matches!(
            reader(&[0, 0, 0, 9, 1]).next().await,
            Err(FrameError::Truncated { received: 5 })
        ));
    }

    #[tokio::test]
    async fn a_promised_length_takes_no_memory_before_its_bytes_come() {
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let mut frames = FrameReader::new(far, 100 << 20);
        near.write_all(&(100i32 << 20).to_be_bytes()).await.unwrap();
        near.write_all(&[0; 1000]).await.unwrap();
        drop(near);
        assert!(frames.next().await.is_err());
        assert!(
            frames.buffer.capacity() <= 2 * RESERVE_BYTES_MAX,
            "{}",
            frames.buffer.capacity()
        );
    }

    #[tokio::test]
    async fn many_pieces_are_written_whole() {
        let pieces: Vec<Bytes> = (0..1000u32)
            .map(|i| Bytes::from(vec![i as u8; (i % 5) as usize]))
            .collect();
        let mut wire = Vec::new();
        write_frame(&mut wire, &pieces).await.unwrap();
        assert_eq!(wire[4..], pieces.concat());
    }
}
