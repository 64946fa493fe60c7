#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Counts the test cases in a result file and prints "PASSED FAILED SKIPPED".

  tally.py meson testlog.json   one Catch2 program per entry; its summary line has the cases
  tally.py junit results.xml    as pytest writes it

Exits 1 where the file is missing, unreadable or holds no test: a suite that did not run has failed.
"""

import json
import re
import sys
import xml.etree.ElementTree

ALL_PASSED = re.compile(r"All tests passed \(.*?in (\d+) test cases?\)")
SUMMARY = re.compile(r"^test cases:.*$", re.MULTILINE)


def catch2_cases(entry):
    """(passed, failed, skipped) of one test program's run."""
    output = entry.get("stdout") or ""
    good = entry["result"] in ("OK", "SKIP")
    match = ALL_PASSED.search(output)
    if match:
        # It can still have failed afterwards: a leak found at exit, a crash in a destructor.
        return int(match[1]), 0 if good else 1, 0
    match = SUMMARY.search(output)
    if match:
        counts = dict((word, int(number))
                      for number, word in re.findall(r"(\d+) (passed|failed|skipped)", match[0]))
        failed = counts.get("failed", 0)
        return counts.get("passed", 0), failed if good or failed else 1, counts.get("skipped", 0)
    return (1, 0, 0) if good else (0, 1, 0)


def tally_meson(path):
    with open(path) as log:
        results = [catch2_cases(json.loads(line)) for line in log]
    return tuple(map(sum, zip(*results))) if results else (0, 0, 0)


def tally_junit(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    cases = failed = skipped = 0
    for suite in suites:
        cases += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return max(0, cases - failed - skipped), failed, skipped


def main(kind, path):
    try:
        passed, failed, skipped = {"meson": tally_meson, "junit": tally_junit}[kind](path)
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        print(f"tally.py: {path}: {error}", file=sys.stderr)
        return 1
    if passed + failed == 0:
        print(f"tally.py: {path}: no test ran", file=sys.stderr)
        return 1
    print(passed, failed, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
