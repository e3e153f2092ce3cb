#!/usr/bin/env python3
"""kill -9 under load, again and again: every acknowledged record is there, once, at its acknowledged offset.

One idempotent producer with acks=all sends through all rounds. A round waits until a random number of records has been
acknowledged, kills the server, starts it on the same directory, and looks whether a high watermark lies below what was
acknowledged; after the last round the topic is read whole.

    kill9.py [--rounds 100] [--seed N] [--server millstream|kafka] [--keep]
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
import acknowledged  # noqa: E402

TOPIC = "kill9"
PARTITIONS = 3
RECORDS_PER_ROUND_MAX = 4000
SHOWN_MAX = 20


def rounds(server, count, dice):
    """Runs the rounds; returns the workload and what went wrong on the way."""
    acknowledged.create_topic(server.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": str(1 << 20)})
    workload = acknowledged.Workload(server.bootstrap, TOPIC)
    wrong = []
    for number in range(1, count + 1):
        if not workload.wait_acknowledged(dice.randint(1, RECORDS_PER_ROUND_MAX)):
            wrong.append(f"round {number}: no progress: {workload.errors[:3]}")
            break
        server.kill()
        ends = workload.ends()
        server.start()
        short = acknowledged.short_of(server.bootstrap, TOPIC, ends)
        wrong += [f"round {number}: {line}" for line in short]
        print(f"round {number}: {len(workload.acknowledged)} acknowledged", flush=True)
        if short:
            break
    workload.finish()
    return workload, wrong + workload.errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--server", default="millstream", choices=["millstream", "kafka"])
    parser.add_argument("--keep", action="store_true", help="keep the data directory when something is wrong")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    directory = tempfile.mkdtemp(prefix="millstream-kill9-")
    server = harness.make(options.server, directory)
    wrong = ["did not get to the end"]
    try:
        server.start()
        workload, wrong = rounds(server, options.rounds, random.Random(options.seed))
        found = acknowledged.read_all(server.bootstrap, TOPIC, PARTITIONS)
        wrong += acknowledged.differences(workload.acknowledged, found)
        print(f"{len(workload.acknowledged)} of {workload.next} acknowledged, {sum(map(len, found.values()))} read")
        server.stop()
    finally:
        server.kill()
        if wrong and options.keep:
            print(f"kept {directory}")
        else:
            if wrong:
                print(server.log_tail())
            shutil.rmtree(directory, ignore_errors=True)
    for line in wrong[:SHOWN_MAX]:
        print(f"wrong: {line}")
    failed = 1 if wrong else 0
    print(f"{options.rounds if not wrong else 0} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
