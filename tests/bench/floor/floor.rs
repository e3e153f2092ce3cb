//! What a broker costs at the least: this one receives and writes, reads and sends, and does nothing else.
//!
//! `floor PORT DIRECTORY none|fsync` speaks as much of the Kafka protocol as the benchmark's producers and librdkafka's
//! simple consumer ask for. It looks at no record: no checksum, no validation, no index, no group, no second partition.
//! The base offset is stamped into each batch, because clients read it; a table in memory says where a batch begins.
//!
//! - One thread a connection, which blocks. Requests that came together are written by one call and answered by one. Where
//!   `fsync` was asked for and the producer waits for all, that is after one sync for all that has come.
//! - Batches are written from where they were received, in a buffer small enough to stay in a core's cache. Records are
//!   read and sent, as sendfile costs more on a loopback socket: half as much again for 100 B, more for larger ones.
//! - It trusts its clients and ends on anything unexpected: it is a measure, not a server.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const LIST_OFFSETS: i16 = 2;
const METADATA: i16 = 3;
const API_VERSIONS: i16 = 18;
const INIT_PRODUCER_ID: i16 = 22;
/// Each api with the greatest version that is spoken here: none of them is flexible.
const VERSIONS: [(i16, i16); 6] = [
    (PRODUCE, 3),
    (FETCH, 4),
    (LIST_OFFSETS, 1),
    (METADATA, 1),
    (API_VERSIONS, 2),
    (INIT_PRODUCER_ID, 0),
];
const UNSUPPORTED_VERSION: i16 = 35;
const BUFFER_BYTES: usize = 256 << 10;
/// With less room than this, what has come of the next request is moved to the buffer's beginning.
const READ_BYTES_MIN: usize = 32 << 10;
/// So much is written at most before it is synced, however much more has come.
const UNSYNCED_BYTES_MAX: usize = 4 << 20;
const ACKS_ALL: i16 = -1;
const EARLIEST: i64 = -2;

/// Where batches begin: offset, position.
struct Log {
    file: Arc<File>,
    batches: Vec<(i64, u64)>,
    next_offset: i64,
    size: u64,
}

struct Node {
    port: u16,
    directory: PathBuf,
    sync: bool,
    logs: Mutex<HashMap<String, Arc<Mutex<Log>>>>,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, port, directory, mode] = arguments.as_slice() else {
        return Err(io::Error::other("usage: floor PORT DIRECTORY none|fsync"));
    };
    let port = port.parse().map_err(io::Error::other)?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let node = Arc::new(Node {
        port,
        directory: Path::new(directory).to_owned(),
        sync: mode == "fsync",
        logs: Mutex::default(),
    });
    for stream in listener.incoming() {
        let (node, stream) = (node.clone(), stream?);
        stream.set_nodelay(true)?;
        thread::spawn(move || serve(&node, stream));
    }
    Ok(())
}

/// A batch that is not written yet: where it stands in the buffer, and where in the answers its offset belongs.
struct Received {
    log: Arc<Mutex<Log>>,
    batch: Range<usize>,
    offset_at: usize,
    wants_sync: bool,
}

/// Until the client goes.
fn serve(node: &Node, mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut begin, mut end) = (0, 0);
    let mut answers = Answers::default();
    let mut received = Vec::new();
    let mut unsynced = Unsynced::default();
    loop {
        while let Some(size) = frame_size(&buffer[begin..end]) {
            if end - begin < 4 + size {
                break;
            }
            begin += 4;
            let mut request = Request {
                bytes: &buffer[..begin + size],
                at: begin,
            };
            node.handle(&mut request, &mut answers, &mut received)?;
            begin += size;
        }
        write(&mut received, &mut buffer, &mut answers, &mut unsynced)?;
        if begin == end {
            (begin, end) = (0, 0);
        }
        let wanted = frame_size(&buffer[begin..end]).map_or(4, |size| 4 + size);
        if buffer.len() < begin + wanted || buffer.len() < end + READ_BYTES_MIN {
            buffer.copy_within(begin..end, 0);
            (begin, end) = (0, end - begin);
        }
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        if unsynced.bytes > 0 && unsynced.bytes < UNSYNCED_BYTES_MAX {
            stream.set_nonblocking(true)?;
            let more = stream.read(&mut buffer[end..]);
            stream.set_nonblocking(false)?;
            match more {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    end += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        unsynced.sync()?;
        if answers.used > 0 {
            stream.write_all(&answers.memory[..answers.used])?;
            answers.used = 0;
        }
        match stream.read(&mut buffer[end..])? {
            0 => return Ok(()),
            count => end += count,
        }
    }
}

/// What producers wait for that was written and not synced.
#[derive(Default)]
struct Unsynced {
    files: Vec<Arc<File>>,
    bytes: usize,
}

impl Unsynced {
    fn sync(&mut self) -> io::Result<()> {
        self.bytes = 0;
        self.files.drain(..).try_for_each(|file| file.sync_data())
    }
}

/// Appends what was received, by one call for each log.
fn write(
    received: &mut Vec<Received>,
    buffer: &mut [u8],
    answers: &mut Answers,
    unsynced: &mut Unsynced,
) -> io::Result<()> {
    for together in received.chunk_by(|one, other| Arc::ptr_eq(&one.log, &other.log)) {
        let mut log = together[0].log.lock().unwrap();
        for one in together {
            let base = log.note(&mut buffer[one.batch.clone()]);
            answers.memory[one.offset_at..one.offset_at + 8].copy_from_slice(&base.to_be_bytes());
        }
        let mut slices: Vec<IoSlice<'_>> = together
            .iter()
            .map(|one| IoSlice::new(&buffer[one.batch.clone()]))
            .collect();
        let mut slices = &mut slices[..];
        while !slices.is_empty() {
            // Nothing else moves the file's position.
            let count = (&*log.file).write_vectored(slices)?;
            IoSlice::advance_slices(&mut slices, count);
        }
        let waiting: usize = together
            .iter()
            .filter(|one| one.wants_sync)
            .map(|one| one.batch.len())
            .sum();
        if waiting > 0 && !unsynced.files.iter().any(|file| Arc::ptr_eq(file, &log.file)) {
            unsynced.files.push(log.file.clone());
        }
        unsynced.bytes += waiting;
    }
    received.clear();
    Ok(())
}

fn frame_size(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*length) as usize)
}

