"""What the acceptances of running plugins share: a node whose topics and processors are made by HTTP, and waiting for it."""

import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
sys.path[:0] = [str(TESTS / "harness"), str(ROOT / "demo")]

import server as harness  # noqa: E402
from door import Door, Problem, Unreachable  # noqa: E402

PLUGINS = ROOT / "target" / "plugins"
WAIT_SECONDS_MAX = 300


def plugin(name):
    """A component of plugins/, built if it is not there or its sources have changed."""
    path = PLUGINS / f"{name}.wasm"
    subprocess.run(["cargo", "xtask", "plugins"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return path


def wait_until(holds, what, seconds=WAIT_SECONDS_MAX):
    """Asks until the answer is yes; a node that does not answer has not said it."""

    def asked():
        try:
            return holds()
        except Unreachable:
            return False

    harness.wait_for(asked, what, seconds)


def status(door, processor):
    return door.get(f"/api/v1/processors/{processor}/status")


def wait_for_http(server):
    door = Door(server.http)
    wait_until(lambda: door.get("/health/ready") is not None, "the node is ready")
    return door


def wait_processed(door, processor, topic):
    """Until every task runs and stands at the end of its partition of the input."""

    def is_done():
        found = status(door, processor)
        if found["state"] == "failed":
            raise AssertionError(f"{processor} has stopped: {found}")
        positions = {task["partition"]: task["position"] for task in found["tasks"] if task["state"] == "running"}
        return positions == dict(enumerate(door.ends(topic)))

    wait_until(is_done, f"{processor} has processed {topic}")
    return status(door, processor)


class Report:
    """Counts cases, and prints what went wrong."""

    SHOWN_MAX = 10

    def __init__(self):
        self.passed = self.failed = 0

    def case(self, name, differences, compared):
        if differences:
            self.failed += 1
            print(f"FAILED {name}: {len(differences)} differences in {compared} compared", flush=True)
            for line in differences[: self.SHOWN_MAX]:
                print(f"    {line}")
        else:
            self.passed += 1
            print(f"ok {name}: {compared} compared", flush=True)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 0 if self.passed and not self.failed else 1
