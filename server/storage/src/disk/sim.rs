//! A disk in memory that forgets what was not synced, tears, flips bits and refuses, all by seed.
//!
//! Each file holds its bytes as programs see them and as they are durable; each directory its names likewise. A crash
//! keeps the durable state plus, drawn from the seed, a part of what came after: of a file's writes a prefix with the
//! last one torn (or, with [`SimDisk::reorder_on_crash`], any of them), of the changes of names a prefix.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DirectoryEntry, Disk, File, OpenMode, Room};

/// What writes are torn at.
const SECTOR_BYTES: usize = 512;

/// A kind of call, for [`Fault`]s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Open,
    Read,
    Write,
    Truncate,
    Sync,
    Rename,
    Remove,
    SyncDirectory,
}

/// Lets calls fail: those of `operation` from the `skip`-th on, once or for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub operation: Operation,
    pub skip: u64,
    pub error: io::ErrorKind,
    pub lasting: bool,
}

/// A simulated disk; clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// An open file of a [`SimDisk`].
#[derive(Clone, Debug)]
pub struct SimFile {
    state: Arc<Mutex<State>>,
    node: u64,
    boot: u64,
}

#[derive(Debug)]
struct State {
    random: u64,
    nodes: BTreeMap<u64, Node>,
    next_node: u64,
    names: BTreeMap<PathBuf, Entry>,
    durable_names: BTreeMap<PathBuf, Entry>,
    pending_names: Vec<(PathBuf, NameChange)>,
    faults: Vec<Fault>,
    calls: u64,
    crash_at_call: Option<u64>,
    crashed: bool,
    reorder: bool,
    nowait_blocks: bool,
    capacity_bytes: Option<u64>,
    boot: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    File(u64),
    Directory,
}

#[derive(Clone, Debug)]
enum NameChange {
    Add(PathBuf, Entry),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

#[derive(Debug, Default)]
struct Node {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl SimDisk {
    /// An empty disk whose misfortunes follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            random: seed,
            nodes: BTreeMap::new(),
            next_node: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            faults: Vec::new(),
            calls: 0,
            crash_at_call: None,
            crashed: false,
            reorder: false,
            nowait_blocks: false,
            capacity_bytes: None,
            boot: 0,
        };
        SimDisk {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// How many calls were made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Lets the machine lose power at the `call`-th call from the beginning: it and all later ones fail.
    pub fn crash_at_call(&self, call: u64) {
        self.lock().crash_at_call = Some(call);
    }

    /// Whether any of the unsynced writes of a file may survive a crash, not only a prefix.
    pub fn reorder_on_crash(&self, reorder: bool) {
        self.lock().reorder = reorder;
    }

    /// Whether reads that must not wait are refused, as on a machine with a cold cache.
    pub fn nowait_blocks(&self, blocks: bool) {
        self.lock().nowait_blocks = blocks;
    }

    /// Bounds what all files together may hold; `None` for no bound. Names and directories take nothing.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity_bytes = bytes;
    }

    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Whether a planned crash has happened.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.lock().crashed
    }

    /// Power comes back (after it is taken away, if that has not happened): what was not synced is partly gone, files
    /// opened before are of no use.
    pub fn restart(&self) {
        self.lock().restart();
    }

