#!/usr/bin/env python3
"""What is no plugin is refused with words that say why, by HTTP and by the command line, and nothing is kept of it.

    wasm-refusals.py

No Wasm at all, a core module, components that lack an export or want an import that is not theirs (it is named), a module
of another kind than is needed, and one that is too large.
"""

import hashlib
import http.client
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import processing
from processing import Problem, Report, harness, wait_for_http

import deployments  # noqa: E402

CORE_MODULE = b"\0asm\x01\0\0\0"
COMPONENT = b"\0asm\x0d\0\x01\0"
MODULE_BYTES_MAX = 64 << 20


def importing(name):
    """A component that does nothing but import an instance of that name."""
    instance_type = bytes([7, 3, 1, 0x42, 0])
    imported = bytes([1, 0, len(name)]) + name.encode() + bytes([5, 0])
    return COMPONENT + instance_type + bytes([10, len(imported)]) + imported


def importing_more(component, name):
    """The component, and behind all else an import of a resource type: that alone needs no index of anything before it."""
    imported = bytes([1, 0, len(name)]) + name.encode() + bytes([3, 1])
    return component + bytes([10, len(imported)]) + imported


REFUSED = [
    ("no Wasm", b"#!/bin/sh\necho hello\n", ["no WebAssembly"]),
    ("an empty file", b"", ["no WebAssembly"]),
    ("cut off within the header", COMPONENT[:6], ["WebAssembly"]),
    ("a core module", CORE_MODULE, ["core module", "component"]),
    ("a component without exports", COMPONENT, ["export", "millstream:plugin/"]),
    ("a component that imports WASI", importing("wasi:cli/environment@0.2.0"), ["import", "wasi:cli/environment@0.2.0"]),
    ("a component that is damaged", COMPONENT + bytes([7, 200, 1, 0x42]), ["component"]),
]


def refused_by_http(door, data, words):
    try:
        status, answer = door.call("POST", "/api/v1/modules", data, content_type="application/wasm")
        return [f"{status}, not refused: {answer}"]
    except Problem as problem:
        wrong = [f"it does not say {word!r}: {problem}" for word in words if word not in str(problem)]
        if not 400 <= problem.status < 500:
            wrong.append(f"the status is {problem.status}")
        if door.get_or_none(f"/api/v1/modules/{hashlib.sha256(data).hexdigest()}") is not None:
            wrong.append("it is there all the same")
        return wrong


def command_line(server, *arguments):
    environment = dict(os.environ, MILLSTREAM_URL=server.http, NO_COLOR="1")
    return subprocess.run(
        [harness.binary(), "wasm", *arguments], capture_output=True, text=True, timeout=120, env=environment
    )


def refused_by_command_line(server, path, words):
    ended = command_line(server, "upload", str(path))
    lines = ended.stderr.strip().splitlines()
    wrong = [f"it does not say {word!r}: {ended.stderr}" for word in words if word not in ended.stderr]
    if (ended.returncode, ended.stdout, len(lines)) != (1, "", 1):
        wrong.append(f"it ended with {ended.returncode}, {ended.stdout!r} and {len(lines)} lines: {ended.stderr}")
    return wrong


def too_large(server):
    """The door says so before it has read all of it."""
    connection = http.client.HTTPConnection(server.http.removeprefix("http://"), timeout=120)
    connection.putrequest("POST", "/api/v1/modules")
    connection.putheader("content-type", "application/wasm")
    connection.putheader("content-length", str(MODULE_BYTES_MAX + 1))
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return [] if answer.status == 413 and "body_too_large" in text else [f"{answer.status}: {text}"]


def wrong_kind(door):
    """A validator is a good module, and no processor."""
    deployments.create_topic(door, "input", {})
    digest = deployments.upload(door, processing.plugin("required-fields"))
    spec = {
        "module": digest,
        "input": "input",
        "from": "earliest",
        "output": "output",
        "window": {"type": "tumbling", "size_ms": 1000, "grace_ms": 0},
        "emit": "update",
        "config": {"fields": "a"},
    }
    wrong = []
    for name, changed, words in [
        ("wrong-kind", {}, ["validator"]),
        ("unknown-module", {"module": "0" * 64}, ["0" * 64]),
    ]:
        try:
            status, _ = door.call("PUT", f"/api/v1/processors/{name}", {**spec, **changed})
            wrong.append(f"{name}: {status}, not refused")
        except Problem as problem:
            wrong += [f"{name}: it does not say {word!r}: {problem}" for word in words if word not in str(problem)]
    left = [one["name"] for one in door.get("/api/v1/topics")["topics"]]
    if "output" in left or door.get("/api/v1/processors")["processors"]:
        wrong.append(f"something is left of it: {left}")
    return wrong


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="millstream-refusals-"))
    server = harness.make("millstream", directory / "node")
    report = Report()
    try:
        # Before there is a connection: the first time it is built, which takes longer than the node keeps an idle one.
        plugin = processing.plugin("required-fields").read_bytes()
        server.start()
        door = wait_for_http(server)
        more = ("a plugin that imports what there is not", importing_more(plugin, "oracle"), ["imports oracle"])
        for name, data, words in [*REFUSED, more]:
            path = directory / "module.wasm"
            path.write_bytes(data)
            report.case(f"{name}, by HTTP", refused_by_http(door, data, words), "1 module")
            report.case(f"{name}, by the command line", refused_by_command_line(server, path, words), "1 module")
        report.case("too large", too_large(server), "1 module")
        report.case("of another kind", wrong_kind(door), "2 deployments")
        server.stop()
    except (harness.ServerError, subprocess.SubprocessError, Problem) as error:
        report.case("the node", [str(error)], "nothing")
    finally:
        server.kill()
        if report.failed:
            print(server.log_tail())
        shutil.rmtree(directory, ignore_errors=True)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
