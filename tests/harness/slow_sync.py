"""Lets each fdatasync and fsync of a server take longer, as on a slower disk: by slow_sync.c beside this file.

By hand, to see it: slow_sync.py MILLISECONDS COMMAND [ARGS...]
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "slow_sync.c"
LIBRARY = HERE.parent / ".cache" / "slow_sync.so"


def environment(milliseconds):
    """What a process has to find in its environment; nothing for 0."""
    if not milliseconds:
        return {}
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
        LIBRARY.parent.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", LIBRARY, SOURCE, "-ldl"]
        subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(LIBRARY), "SLOW_SYNC_MICROSECONDS": str(round(milliseconds * 1000))}


def is_in(process_id):
    """Whether that process has it: one that was linked statically would take no notice."""
    with open(f"/proc/{process_id}/maps") as maps:
        return any(str(LIBRARY) in line for line in maps)


if __name__ == "__main__":
    os.execvpe(sys.argv[2], sys.argv[2:], {**os.environ, **environment(float(sys.argv[1]))})