    /// Flips one bit of what is stored in the file at `path`, for good. False if there is no such byte.
    pub fn flip_bit(&self, path: &Path, byte: usize, bit: u8) -> bool {
        let mut state = self.lock();
        let Some(Entry::File(node)) = state.names.get(path).copied() else {
            return false;
        };
        let Some(node) = state.nodes.get_mut(&node) else {
            return false;
        };
        let mask = 1 << (bit % 8);
        if let Some(byte) = node.durable.get_mut(byte) {
            *byte ^= mask;
        }
        node.bytes.get_mut(byte).map(|byte| *byte ^= mask).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn draw(&mut self, below: usize) -> usize {
        // splitmix64: small, and the same everywhere.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        usize::try_from(bits % (below.max(1) as u64)).unwrap_or(0)
    }

    /// Counts a call and tells whether it may happen.
    fn enter(&mut self, operation: Operation) -> io::Result<()> {
        self.calls += 1;
        if self.crash_at_call.is_some_and(|call| self.calls >= call) {
            self.crashed = true;
        }
        if self.crashed {
            return Err(io::Error::other("the simulated machine has no power"));
        }
        let mut failed = None;
        self.faults.retain_mut(|fault| {
            if fault.operation != operation || failed.is_some() {
                return true;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                return true;
            }
            failed = Some(fault.error);
            fault.lasting
        });
        failed.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// The bytes of the files that have names.
    fn used_bytes(&self) -> u64 {
        let files = self.names.values().filter_map(|entry| match entry {
            Entry::File(node) => self.nodes.get(node),
            Entry::Directory => None,
        });
        files.map(|node| node.bytes.len() as u64).sum()
    }

    /// Whether the file may become `size` bytes long.
    fn check_room(&self, node: u64, size: u64) -> io::Result<()> {
        let now = self.nodes.get(&node).map_or(0, |node| node.bytes.len() as u64);
        match self.capacity_bytes {
            Some(capacity) if self.used_bytes() + size.saturating_sub(now) > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    fn restart(&mut self) {
        self.crashed = false;
        self.crash_at_call = None;
        self.faults.clear();
        self.boot += 1;
        self.keep_some_names();
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for id in ids {
            self.keep_some_writes(id);
        }
        let linked: Vec<u64> = self
            .names
            .values()
            .filter_map(|entry| {
                if let Entry::File(node) = entry {
                    Some(*node)
                } else {
                    None
                }
            })
            .collect();
        self.nodes.retain(|id, _| linked.contains(id));
    }

    fn keep_some_names(&mut self) {
        let pending = std::mem::take(&mut self.pending_names);
        let mut kept: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for (directory, _) in &pending {
            *kept.entry(directory.clone()).or_default() += 1;
        }
        let totals: Vec<(PathBuf, usize)> = kept.into_iter().collect();
        let mut kept: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for (directory, total) in totals {
            let survive = self.draw(total + 1);
            kept.insert(directory, survive);
        }
        for (directory, change) in pending {
            if let Some(left) = kept.get_mut(&directory).filter(|left| **left > 0) {
                *left -= 1;
                apply_name(&mut self.durable_names, &change);
            }
        }
        self.names = self.durable_names.clone();
        // What lies in a folder is gone with it.
        let folders = self.durable_names.clone();
        let is_there = |path: &Path| path.parent().is_none() || folders.contains_key(path);
        self.names.retain(|path, _| path.ancestors().skip(1).all(is_there));
        self.durable_names = self.names.clone();
    }

    fn keep_some_writes(&mut self, id: u64) {
        let Some(mut node) = self.nodes.remove(&id) else { return };
        let pending = std::mem::take(&mut node.pending);
        let survive = self.draw(pending.len() + 1);
        for (index, change) in pending.into_iter().enumerate() {
            let whole = if self.reorder {
                self.draw(2) == 0
            } else {
                index < survive
            };
            let torn = index == survive && self.draw(2) == 0;
            match change {
                change if whole => apply(&mut node.durable, &change),
                Change::Write(at, bytes) if torn => {
                    let sectors = bytes.len().div_ceil(SECTOR_BYTES);
                    let kept =
                        (self.draw(sectors) * SECTOR_BYTES + self.draw(2) * self.draw(SECTOR_BYTES)).min(bytes.len());
                    apply(&mut node.durable, &Change::Write(at, bytes[..kept].to_vec()));
                }
                _ => {}
            }
        }
        node.bytes = node.durable.clone();
        self.nodes.insert(id, node);
    }

    fn change_name(&mut self, directory: &Path, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.pending_names.push((directory.to_owned(), change));
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, written) => {
            if written.is_empty() {
                return;
            }
            let end = at + written.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*at..end].copy_from_slice(written);
        }
        Change::Truncate(size) => bytes.resize(*size, 0),
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, Entry>, change: &NameChange) {
    match change {
        NameChange::Add(path, entry) => {
            names.insert(path.clone(), *entry);
        }
        NameChange::Remove(path) => {
            names.retain(|name, _| !name.starts_with(path));
        }
        NameChange::Rename(from, to) => {
            let moved: Vec<PathBuf> = names.keys().filter(|name| name.starts_with(from)).cloned().collect();
            for name in moved {
                if let (Some(entry), Ok(below)) = (names.remove(&name), name.strip_prefix(from)) {
                    let target = if below.as_os_str().is_empty() {
                        to.clone()
                    } else {
                        to.join(below)
                    };
                    names.insert(target, entry);
                }
            }
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl Disk for SimDisk {
    type File = SimFile;

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SimFile> {
        let mut state = self.lock();
        state.enter(Operation::Open)?;
        let node = match (state.names.get(path).copied(), mode) {
            (Some(Entry::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Entry::File(node)), _) => node,
            (None, OpenMode::Read | OpenMode::ReadWrite) => return Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::Create | OpenMode::Replace) => {
                if state.names.get(parent(path)) != Some(&Entry::Directory) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let node = state.next_node;
                state.next_node += 1;
                state.nodes.insert(node, Node::default());
                state.change_name(parent(path), NameChange::Add(path.to_owned(), Entry::File(node)));
                node
            }
        };
        if mode == OpenMode::Replace {
            let node = state.nodes.entry(node).or_default();
            node.bytes.clear();
            node.pending.push(Change::Truncate(0));
        }
        Ok(SimFile {
            state: self.state.clone(),
            node,
            boot: state.boot,
        })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let mut state = self.lock();
        state.enter(Operation::Read)?;
        if state.names.get(directory) != Some(&Entry::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let below = state.names.iter().filter(|(path, _)| path.parent() == Some(directory));
        Ok(below
            .filter_map(|(path, entry)| {
                let name = path.file_name()?.to_str()?.to_owned();
                Some(DirectoryEntry {
                    name,
                    is_directory: *entry == Entry::Directory,
                })
            })
            .collect())
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Open)?;
        let missing: Vec<PathBuf> = directory
            .ancestors()
            .take_while(|path| !state.names.contains_key(*path))
            .map(Path::to_owned)
            .collect();
        for path in missing.into_iter().rev() {
            let above = parent(&path).to_owned();
            state.change_name(&above, NameChange::Add(path, Entry::Directory));
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Rename)?;
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(parent(to), NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Remove)?;
        if !matches!(state.names.get(path), Some(Entry::File(_))) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(parent(path), NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Remove)?;
        if state.names.get(directory) != Some(&Entry::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(parent(directory), NameChange::Remove(directory.to_owned()));
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::SyncDirectory)?;
        let pending = std::mem::take(&mut state.pending_names);
        for (changed, change) in pending {
            if changed == directory {
                apply_name(&mut state.durable_names, &change);
            } else {
                state.pending_names.push((changed, change));
            }
        }
        Ok(())
    }

    fn link_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.enter(Operation::Open)?;
        let Some(Entry::File(node)) = state.names.get(from).copied() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.change_name(parent(to), NameChange::Add(to.to_owned(), Entry::File(node)));
        Ok(())
    }

    fn room(&self, _directory: &Path) -> io::Result<Room> {
        let mut state = self.lock();
        state.enter(Operation::Read)?;
        let capacity_bytes = state.capacity_bytes.unwrap_or(u64::MAX);
        Ok(Room {
            available_bytes: capacity_bytes.saturating_sub(state.used_bytes()),
            capacity_bytes,
        })
    }
}

impl SimFile {
    fn node<T>(&self, operation: Operation, act: impl FnOnce(&mut Node) -> T) -> io::Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.enter(operation)?;
        if state.boot != self.boot {
            return Err(io::Error::other(
                "the file was opened before the simulated machine restarted",
            ));
        }
        Ok(act(state.nodes.entry(self.node).or_default()))
    }

    fn check_room(&self, size_bytes: u64) -> io::Result<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.check_room(self.node, size_bytes)
    }
}

impl File for SimFile {
    fn size_bytes(&self) -> io::Result<u64> {
        self.node(Operation::Read, |node| node.bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.node(Operation::Read, |node| {
            let from = usize::try_from(position).unwrap_or(usize::MAX).min(node.bytes.len());
            let size = buffer.len().min(node.bytes.len() - from);
            buffer[..size].copy_from_slice(&node.bytes[from..from + size]);
            size
        })
    }

    fn read_at_nowait(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        if self.state.lock().unwrap_or_else(PoisonError::into_inner).nowait_blocks {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.read_at(buffer, position)
    }

    fn write_all_at(&self, parts: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let written: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let position = usize::try_from(position).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.check_room((position + written.len()) as u64)?;
        let result = self.node(Operation::Write, |node| {
            let change = Change::Write(position, written.clone());
            apply(&mut node.bytes, &change);
            node.pending.push(change);
        });
        if result.is_err() {
            // What failed may have been written in part.
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = state.draw(written.len() + 1);
            if let Some(node) = state.nodes.get_mut(&self.node) {
                let change = Change::Write(position, written[..kept].to_vec());
                apply(&mut node.bytes, &change);
                node.pending.push(change);
            }
        }
        result
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        let size = usize::try_from(size_bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.node(Operation::Truncate, |node| {
            node.bytes.resize(size, 0);
            node.pending.push(Change::Truncate(size));
        })
    }

    fn allocate(&self, size_bytes: u64) -> io::Result<()> {
        self.check_room(size_bytes)?;
        let size = usize::try_from(size_bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.node(Operation::Write, |node| {
            let size = size.max(node.bytes.len());
            node.bytes.resize(size, 0);
            node.pending.push(Change::Truncate(size));
        })
    }

    fn lock(&self) -> io::Result<()> {
        // There is one process on a simulated machine.
        self.node(Operation::Open, |_| ())
    }

    fn sync(&self) -> io::Result<()> {
        self.node(Operation::Sync, |node| {
            node.pending.clear();
            node.durable = node.bytes.clone();
        })
    }
}