impl Node {
    /// Puts the answer behind those that wait, and batches behind those that are to be written.
    fn handle(&self, request: &mut Request<'_>, answer: &mut Answers, received: &mut Vec<Received>) -> io::Result<()> {
        let (api, version, correlation) = (request.i16(), request.i16(), request.i32());
        let start = answer.used;
        answer.i32(0);
        answer.i32(correlation);
        if api == API_VERSIONS {
            api_versions(version, answer);
        } else {
            request.string();
            match api {
                PRODUCE => self.produce(request, answer, received)?,
                FETCH => self.fetch(request, answer)?,
                LIST_OFFSETS => self.list_offsets(request, answer)?,
                METADATA => self.metadata(request, answer),
                INIT_PRODUCER_ID => {
                    answer.i32(0);
                    answer.i16(0);
                    answer.i64(1);
                    answer.i16(0);
                }
                _ => return Err(io::Error::other(format!("api {api} is not spoken here"))),
            }
        }
        let size = (answer.used - start - 4) as u32;
        answer.memory[start..start + 4].copy_from_slice(&size.to_be_bytes());
        Ok(())
    }

    fn log(&self, topic: &str) -> io::Result<Arc<Mutex<Log>>> {
        let mut logs = self.logs.lock().unwrap();
        if let Some(log) = logs.get(topic) {
            return Ok(log.clone());
        }
        let directory = self.directory.join(format!("{topic}-0"));
        std::fs::create_dir_all(&directory)?;
        let path = directory.join("00000000000000000000.log");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let log = Arc::new(Mutex::new(Log {
            file: Arc::new(file),
            batches: Vec::new(),
            next_offset: 0,
            size: 0,
        }));
        logs.insert(topic.to_owned(), log.clone());
        Ok(log)
    }

