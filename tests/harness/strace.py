"""Watches a process's system calls: which began when, ended when, on which file or connection; or kills it at one."""

import dataclasses
import re
import signal
import subprocess

ATTACH = re.compile(r"Process \d+ attached")
# 1234  1700000000.123456 pwritev(12</data/t-0/00000000000000000000.log>, ... , 0) = 79 <0.000030>
START = re.compile(r"^(?P<thread>\d+)\s+(?P<time>\d+\.\d+) (?P<name>\w+)\((?P<rest>.*)$")
RESUMED = re.compile(r"^(?P<thread>\d+)\s+(?P<time>\d+\.\d+) <\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)$")
RESULT = re.compile(r"= (?P<result>-?\d+)[^=]*?(?:<(?P<seconds>\d+\.\d+)>)?$")
TARGET = re.compile(r"^\d+<(?P<target>.*?)>(?:,|\)| <unfinished)")
CALLS = "write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fdatasync,fsync"


@dataclasses.dataclass
class Call:
    name: str
    target: str
    begin: float
    end: float
    result: int


class Attached:
    """strace with these options on a process and all its threads."""

    def __init__(self, process_id, options):
        self._strace = subprocess.Popen(
            ["strace", "-f", *options, "-p", str(process_id)], stderr=subprocess.PIPE, text=True
        )
        line = self._strace.stderr.readline()
        if not ATTACH.search(line):
            self._strace.kill()
            raise RuntimeError(f"strace: {line.strip()}")

    def stop(self):
        """Also if the process has ended."""
        self._strace.send_signal(signal.SIGINT)
        self._strace.communicate()


def kill_at(calls, number):
    """Options that let the process be killed where one of its threads makes its `number`-th call of `calls`, before the
    call has done anything.
    """
    return ["-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:signal=SIGKILL:when={number}"]


class Strace:
    """Attaches to a process and all its threads; `stop` gives the calls that have ended, in the order of their ends."""

    def __init__(self, process_id, output):
        self.output = output
        options = ["-ttt", "-T", "-yy", "-s", "0", "-e", f"trace={CALLS}", "-o", output]
        self._attached = Attached(process_id, options)

    def stop(self):
        self._attached.stop()
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return parse(file)


def parse(lines):
    calls = []
    unfinished = {}
    for line in lines:
        line = line.rstrip("\n")
        if resumed := RESUMED.match(line):
            begun = unfinished.pop(resumed["thread"], None)
            result = RESULT.search(resumed["rest"])
            if begun and result:
                name, target, begin = begun
                calls.append(Call(name, target, begin, float(resumed["time"]), int(result["result"])))
        elif start := START.match(line):
            target = TARGET.match(start["rest"])
            where = target["target"] if target else ""
            begin = float(start["time"])
            if start["rest"].endswith("<unfinished ...>"):
                unfinished[start["thread"]] = (start["name"], where, begin)
            elif result := RESULT.search(start["rest"]):
                end = begin + float(result["seconds"] or 0)
                calls.append(Call(start["name"], where, begin, end, int(result["result"])))
    return sorted(calls, key=lambda call: call.end)
