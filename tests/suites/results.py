"""A pytest plugin: what each test did, as JSON in the file that SUITE_RESULTS names."""

import json
import os
import pathlib

# Longest text of a failure that is kept.
WHY_CHARACTERS_MAX = 2000

tests = {}
running = None


def note_request():
    """The test that runs has asked the server something."""
    if running in tests:
        tests[running]["requests"] += 1


def pytest_runtest_logstart(nodeid):
    global running
    running = nodeid
    tests[nodeid] = {"outcome": "passed", "requests": 0, "why": ""}


def pytest_runtest_logreport(report):
    if report.outcome != "passed":
        why = str(report.longrepr)[-WHY_CHARACTERS_MAX:]
        tests[report.nodeid] |= {"outcome": report.outcome, "why": why}


def pytest_sessionfinish():
    asked = {name: test for name, test in tests.items() if test["requests"]}
    pathlib.Path(os.environ["SUITE_RESULTS"]).write_text(json.dumps(asked, indent=1))
