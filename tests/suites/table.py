"""Prints what the tests of each suite did directly and through the gateway. Fails if one that passes directly fails through it.

usage: table.py FOLDER SUITE…    the folder has SUITE-directly.json and SUITE-through.json, both written by results.py
"""

import json
import pathlib
import sys

# If fewer pass directly, something is wrong here, and the suite shows nothing.
PASSED_MIN = {"openai": 230, "anthropic": 138, "llama": 128}

# Tests that want what the gateway decides otherwise, each with the reason.
DIFFER = {}


def main(folder, *suites):
    print(f"{'suite':<12}{'tests':>8}{'passed directly':>18}{'passed through':>18}")
    differences = [line for suite in suites for line in compare(pathlib.Path(folder), suite)]
    print(*differences, sep="\n", end="\n" * bool(differences))
    return int(any(not line.startswith("allowed") for line in differences))


def compare(folder, suite):
    """Prints the row of a suite, and returns a line for each test that differs."""
    files = [folder / f"{suite}-{way}.json" for way in ("directly", "through")]
    if not all(file.exists() for file in files):
        return [f"{suite} did not run"]
    direct, through = (json.loads(file.read_text()) for file in files)
    passed = {name for name, test in direct.items() if test["outcome"] == "passed"}
    lost = {name for name in passed if through.get(name, {}).get("outcome") != "passed"}
    print(f"{suite:<12}{len(direct):8}{len(passed):18}{len(passed - lost):18}")
    lines = [line_of(suite, name, through.get(name)) for name in sorted(lost)]
    if len(passed) < PASSED_MIN[suite]:
        lines.append(f"{suite}: only {len(passed)} pass directly, {PASSED_MIN[suite]} should")
    return lines


def line_of(suite, name, test):
    if (suite, name) in DIFFER:
        return f"allowed: {suite} {name}: {DIFFER[suite, name]}"
    return f"differs: {suite} {name}: {test['why'] if test else 'asked nothing'}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