    /// Goes through the topics of a request and their partitions, each of which `act` reads and answers.
    fn each_partition(
        &self,
        request: &mut Request<'_>,
        answer: &mut Answers,
        mut act: impl FnMut(&Arc<Mutex<Log>>, &mut Request<'_>, &mut Answers) -> io::Result<()>,
    ) -> io::Result<()> {
        let topics = request.i32();
        answer.i32(topics);
        for _ in 0..topics {
            let topic = request.string();
            answer.string(&topic);
            let log = self.log(&topic)?;
            let partitions = request.i32();
            answer.i32(partitions);
            for _ in 0..partitions {
                act(&log, request, answer)?;
            }
        }
        Ok(())
    }

    fn produce(&self, request: &mut Request<'_>, answer: &mut Answers, received: &mut Vec<Received>) -> io::Result<()> {
        request.string();
        let (acks, _timeout) = (request.i16(), request.i32());
        self.each_partition(request, answer, |log, request, answer| {
            answer.i32(request.i32());
            answer.i16(0);
            received.push(Received {
                log: log.clone(),
                batch: request.bytes(),
                offset_at: answer.used,
                wants_sync: self.sync && acks == ACKS_ALL,
            });
            answer.i64(0);
            answer.i64(-1);
            Ok(())
        })?;
        answer.i32(0);
        Ok(())
    }

    fn fetch(&self, request: &mut Request<'_>, answer: &mut Answers) -> io::Result<()> {
        let (_replica, wait_ms, _min, _max) = (request.i32(), request.i32(), request.i32(), request.i32());
        let _isolation = request.i8();
        let mut sent = 0;
        answer.i32(0);
        self.each_partition(request, answer, |log, request, answer| {
            let (partition, from, bytes_max) = (request.i32(), request.i64(), request.i32());
            let log = log.lock().unwrap();
            let range = log.range(from, bytes_max as u64);
            answer.i32(partition);
            answer.i16(0);
            answer.i64(log.next_offset);
            answer.i64(log.next_offset);
            answer.i32(-1);
            answer.i32((range.end - range.start) as i32);
            let room = answer.room((range.end - range.start) as usize);
            log.file.read_exact_at(room, range.start)?;
            sent += range.end - range.start;
            Ok(())
        })?;
        if sent == 0 {
            thread::sleep(Duration::from_millis(wait_ms as u64));
        }
        Ok(())
    }

    fn list_offsets(&self, request: &mut Request<'_>, answer: &mut Answers) -> io::Result<()> {
        request.i32();
        self.each_partition(request, answer, |log, request, answer| {
            answer.i32(request.i32());
            answer.i16(0);
            answer.i64(-1);
            let log_end = log.lock().unwrap().next_offset;
            answer.i64(if request.i64() == EARLIEST { 0 } else { log_end });
            Ok(())
        })
    }

    /// Each topic that is asked for is there, with one partition.
    fn metadata(&self, request: &mut Request<'_>, answer: &mut Answers) {
        answer.i32(1);
        answer.i32(1);
        answer.string("127.0.0.1");
        answer.i32(i32::from(self.port));
        answer.i16(-1);
        answer.i32(1);
        let topics = request.i32().max(0);
        answer.i32(topics);
        for _ in 0..topics {
            answer.i16(0);
            answer.string(&request.string());
            answer.put(&[0]);
            answer.i32(1);
            answer.i16(0);
            answer.i32(0);
            answer.i32(1);
            for _replicas_and_isr in 0..2 {
                answer.i32(1);
                answer.i32(1);
            }
        }
    }
}

impl Log {
    /// Gives a batch its offset and its place behind the last one.
    fn note(&mut self, batch: &mut [u8]) -> i64 {
        let base = self.next_offset;
        batch[..8].copy_from_slice(&base.to_be_bytes());
        let last_offset_delta = i32::from_be_bytes(*batch[23..].first_chunk().expect("a batch has a header"));
        self.batches.push((base, self.size));
        self.next_offset += i64::from(last_offset_delta) + 1;
        self.size += batch.len() as u64;
        base
    }

    /// The bytes of whole batches from the one that holds `offset` on; one at the least.
    fn range(&self, offset: i64, bytes_max: u64) -> Range<u64> {
        if offset >= self.next_offset {
            return self.size..self.size;
        }
        let first = self.batches.partition_point(|batch| batch.0 <= offset) - 1;
        let start = self.batches[first].1;
        let behind = self.batches.partition_point(|batch| batch.1 <= start + bytes_max);
        let end = match self.batches.get(behind) {
            None if self.size - start <= bytes_max => self.size,
            _ if behind - 1 > first => self.batches[behind - 1].1,
            next => next.map_or(self.size, |batch| batch.1),
        };
        start..end
    }
}

fn api_versions(version: i16, answer: &mut Answers) {
    let known = version <= 2;
    answer.i16(if known { 0 } else { UNSUPPORTED_VERSION });
    answer.i32(VERSIONS.len() as i32);
    for (api, greatest) in VERSIONS {
        answer.i16(api);
        answer.i16(0);
        answer.i16(greatest);
    }
    if known && version > 0 {
        answer.i32(0);
    }
}

/// A request in the buffer of its connection, from `at` on.
struct Request<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Request<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let taken = *self.bytes[self.at..].first_chunk().expect("the frame is long enough");
        self.at += N;
        taken
    }

    fn i8(&mut self) -> i8 {
        i8::from_be_bytes(self.take())
    }

    fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }

    /// Empty where there is none.
    fn string(&mut self) -> String {
        let length = self.i16().max(0) as usize;
        self.at += length;
        String::from_utf8_lossy(&self.bytes[self.at - length..self.at]).into_owned()
    }

    /// Where they stand in the buffer.
    fn bytes(&mut self) -> Range<usize> {
        let length = self.i32().max(0) as usize;
        self.at += length;
        self.at - length..self.at
    }
}

/// Answers that wait to be sent, in memory that is kept and never cleared.
#[derive(Default)]
struct Answers {
    memory: Vec<u8>,
    used: usize,
}

impl Answers {
    fn room(&mut self, size: usize) -> &mut [u8] {
        let end = self.used + size;
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        self.used = end;
        &mut self.memory[end - size..end]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    fn i16(&mut self, value: i16) {
        self.put(&value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.put(&value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.put(&value.to_be_bytes());
    }

    fn string(&mut self, text: &str) {
        self.i16(text.len() as i16);
        self.put(text.as_bytes());
    }
}
