"""What a process and the machine have used, looked at from outside. Standard library only."""

import os
import statistics
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SYNC_PROBES = 50
# Above these, other programs have a say in the figures.
LOAD_AVERAGE_QUIET_MAX = 0.5
OTHER_CORES_QUIET_MAX = 0.2


def cpu_seconds(process_id):
    """User and system time of all threads, ended ones too, children not: what /proc/PID/stat says, in nanoseconds."""
    process_clock = (~process_id << 3) | 2
    return time.clock_gettime(process_clock)


def resident_mebibytes(process_id):
    with open(f"/proc/{process_id}/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    raise OSError(f"process {process_id} has no VmRSS")


def started_at(process_id):
    """When the kernel made the process, on `now`'s clock, rounded down to its tick."""
    with open(f"/proc/{process_id}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[19]) / TICKS_PER_SECOND


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def machine_busy_seconds():
    """Core seconds that the whole machine has worked so far; waiting for the disk is not work."""
    with open("/proc/stat") as stat:
        fields = [int(field) for field in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS_PER_SECOND


def sync_milliseconds(directory):
    """The median of a 4 KiB write and fdatasync in this directory: what an acknowledged record costs there at least."""
    path = os.path.join(directory, "sync-probe")
    seconds = []
    with open(path, "wb", buffering=0) as file:
        for _ in range(SYNC_PROBES):
            file.write(bytes(4096))
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - begin)
    os.unlink(path)
    return statistics.median(seconds) * 1000


def fill(path, size_bytes):
    """A file of that many bytes in the page cache."""
    block = bytes(1 << 20)
    with open(path, "wb", buffering=0) as file:
        for _ in range(size_bytes // len(block) + 1):
            file.write(block)


def file_system(directory):
    """The kind of file system that holds the directory."""
    path, found = os.path.realpath(directory), ("", "unknown")
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            mount, kind = line.split()[1:3]
            if (path + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(found[0]):
                found = (mount, kind)
    return found[1]


def processor():
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def machine(directory):
    """The conditions that figures are to be read with."""
    return {
        "at": time.strftime("%Y-%m-%d %H:%M"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": os.uname().release,
        "file_system": file_system(directory),
        "sync_ms": round(sync_milliseconds(directory), 3),
        "load_average": round(os.getloadavg()[0], 2),
    }
