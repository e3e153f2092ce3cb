//! The damage of a log: found when it is opened, when it is read, or by the scrubber, and never forgotten by itself.
//!
//! ```text
//! 0                      version                                        the file `quarantine` of the partition's folder
//! 2                      number of lines
//! 0 4096 4200 100 120    segment, first byte, byte behind, first offset, offset behind
//! 0 8000 8000 180 190    no bytes: the records are not there at all
//! ```
//! - Readers pass over what is quarantined, and its offsets answer with an error. Nothing of it is cut.
//! - The file is what a start knows of segments that it does not read again: it looks at those that are named. What has
//!   gone with its segment, or is found sound, leaves the file, and the log says so.
//! - It is written as a whole and says nothing that the log does not bear out, so damage to it costs one reading of the log.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Offset;
use model::record_batch::BatchHeader;
use tracing::{error, info, warn};

use crate::disk::{Disk, File, read_small_file, remove_file_if_there, replace_file};
use crate::file_names::Kind;
use crate::leader_epochs::LeaderEpochs;
use crate::log_reader::{DamagedRange, Shared};
use crate::scan::Check;
use crate::segment::Segment;
use crate::survey::{Fault, Hole, Rules, Survey, survey};

pub(crate) const QUARANTINE_FILE: &str = "quarantine";
pub(crate) const FILE_BYTES_MAX: usize = 64 << 20;
const VERSION: &str = "0";

/// Where a log keeps what it knows of its damage.
pub(crate) struct Quarantine<D: Disk> {
    disk: D,
    directory: PathBuf,
    state: Mutex<State>,
    /// One segment is examined at a time.
    examining: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Offsets of which not even damaged bytes are there.
    lost: Vec<DamagedRange>,
    /// What the file says; empty if there is none.
    text: String,
}

/// A line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) segment: Offset,
    pub(crate) bytes: std::ops::Range<u64>,
    pub(crate) range: DamagedRange,
}

/// What the file said at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Recorded {
    Lines(Vec<Line>),
    /// It cannot be read: any segment may be damaged.
    Useless,
}

