"""What the demo has on a node: two topics, one module, a processor over each topic. Making it again changes nothing."""

import hashlib
import pathlib

PARTITIONS = 3
MODULE = pathlib.Path(__file__).resolve().parent.parent / "target" / "plugins" / "delay-statistics.wasm"

HOUR = 3_600_000
DAY = 24 * HOUR
MIB = 1 << 20

# The feed has no end, so its topics are bounded by size. Not by time: results carry the time of their windows, which lie
# in 2001, and a retention by time would delete them at once.
BOUNDED = {"retention.ms": -1, "segment.bytes": 16 * MIB}
TOPICS = {
    "flights": {**BOUNDED, "retention.bytes": 64 * MIB},
    "stocks": {**BOUNDED, "retention.bytes": 64 * MIB},
    "flight-delays-by-origin": {**BOUNDED, "retention.bytes": 256 * MIB},
    "stock-prices-by-symbol": {**BOUNDED, "retention.bytes": 256 * MIB},
}

PROCESSORS = {
    "flight-delays": {
        "input": "flights",
        "from": "earliest",
        "output": "flight-delays-by-origin",
        "window": {"type": "hopping", "size_ms": HOUR, "advance_ms": HOUR // 4, "grace_ms": 0},
        "emit": "update",
        "config": {"value_field": "delay", "time_field": "date"},
    },
    "stock-prices": {
        "input": "stocks",
        "from": "earliest",
        "output": "stock-prices-by-symbol",
        "window": {"type": "hopping", "size_ms": 90 * DAY, "advance_ms": 30 * DAY, "grace_ms": 0},
        "emit": "update",
        "config": {"value_field": "price", "time_field": "date"},
    },
}


def create_topic(door, name, configs, partitions=PARTITIONS):
    if door.get_or_none(f"/api/v1/topics/{name}") is None:
        door.call("POST", "/api/v1/topics", {"name": name, "partitions": partitions, "configs": configs})


def upload(door, path=MODULE):
    """The digest of the module, which is then there."""
    data = pathlib.Path(path).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if door.get_or_none(f"/api/v1/modules/{digest}") is None:
        door.call("POST", "/api/v1/modules", data, content_type="application/wasm")
    return digest


def deploy(door, name, wanted):
    """Says what was done: deployed, changed or nothing. A processor that somebody has paused stays so."""
    found = door.get_or_none(f"/api/v1/processors/{name}")
    if found is not None and all(found.get(field) == value for field, value in wanted.items()):
        return "nothing"
    status, _ = door.call("PUT", f"/api/v1/processors/{name}", wanted)
    return "deployed" if status == 201 else "changed"


def make_all(door, say):
    for name, configs in TOPICS.items():
        create_topic(door, name, configs)
    module = upload(door)
    for name, wanted in PROCESSORS.items():
        done = deploy(door, name, {**wanted, "module": module})
        if done != "nothing":
            say(f"processor {name} {done}: {wanted['input']} -> {wanted['output']}")
