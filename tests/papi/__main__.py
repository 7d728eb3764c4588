"""Runs all tests with the program THALWEG (default target/release/thalweg), and checks that they
use every message it offers. Arguments select tests, as in `python -m unittest`."""

import faulthandler
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import lab  # noqa: E402

# Sent by the client library itself.
IMPLIED = {"sockclnt_create", "sockclnt_delete"}


# All tests together take a minute or two.
PATIENCE = 900


def main():
    # A test that hangs prints its stack.
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    # It is down in a new network namespace.
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    chosen = sys.argv[1:]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(chosen) if chosen else loader.discover(HERE)
    result = unittest.TextTestRunner(verbosity=1).run(tests)
    if not result.wasSuccessful():
        return 1
    missing = lab.offered() - lab.called - IMPLIED
    if missing and not chosen:
        print(f"no test sends {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    print(f"{len(lab.called)} messages were used")
    return 0


sys.exit(main())