impl<D: Disk> Quarantine<D> {
    pub(crate) fn new(disk: D, directory: PathBuf, lost: Vec<DamagedRange>, recorded: &Recorded) -> Self {
        let text = match recorded {
            Recorded::Lines(lines) => to_text(lines),
            Recorded::Useless => "useless".to_owned(),
        };
        Quarantine {
            disk,
            directory,
            state: Mutex::new(State { lost, text }),
            examining: Mutex::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Errors
/// As the disk says, but for a file that is not there.
pub(crate) fn read_recorded<D: Disk>(disk: &D, directory: &std::path::Path) -> io::Result<Recorded> {
    match read_small_file(disk, &directory.join(QUARANTINE_FILE), FILE_BYTES_MAX) {
        Ok(bytes) => Ok(parse(&bytes).map_or(Recorded::Useless, Recorded::Lines)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Recorded::Lines(Vec::new())),
        Err(error) => Err(error),
    }
}

impl<D: Disk> Shared<D> {
    /// Reads all of a segment and quarantines what is not sound in it. Blocks for as long as that takes.
    ///
    /// # Errors
    /// As the disk says.
    pub(crate) fn examine(&self, segment: &Arc<Segment<D::File>>) -> io::Result<()> {
        let quarantine = &self.quarantine;
        let _one = quarantine.examining.lock().unwrap_or_else(PoisonError::into_inner);
        let truncations = self.truncations.load(Ordering::Acquire);
        let epochs = self.with_epochs(Clone::clone);
        let limit = segment.limit().unwrap_or_else(|| self.log_end_offset());
        let examined = examine(segment, limit, &epochs, |_| Ok(()))?;
        if truncations != self.truncations.load(Ordering::Acquire) {
            return Ok(());
        }
        if examined.is_list_useless {
            self.drop_bases(segment, examined.holes.is_empty());
        }
        self.note_holes(segment, examined.holes);
        Ok(())
    }

    /// Lets go of a list that is damaged or not of this segment, as one is that Kafka has cleaned again. Beside a damaged
    /// segment the file stays: it may be the segment that does not fit.
    fn drop_bases(&self, segment: &Segment<D::File>, is_whole: bool) {
        let path = Kind::Bases.path(&self.quarantine.directory, segment.base_offset);
        warn!(path = %path.display(), "the list of where batches begin is of no use");
        segment.set_bases(None);
        if is_whole && let Err(error) = remove_file_if_there(&self.quarantine.disk, &path) {
            warn!(path = %path.display(), %error, "it cannot be removed");
        }
    }

    /// Takes in what a segment's damage is.
    pub(crate) fn note_holes(&self, segment: &Segment<D::File>, holes: Vec<Hole>) {
        let known = segment.holes();
        if *known == holes {
            return;
        }
        for hole in holes.iter().filter(|hole| !known.contains(hole)) {
            tell(&self.quarantine.directory, segment.base_offset, hole);
        }
        for hole in known.iter().filter(|hole| !holes.contains(hole)) {
            let directory = self.quarantine.directory.display();
            let (from, to) = (hole.from, hole.to);
            info!(%directory, %from, %to, "what was quarantined here is now known better");
        }
        segment.set_holes(holes);
        self.refresh_damage();
    }

    /// Brings what is known of the damage up to date: after it was found, or went with its segment.
    pub(crate) fn refresh_damage(&self) {
        let mut state = self.quarantine.lock();
        let log_start = self.log_start_offset();
        state.lost.retain(|range| range.to > log_start);
        let segments = self.segments.load_full();
        let mut lines: Vec<Line> = Vec::new();
        for segment in segments.iter() {
            let holes = segment.holes();
            lines.extend(holes.iter().filter(|hole| hole.to > log_start).map(|hole| Line {
                segment: segment.base_offset,
                bytes: hole.bytes.clone(),
                range: DamagedRange {
                    from: hole.from,
                    to: hole.to,
                },
            }));
        }
        lines.extend(state.lost.iter().map(|range| {
            Line {
                segment: segments
                    .iter()
                    .rfind(|segment| segment.base_offset <= range.from)
                    .map_or(range.from, |segment| segment.base_offset),
                bytes: 0..0,
                range: *range,
            }
        }));
        lines.sort_by_key(|line| line.range.from);
        let text = to_text(&lines);
        self.damage
            .store(Arc::new(lines.into_iter().map(|line| line.range).collect()));
        if text == state.text {
            return;
        }
        let directory = &self.quarantine.directory;
        let path = directory.join(QUARANTINE_FILE);
        let written = if text.is_empty() {
            info!(directory = %directory.display(), "nothing of the log is damaged any more");
            remove_file_if_there(&self.quarantine.disk, &path)
        } else {
            replace_file(&self.quarantine.disk, &path, text.as_bytes())
        };
        match written {
            Ok(()) => state.text = text,
            Err(error) => warn!(path = %path.display(), %error, "damage is not recorded"),
        }
    }
}

/// What a look at all of a segment shows.
pub(crate) struct Examined {
    pub(crate) holes: Vec<Hole>,
    /// There is a list of where batches begin, and it is damaged or not of this segment.
    pub(crate) is_list_useless: bool,
}

/// Reads all of a segment whose records end at `limit` and whose epochs are all known; `visit` is shown its sound batches.
///
/// # Errors
/// As the disk and `visit` say.
pub(crate) fn examine<F: File>(
    segment: &Segment<F>,
    limit: Offset,
    epochs: &LeaderEpochs,
    mut visit: impl FnMut(&BatchHeader) -> io::Result<()>,
) -> io::Result<Examined> {
    let size = segment.size();
    let bases = segment.load_bases()?;
    let rules = Rules::sealed(segment.base_offset, limit, epochs, bases.as_ref());
    let found = survey(&segment.log, size, rules, Check::Checksums, |header, _| visit(header))?;
    Ok(Examined {
        holes: holes_of(&found, size, Some(limit)),
        is_list_useless: bases.is_none() && segment.bases().is_some(),
    })
}

/// The holes of a segment whose records end at `limit`, that at its end included.
pub(crate) fn holes_of(found: &Survey, size: u64, limit: Option<Offset>) -> Vec<Hole> {
    let mut holes = found.holes.clone();
    if let Some(tail) = found.tail {
        let least = found.next_offset.plus(tail.offsets.max(1));
        holes.push(Hole {
            bytes: found.position..size,
            from: found.next_offset,
            to: limit.map_or(least, |limit| limit.max(found.next_offset)),
            fault: tail.fault,
        });
    }
    holes
}

/// The line for the operator: what, where, and what is missing for it.
pub(crate) fn tell(directory: &std::path::Path, segment: Offset, hole: &Hole) {
    let what = match hole.fault {
        Fault::NoBatch => "there is no batch",
        Fault::Checksum => "the checksum is wrong",
        Fault::Order => "the offsets do not fit those before and behind",
        Fault::Epoch => "the leader epoch is not that of these offsets",
    };
    error!(
        file = %Kind::Log.path(directory, segment).display(),
        position = hole.bytes.start,
        size = hole.bytes.end - hole.bytes.start,
        from = %hole.from,
        to = %hole.to,
        what,
        "records are damaged on the disk: quarantined, not served, not cut"
    );
}

fn to_text(lines: &[Line]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("{VERSION}\n{}\n", lines.len());
    for Line { segment, bytes, range } in lines {
        text.push_str(&format!(
            "{segment} {} {} {} {}\n",
            bytes.start, bytes.end, range.from, range.to
        ));
    }
    text
}

fn parse(bytes: &[u8]) -> Option<Vec<Line>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    if lines.next()? != VERSION {
        return None;
    }
    let count: usize = lines.next()?.parse().ok()?;
    let lines: Vec<Line> = lines.map(parse_line).collect::<Option<_>>()?;
    (lines.len() == count).then_some(lines)
}

fn parse_line(line: &str) -> Option<Line> {
    let mut fields = line.split(' ');
    let mut next = || fields.next()?.parse::<i64>().ok();
    let (segment, start, end, from, to) = (next()?, next()?, next()?, next()?, next()?);
    let line = Line {
        segment: Offset::from_wire(segment)?,
        bytes: u64::try_from(start).ok()?..u64::try_from(end).ok()?,
        range: DamagedRange {
            from: Offset::from_wire(from)?,
            to: Offset::from_wire(to)?,
        },
    };
    (fields.next().is_none() && line.range.from < line.range.to && line.bytes.start <= line.bytes.end).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_back_and_nonsense_is_useless() {
        let line = |segment, bytes, from, to| Line {
            segment: Offset::new(segment),
            bytes,
            range: DamagedRange {
                from: Offset::new(from),
                to: Offset::new(to),
            },
        };
        let lines = [line(0, 4096..4200, 100, 120), line(0, 0..0, 180, 190)];
        let text = to_text(&lines);
        assert_eq!(text, "0\n2\n0 4096 4200 100 120\n0 0 0 180 190\n");
        assert_eq!(parse(text.as_bytes()).unwrap(), lines);
        for nonsense in [
            "",
            "1\n0\n",
            "0\n1\n",
            "0\n1\n0 1 2 3\n",
            "0\n1\n0 1 2 9 3\n",
            "0\n1\n0 1 2 3 4 5\n",
        ] {
            assert_eq!(parse(nonsense.as_bytes()), None, "{nonsense:?}");
        }
    }
}
