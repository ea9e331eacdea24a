"""Runs those of a list of test functions whose names match a pattern."""

import re
import sys


def attempt(tests, pattern=""):
    """How many were run, and a line for each that failed."""
    count, failures = 0, []
    for test in tests:
        if re.search(pattern, test.__name__):
            count += 1
            try:
                test()
            except Exception as error:
                failures.append(f"{test.__name__}: {type(error).__name__}: {str(error)[:1500]}")
    return count, failures


def report(count, failures):
    """Prints both; 1 if something failed or nothing was run."""
    print(*failures, f"{count} tests, {len(failures)} failures", sep="\n")
    return 1 if failures or not count else 0


def run(tests):
    """Of the command line's first argument, or all of them."""
    return report(*attempt(tests, *sys.argv[1:2]))
