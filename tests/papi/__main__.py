"""Runs all tests with the program THALWEG (default target/release/thalweg), and checks that they
use every message it offers. Arguments select tests, as in `python -m unittest`, and run them in
this process; without any, some processes run parts at a time, each in namespaces of its own."""

import concurrent.futures
import faulthandler
import glob
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import lab  # noqa: E402

# Sent by the client library itself.
IMPLIED = {"sockclnt_create", "sockclnt_delete"}

# All tests together take a minute or two.
PATIENCE = 900

# Processes at a time: mostly they wait for routers, and for programs to start.
PROCESSES = 4
# Modules whose tests take as long as other modules do. They come first.
LONG = ["test_vppcfg"]

# File to which a process writes the messages that it has sent.
CALLED = "THALWEG_PAPI_CALLED"


def main():
    # A test that hangs prints its stack.
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    return run(sys.argv[1:]) if sys.argv[1:] else run_all()


def run(names):
    """Runs tests here."""
    # The loopback is down in a new network namespace.
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    tests = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=1).run(tests)
    if CALLED in os.environ:
        with open(os.environ[CALLED], "w", encoding="utf-8") as file:
            file.write("\n".join(lab.called))
    return 0 if result.wasSuccessful() else 1


def parts():
    """Names of parts: long modules test by test, other modules whole."""
    for module in LONG:
        for cases in unittest.defaultTestLoader.loadTestsFromName(module):
            yield from (test.id() for test in cases)
    for path in sorted(glob.glob(f"{HERE}/test_*.py")):
        name = os.path.basename(path).removesuffix(".py")
        if name not in LONG:
            yield name


def run_part(name, called):
    """Runs a part in a process with a network and a `/run` of its own; true if all is well."""
    inner = 'mount -t tmpfs run /run && exec "$0" "$@"'
    own = ["unshare", "--net", "--mount", "sh", "-c", inner]
    done = subprocess.run(
        [*own, sys.executable, HERE, name],
        env={**os.environ, CALLED: os.path.join(called, name)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    well = done.returncode == 0
    print(f"{name}: ok" if well else f"{name}:\n{done.stdout}", flush=True)
    return well


def run_all():
    """Runs all tests, some parts at a time."""
    with tempfile.TemporaryDirectory() as called:
        with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
            well = list(pool.map(lambda name: run_part(name, called), parts()))
        for path in glob.glob(f"{called}/*"):
            with open(path, encoding="utf-8") as file:
                lab.called.update(file.read().split())
    if not all(well):
        return 1
    missing = lab.offered() - lab.called - IMPLIED
    if missing:
        print(f"no test sends {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    print(f"{len(well)} parts, {len(lab.called)} messages were used")
    return 0


sys.exit(main())
