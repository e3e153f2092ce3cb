#!/usr/bin/env python3
"""How a log is written and read, as strace sees it: appends follow one another, reads come from the page cache.

    file-io.py

One connection, one partition. Each write of the log begins where the one before has ended. What was just written is read
without a wait for the device; when the kernel has dropped it, the node first asks for what is in memory, is told that
nothing is, and only then lets the device read; from then on it is in memory again. The data has to lie on a file system
that can say what is in memory (RWF_NOWAIT: ext4, xfs, btrfs; not tmpfs).
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402
import strace  # noqa: E402
import wire  # noqa: E402

TOPIC = "file-io"
RECORDS = 200
VALUE_BYTES = 700
CALLS = "write,writev,pwrite64,pwritev,pwritev2,read,readv,pread64,preadv,preadv2"
# 1234  pwritev(12</data/t-0/0.log>, [{iov_base=""..., iov_len=79}], 1, 4096) = 79, in two lines if another call came between.
CALL = re.compile(r"^(?P<thread>\d+)\s+(?P<name>\w+)\((?P<arguments>.*?)(?:\)\s+= (?P<result>-?\w+).*| <unfinished \.\.\.>)$")
RESUMED = re.compile(r"^(?P<thread>\d+)\s+<\.\.\. \w+ resumed>(?P<arguments>.*)\)\s+= (?P<result>-?\w+)")


class Watched:
    """The calls on one file while the block runs: (name, arguments, result), in the order of their begin."""

    def __init__(self, server, file, output):
        self.calls = []
        self._server, self._file, self._output = server, file, output

    def __enter__(self):
        options = ["-yy", "-s", "0", "-e", f"trace={CALLS}", "-P", str(self._file), "-o", str(self._output)]
        self._attached = strace.Attached(self._server.process_id(), options)
        return self.calls

    def __exit__(self, *_):
        self._attached.stop()
        begun = {}
        for line in self._output.read_text(errors="replace").splitlines():
            if resumed := RESUMED.match(line):
                call = begun.pop(resumed["thread"], None)
                if call is not None:
                    call[1:] = [call[1] + resumed["arguments"], int(resumed["result"])]
            elif match := CALL.match(line):
                call = [match["name"], match["arguments"], match["result"] and int(match["result"])]
                self.calls.append(call)
                if call[2] is None:
                    begun[match["thread"]] = call


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def appends_follow_one_another(server, connection, log, output):
    end = log.stat().st_size
    with Watched(server, log, output) as calls:
        for number in range(RECORDS):
            connection.produce(TOPIC, 0, wire.batch(f"{number} ".encode().ljust(VALUE_BYTES, b".")))
    writes = [call for call in calls if "write" in call[0]]
    expect(len(writes) >= RECORDS, f"{len(writes)} writes for {RECORDS} answers")
    for name, arguments, result in writes:
        position = re.search(r", (\d+)$", arguments)
        expect(name in ("pwrite64", "pwritev") and position, f"a write without a position: {name}({arguments})")
        expect(int(position[1]) == end, f"a write at {position[1]}, where the log ends at {end}")
        end += result
    expect(log.stat().st_size == end, f"the log has {log.stat().st_size} bytes, {end} of them written in order")


def is_in_memory(log):
    with open(log, "rb") as file:
        try:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except BlockingIOError:
            return False


def dropped(log):
    with open(log, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return not is_in_memory(log)


def waits(calls):
    """Reads that may wait for the device."""
    return [call for call in calls if "read" in call[0] and "RWF_NOWAIT" not in call[1]]


def read_whole(server, connection, log, output):
    with Watched(server, log, output) as calls:
        data = connection.fetch(TOPIC, 0, 0)
    expect(data == log.read_bytes()[: len(data)] and len(data) > RECORDS * VALUE_BYTES, "the log's bytes are sent as they are")
    expect(any("read" in call[0] for call in calls), "the file is read")
    return calls


def reads_come_from_the_page_cache(server, connection, log, output):
    calls = read_whole(server, connection, log, output)
    expect(not waits(calls), f"what was just written waits for no device: {waits(calls)}")
    harness.wait_for(lambda: dropped(log), "the kernel has dropped the log")
    calls = read_whole(server, connection, log, output)
    expect("RWF_NOWAIT" in calls[0][1], f"memory is asked first: {calls[0]}")
    expect(waits(calls), "what is not in memory comes from the device")
    calls = read_whole(server, connection, log, output)
    expect(not waits(calls), f"what was read once is in memory: {waits(calls)}")


def main():
    directory = tempfile.mkdtemp(prefix="millstream-file-io-")
    # The scrubber reads logs, too.
    server = harness.Millstream(directory, {"millstream.log.scrub.bytes.per.second": "0"})
    passed = failed = 0
    try:
        server.start()
        connection = wire.Connection(server.port)
        connection.create_topic(TOPIC, 1)
        log = server.log_directory / f"{TOPIC}-0" / f"{0:020}.log"
        harness.wait_for(log.exists, "the log is there")
        for case in (appends_follow_one_another, reads_come_from_the_page_cache):
            try:
                case(server, connection, log, pathlib.Path(directory) / "strace.txt")
                passed += 1
                print(f"ok {case.__name__}", flush=True)
            except (AssertionError, harness.ServerError, OSError, RuntimeError) as error:
                failed += 1
                print(f"FAILED {case.__name__}: {error}", flush=True)
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
