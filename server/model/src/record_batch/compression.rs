//! The five ways to store a batch's records, as Kafka's clients write them, each read with a cap on what comes out.
//!
//! gzip and zstd are plain streams; lz4 is its frame format (64 KiB independent blocks); snappy is the block format in
//! the framing of snappy-java ("xerial"), or one bare block as some clients send it.

use std::io::{Cursor, Read, Write};

use super::BatchError;

/// How a batch's records are compressed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Compression {
    #[default]
    None = 0,
    Gzip = 1,
    Snappy = 2,
    Lz4 = 3,
    Zstd = 4,
}

impl Compression {
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// The number in a batch's attributes.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// # Errors
    /// [`BatchError::UnknownCompression`] for numbers above 4.
    pub fn from_code(code: u8) -> Result<Self, BatchError> {
        Self::ALL
            .get(usize::from(code))
            .copied()
            .ok_or(BatchError::UnknownCompression(code))
    }

    /// The name in configurations, as in `compression.type=zstd`; "none" is "uncompressed" there, too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// The greatest number of bytes that the records of one batch may have when decompressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecompressionLimit(usize);

impl DecompressionLimit {
    /// For batches whose reader states no limit of its own: some hundred times the default `message.max.bytes`.
    pub const DEFAULT: DecompressionLimit = DecompressionLimit(128 << 20);

    #[must_use]
    pub const fn bytes(bytes: usize) -> Self {
        DecompressionLimit(bytes)
    }

    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

impl Default for DecompressionLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What snappy-java puts before its chunks: a name, version 1, oldest compatible version 1.
const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const XERIAL_MAGIC_BYTES: usize = 8;
/// Snappy-java's chunk size.
const SNAPPY_CHUNK_BYTES: usize = 32 << 10;
/// A snappy copy element of three bytes yields at most 64 bytes, so a block that claims more than this is lying.
const SNAPPY_RATIO_MAX: usize = 22;
/// Zstd's own greatest window without asking for more (128 MiB); smaller limits ask for smaller windows.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
const ZSTD_WINDOW_LOG_MIN: u32 = 10;
/// The levels that Kafka's producer uses unless told.
const ZSTD_LEVEL_DEFAULT: i32 = 3;
/// What is read at a time where everything is wanted.
const CHUNK_BYTES: usize = 64 << 10;

/// Compresses `input`; `level` is the codec's own (gzip 1–9, zstd up to 22; the other codecs have none).
///
/// # Errors
/// [`BatchError::Compressed`] if the codec refuses, which only a level out of range should cause.
pub fn compress(compression: Compression, level: Option<i32>, input: &[u8]) -> Result<Vec<u8>, BatchError> {
    match compression {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => {
            let level = level
                .and_then(|level| u32::try_from(level).ok())
                .map_or(flate2::Compression::default(), |level| {
                    flate2::Compression::new(level.min(9))
                });
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(input).map_err(|error| unreadable(&error))?;
            encoder.finish().map_err(|error| unreadable(&error))
        }
        Compression::Snappy => snappy_compress(input),
        Compression::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new()
                .block_size(lz4_flex::frame::BlockSize::Max64KB)
                .block_mode(lz4_flex::frame::BlockMode::Independent);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(input).map_err(|error| unreadable(&error))?;
            encoder.finish().map_err(|error| unreadable(&error))
        }
        Compression::Zstd => {
            let level = level.unwrap_or(ZSTD_LEVEL_DEFAULT);
            zstd::stream::encode_all(input, level).map_err(|error| unreadable(&error))
        }
    }
}

fn snappy_compress(input: &[u8]) -> Result<Vec<u8>, BatchError> {
    let mut output = XERIAL_HEADER.to_vec();
    let mut encoder = snap::raw::Encoder::new();
    for chunk in input.chunks(SNAPPY_CHUNK_BYTES) {
        let block = encoder.compress_vec(chunk).map_err(|error| unreadable(&error))?;
        let length = u32::try_from(block.len()).map_err(|error| unreadable(&error))?;
        output.extend_from_slice(&length.to_be_bytes());
        output.extend_from_slice(&block);
    }
    Ok(output)
}

/// Decompresses all of `input`.
///
/// # Errors
/// [`BatchError::Compressed`] if `input` is damaged, [`BatchError::DecompressedTooLarge`] if more than `limit` comes out.
pub fn decompress(compression: Compression, input: &[u8], limit: DecompressionLimit) -> Result<Vec<u8>, BatchError> {
    let mut decompressor = Decompressor::new(compression, input, limit)?;
    let mut output = Vec::new();
    loop {
        let filled = output.len();
        output.resize(filled + CHUNK_BYTES, 0);
        let read = decompressor.read_some(&mut output[filled..])?;
        output.truncate(filled + read);
        if read == 0 {
            return Ok(output);
        }
    }
}

/// A batch's payload, decompressed piece by piece.
pub struct Decompressor<'a> {
    codec: Codec<'a>,
    produced: usize,
    limit: usize,
}

