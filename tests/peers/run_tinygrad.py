"""tinygrad's tests on tiny, through tiny.compat: a row for each file, and each failure with its cause (tinygrad_causes.py)
and what it says.  What is "apart" needs tinygrad's internals or another machine, or is right here on purpose; of the
others the last column says how many pass.

usage: run_tinygrad CHECKOUT [FILE[::TEST] | -k TEXT | ..]     the checkout is read, never written to
       run_tinygrad CHECKOUT --record                          all of them, and writes docs/TINYGRAD.md
       run_tinygrad CHECKOUT --programs [TEXT ..]              its example programs, those that have the text in their path
"""

import atexit
import collections
import datetime
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

import tinygrad_causes
from tinygrad_causes import DELIBERATE, INTERNALS, MACHINE

FILES = """test/backend/test_ops.py test/test_tiny.py test/unit/test_indexing.py test/backend/test_nn.py
test/backend/test_optim.py test/backend/test_tensor.py test/backend/test_symbolic_ops.py
test/backend/test_tensor_variable.py test/unit/test_randomness.py test/backend/test_randomness.py
test/backend/test_setitem.py test/backend/test_dtype.py test/backend/test_dtype_alu.py test/unit/test_dtype_spec.py
test/null/test_dtype_spec.py test/unit/test_gradient.py test/null/test_gradient.py test/unit/test_jit.py
test/backend/test_jit.py test/unit/test_jit_cases.py test/unit/test_jit_footguns.py test/unit/test_assign.py
test/unit/test_function.py test/unit/test_disk_tensor.py test/unit/test_tar.py test/unit/test_gguf.py
test/testextra/test_lr_scheduler.py test/unit/test_conv.py test/unit/test_linalg.py test/unit/test_masked_tensor.py
test/unit/test_rearrange_einops.py test/null/test_rearrange_einops.py test/unit/test_winograd.py
test/unit/test_hashing.py test/backend/test_softmax_fusion.py test/backend/test_transcendental.py
test/backend/test_edgecases.py test/backend/test_pickle.py test/unit/test_call.py test/backend/test_symbolic_jit.py
test/backend/test_to_numpy.py test/backend/test_schedule.py test/backend/test_arange.py test/backend/test_const_folding.py
test/backend/test_multitensor.py test/backend/test_stunning.py test/backend/test_rangeify.py test/unit/test_callify.py
test/unit/test_allreduce.py test/unit/test_dtype_weak.py test/unit/test_getitem_ops.py test/unit/test_helpers.py
test/unit/test_multitensor.py test/unit/test_realize_is_realize.py test/unit/test_setitem_schedule.py
test/unit/test_shm_tensor.py test/unit/test_symbolic_tensor.py test/unit/test_tensor_data.py test/unit/test_tensor_io.py
test/testextra/test_bench_log.py test/testextra/test_f16_decompress.py test/models/test_mnist.py
test/models/test_train.py test/models/test_rnnt.py test/models/test_end2end.py test/null/test_compile_failures.py
test/null/test_device.py test/null/test_disk_cache.py test/null/test_dtype.py test/null/test_helpers.py test/null/test_indexing.py
test/null/test_microbenchmarks.py test/null/test_multitensor.py test/null/test_real_world.py test/null/test_schedule.py
test/null/test_symbolic_tensor.py test/null/test_tensor.py test/null/test_tensor_io.py test/null/test_tensor_metadata.py
test/null/test_tqdm.py""".split()
APART = (INTERNALS, DELIBERATE, MACHINE)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "TINYGRAD.md"

FASHION = "/usr/share/datasets/fashion-mnist"
MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"


def offer_pictures():
    """tinygrad's tests fetch MNIST, whatever it shows: where nothing else is kept, Fashion-MNIST's files, of the same
    form, are given as it, in a folder of this run's."""
    if "XDG_CACHE_HOME" in os.environ or not os.path.isdir(FASHION):
        return
    folder = tempfile.mkdtemp(prefix="run_tinygrad.")
    atexit.register(shutil.rmtree, folder, True)
    places = [os.path.join(folder, name, "downloads") for name in ("tiny", "tinygrad")]
    for place in places:
        os.makedirs(place)
        for name in os.listdir(FASHION):
            os.symlink(os.path.join(FASHION, name), os.path.join(place, hashlib.md5((MNIST + name).encode()).hexdigest()))
    os.environ.setdefault("TINY_CACHE_DIR", os.path.expanduser("~/.cache/tiny"))
    os.environ["XDG_CACHE_HOME"] = folder


