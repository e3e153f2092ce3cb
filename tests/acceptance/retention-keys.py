#!/usr/bin/env python3
"""Milliseconds win over minutes, and minutes over hours: what `log.retention.*` means for a topic without its own.

    retention-keys.py [--server millstream|kafka]
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # noqa: E402

import acknowledged  # noqa: E402

HOURS, MINUTES, MILLIS = "log.retention.hours", "log.retention.minutes", "log.retention.ms"
EXPECTATIONS = [
    ({}, 168 * 3_600_000),
    ({HOURS: 5}, 5 * 3_600_000),
    ({HOURS: 5, MINUTES: 7}, 7 * 60_000),
    ({HOURS: 5, MINUTES: 7, MILLIS: 123_456}, 123_456),
    ({HOURS: 5, MILLIS: -1}, -1),
]


def retention_of_a_topic(kind, settings):
    directory = tempfile.mkdtemp(prefix="millstream-retention-")
    server = harness.make(kind, directory, {key: str(value) for key, value in settings.items()})
    try:
        server.start()
        acknowledged.create_topic(server.bootstrap, "t", 1)
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()})
        asked = ConfigResource(ResourceType.TOPIC, "t")
        value = int(admin.describe_configs([asked])[asked].result(60)["retention.ms"].value)
        server.stop()
        return value
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--server", default="millstream", choices=["millstream", "kafka"])
    options = parser.parse_args()
    passed = failed = 0
    for settings, expected in EXPECTATIONS:
        found = retention_of_a_topic(options.server, settings)
        if found == expected:
            passed += 1
        else:
            failed += 1
            print(f"FAILED {settings}: expected {expected}, got {found}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