enum Codec<'a> {
    None(&'a [u8]),
    Gzip(Box<flate2::bufread::MultiGzDecoder<&'a [u8]>>),
    Snappy(SnappyReader<'a>),
    Lz4(Box<lz4_flex::frame::FrameDecoder<&'a [u8]>>),
    Zstd(zstd::stream::read::Decoder<'static, &'a [u8]>),
}

impl<'a> Decompressor<'a> {
    /// # Errors
    /// [`BatchError::Compressed`] if the codec cannot be set up.
    pub fn new(compression: Compression, input: &'a [u8], limit: DecompressionLimit) -> Result<Self, BatchError> {
        let codec = match compression {
            Compression::None => Codec::None(input),
            Compression::Gzip => Codec::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(input))),
            Compression::Snappy => Codec::Snappy(SnappyReader::new(input, limit.get())),
            Compression::Lz4 => Codec::Lz4(Box::new(lz4_flex::frame::FrameDecoder::new(input))),
            Compression::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(input).map_err(|error| unreadable(&error))?;
                let window_log =
                    (usize::BITS - limit.get().leading_zeros()).clamp(ZSTD_WINDOW_LOG_MIN, ZSTD_WINDOW_LOG_MAX);
                decoder.window_log_max(window_log).map_err(|error| unreadable(&error))?;
                Codec::Zstd(decoder)
            }
        };
        Ok(Decompressor {
            codec,
            produced: 0,
            limit: limit.get(),
        })
    }

    /// Fills the front of `output` and tells how much of it; 0 is the end.
    ///
    /// # Errors
    /// As [`decompress`].
    pub fn read_some(&mut self, output: &mut [u8]) -> Result<usize, BatchError> {
        let read = match &mut self.codec {
            Codec::None(rest) => rest.read(output).map_err(|error| unreadable(&error))?,
            Codec::Gzip(decoder) => decoder.read(output).map_err(|error| unreadable(&error))?,
            Codec::Snappy(reader) => reader.read_some(output)?,
            Codec::Lz4(decoder) => decoder.read(output).map_err(|error| unreadable(&error))?,
            Codec::Zstd(decoder) => decoder.read(output).map_err(|error| unreadable(&error))?,
        };
        self.produced += read;
        if self.produced > self.limit {
            return Err(BatchError::DecompressedTooLarge { limit: self.limit });
        }
        Ok(read)
    }
}

/// Snappy blocks, with or without snappy-java's framing.
struct SnappyReader<'a> {
    rest: &'a [u8],
    framed: bool,
    block: Cursor<Vec<u8>>,
    limit: usize,
}

impl<'a> SnappyReader<'a> {
    fn new(input: &'a [u8], limit: usize) -> Self {
        let framed = input.len() >= XERIAL_HEADER.len() && input.starts_with(&XERIAL_HEADER[..XERIAL_MAGIC_BYTES]);
        let rest = if framed { &input[XERIAL_HEADER.len()..] } else { input };
        SnappyReader {
            rest,
            framed,
            block: Cursor::new(Vec::new()),
            limit,
        }
    }

    fn read_some(&mut self, output: &mut [u8]) -> Result<usize, BatchError> {
        loop {
            let read = self.block.read(output).map_err(|error| unreadable(&error))?;
            if read > 0 || output.is_empty() || self.rest.is_empty() {
                return Ok(read);
            }
            let compressed = self.next_block()?;
            let claimed = snap::raw::decompress_len(compressed).map_err(|error| unreadable(&error))?;
            if claimed > self.limit {
                return Err(BatchError::DecompressedTooLarge { limit: self.limit });
            }
            if claimed / SNAPPY_RATIO_MAX > compressed.len() {
                return Err(BatchError::Compressed(
                    "snappy block claims an impossible length".to_owned(),
                ));
            }
            let block = snap::raw::Decoder::new()
                .decompress_vec(compressed)
                .map_err(|error| unreadable(&error))?;
            self.block = Cursor::new(block);
        }
    }

    fn next_block(&mut self) -> Result<&'a [u8], BatchError> {
        if !self.framed {
            return Ok(std::mem::take(&mut self.rest));
        }
        let short = || BatchError::Compressed("snappy chunk is cut short".to_owned());
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| short())?;
        let (block, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        self.rest = rest;
        Ok(block)
    }
}

fn unreadable(error: &dyn std::error::Error) -> BatchError {
    BatchError::Compressed(error.to_string())
}