class Table:
    """pytest's plugin that keeps what became of each test."""

    def __init__(self):
        self.outcomes = collections.defaultdict(dict)
        self.causes = {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.partition("::")
        # What tinygrad knows that it does wrong is marked as a failure that is expected; what is right here passes.
        if report.failed and str(report.longrepr) == "Unexpected success":
            report.outcome = "passed"
        if report.when == "call" or report.outcome != "passed":
            if self.outcomes[name[0]].get(name[2]) != "failed":
                self.outcomes[name[0]][name[2]] = report.outcome
            if report.failed:
                crash = getattr(report.longrepr, "reprcrash", None)
                self.causes[report.nodeid] = crash.message.splitlines()[0] if crash else str(report.longrepr)

    def pytest_collectreport(self, report):
        if report.failed:
            self.outcomes[report.nodeid]["(import)"] = "failed"
            self.causes[report.nodeid] = str(report.longrepr).splitlines()[-1]

    def kinds(self):
        """{test: (kind, cause)} of those that failed."""
        return {test: tinygrad_causes.cause_of(test, self.causes[test]) for test in sorted(self.causes)}

    def rows(self):
        """(file, passed, failed, apart, skipped, share of those that are not apart), and such a row of all."""
        apart, total, found = collections.Counter(), collections.Counter(), []
        for test, (kind, _) in self.kinds().items():
            apart[test.partition("::")[0]] += kind in APART
        for file, tests in self.outcomes.items():
            if not tests:
                continue
            counts = collections.Counter(tests.values(), apart=apart[file])
            counts["failed"] -= counts["apart"]
            total += counts
            found.append(self._row(file, counts))
        return [*found, self._row("all", total)]

    @staticmethod
    def _row(name, counts):
        asked = counts["passed"] + counts["failed"]
        share = f"{100 * counts['passed'] / asked:.1f} %" if asked else ""
        return (name, *(counts[what] for what in ("passed", "failed", "apart", "skipped")), share)

    def show(self):
        for test, (kind, cause) in self.kinds().items():
            print(f"{test}\n    {kind}: {cause}\n    {self.causes[test][:300]}")
        print(f"\n{'file':48} passed failed  apart skipped")
        for name, passed, failed, apart, skipped, share in self.rows():
            print(f"{name:48} {passed:6} {failed:6} {apart:6} {skipped:7} {share:>8}")

    def record(self, checkout):
        """Writes the page of results."""
        commit = subprocess.run(["git", "-C", checkout, "rev-parse", "--short=10", "HEAD"], text=True, capture_output=True,
                                check=True).stdout.strip()
        lines = ["# tinygrad's tests on tiny", "",
                 f"`tests/peers/run_tinygrad CHECKOUT --record` has written this on {datetime.date.today()}, of tinygrad's commit {commit}.",
                 "What is *apart* needs tinygrad's internals or another machine, or is right here on purpose; the share is of the others.", "",
                 "| file of test/ | passed | failed | apart | skipped | share |", "|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(map(str, (name.removeprefix("test/").removesuffix(".py"), *row))) + " |"
                  for name, *row in self.rows()]
        lines += ["", "Of those that do not pass:", "", "| tests | | why |", "|---|---|---|"]
        whys = collections.Counter(self.kinds().values())
        lines += [f"| {whys[why]} | {why[0]} | {why[1]} |" for why in sorted(whys, key=lambda why: (why[0], -whys[why], why[1]))]
        PAGE.write_text("\n".join(lines) + "\n")


def main(arguments):
    if not arguments or not os.path.isdir(os.path.join(arguments[0], "test")):
        print(__doc__, file=sys.stderr)
        return 2
    records = arguments[1:] == ["--record"]
    if records:
        arguments = arguments[:1]
    if arguments[1:2] == ["--programs"]:
        import tinygrad_programs
        return tinygrad_programs.main(os.path.abspath(arguments[0]), arguments[2:])
    os.chdir(arguments[0])
    sys.path.insert(0, os.getcwd())
    offer_pictures()
    os.environ.setdefault("RUN_SLOW", "1")  # tests that are slow on tinygrad itself
    import tiny.compat
    tiny.compat.install()
    table = Table()
    status = pytest.main(["--noconftest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider",
                          "-W", "ignore::DeprecationWarning", "--show-capture=no", "--no-summary",
                          "--continue-on-collection-errors",
                          *(arguments[1:] or FILES)], plugins=[table])
    table.show()
    if records:
        table.record(os.getcwd())
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
