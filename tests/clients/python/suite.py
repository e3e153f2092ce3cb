"""Runs cases one after the other, says how each went, and counts: the Python twin of the other suites' runners."""

import argparse
import itertools
import sys
import threading
import time
import traceback

CASE_SECONDS_MAX = 180
EVENTUALLY_SECONDS_MAX = 60
ASK_AGAIN_SECONDS = 0.05
PARTS = ("core", "groups", "configs")

_counter = itertools.count(1)
_run = format(int(time.time() * 1000), "x")


def name(stem):
    """A name that nobody has used yet."""
    return f"{stem}-{_run}-{next(_counter)}"


def eventually(what, holds):
    """Asks until the answer is yes."""
    deadline = time.monotonic() + EVENTUALLY_SECONDS_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not so after {EVENTUALLY_SECONDS_MAX} s")
        time.sleep(ASK_AGAIN_SECONDS)


def equal(expected, actual, what):
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


class Suite:
    def __init__(self):
        self.cases = {}

    def case(self, part):
        """Marks a function that takes the bootstrap address as a case of that part; its name is the case's."""

        def mark(function):
            self.add(part, function.__name__, function)
            return function

        return mark

    def add(self, part, case_name, function):
        if case_name in self.cases or part not in PARTS:
            raise ValueError(f"{part} {case_name}: an unknown part, or a name that is taken")
        self.cases[case_name] = (part, function)

    def main(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--bootstrap", default="127.0.0.1:9092")
        parser.add_argument("--only", default="all", help="core, groups, configs, separated by commas, or all")
        parser.add_argument("--allow", help="a file of the cases that must pass; others are gaps")
        parser.add_argument("--case", default="", help="a part of a name")
        parser.add_argument("--log-dir", help="not looked at by this suite")
        options = parser.parse_args()
        parts = PARTS if options.only == "all" else options.only.split(",")
        allowed = _names_in(options.allow) if options.allow else None
        passed = failed = 0
        for unknown in sorted((allowed or set()) - set(self.cases)):
            print(f"FAILED {unknown}: the allow-list names a case that does not exist")
            failed += 1
        for case_name, (part, function) in self.cases.items():
            if part not in parts or options.case not in case_name:
                continue
            if allowed is not None and case_name not in allowed:
                print(f"gap {case_name}")
                continue
            begin = time.monotonic()
            failure = _failure_of(function, options.bootstrap)
            millis = int((time.monotonic() - begin) * 1000)
            if failure is None:
                passed += 1
                print(f"ok {case_name} ({millis} ms)", flush=True)
            else:
                failed += 1
                print(f"FAILED {case_name} ({millis} ms): {failure}", flush=True)
        print(f"{passed} passed, {failed} failed", flush=True)
        sys.exit(0 if passed and not failed else 1)


def _names_in(path):
    with open(path, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def _failure_of(function, bootstrap):
    failures = []

    def body():
        try:
            function(bootstrap)
        except BaseException:  # noqa: BLE001 - whatever ends a case is its result
            failures.append(traceback.format_exc().strip())

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(CASE_SECONDS_MAX)
    if thread.is_alive():
        where = "".join(traceback.format_stack(sys._current_frames()[thread.ident])).strip()
        return f"not finished after {CASE_SECONDS_MAX} s:\n{where}"
    return failures[0] if failures else None
