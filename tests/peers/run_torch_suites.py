"""PyTorch's suites that it writes for every device, on device "tiny": how many tests of each file pass, and why others do not.

usage: run_torch_suites FOLDER [FILE ..] [-k TEXT] [--errors] [--seconds S]
FOLDER is the folder test/ of a clone of PyTorch, of the release that is installed; it is read, never written to.
Without files: test_view_ops.py test_indexing.py test_torch.py.  A test is "apart" if the device says on purpose that it
has no such tensors or calls (APART, docs/TORCH.md); of the others the last column says how many pass.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import queue
import re
import sys
import unittest

FILES = ("test_view_ops.py", "test_indexing.py", "test_torch.py")

# By what a failure says, or how the test is called: the reason why the device is not asked for it.
APART = {
    "complex, quantized, sparse or 8-bit float tensors":
        r"tensors of (Complex\w*|ComplexHalf|Q\w+|Float8\w*|Float4\w*|Bits\w*) are not supported|tensors of device \"tiny\" are strided|"
        r"complex(32|64|128)|view_as_real|float8_|quantize|[Ss]parse|UntypedStorage.*complex|jagged|NestedTensor|MKLDNN|MkldnnCPU|mkldnn",
    "storages that are copied when they are written to": r"lazy_clone|_cow_|COW|cow_simulator",
    "classes of storages, and calls, that PyTorch has for its own devices alone":
        r"test_tensor_storage_type|only implemented on CPU tensors",
    "memory of the device at an address": r"data_ptr|__dlpack__|from_dlpack|dlpack|numpy\(\)|share_memory|pin_memory|untyped_storage.*index",
}


def _cause(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception|Failed|Skip)\w*\b", line)), lines[-1])
    return said.strip()


class Outcome(unittest.TestResult):
    """Tells each test's name, whether it passed, and what it said."""

    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    def startTest(self, test):
        super().startTest(test)
        self.outcome = ("passed", "")
        self.tell(("begun", test.id(), ""))

    def addError(self, test, error):
        self.outcome = ("failed", _cause(self._exc_info_to_string(error, test)))

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addError(test, error)

    def addSkip(self, test, reason):
        self.outcome = ("skipped", reason)

    def addUnexpectedSuccess(self, test):
        self.outcome = ("passed", "")

    def stopTest(self, test):
        super().stopTest(test)
        self.tell((self.outcome[0], test.id(), self.outcome[1]))


def _run(path, pattern, done, results):
    """In a process of its own: the tests of a file but those that are done."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # hundreds of warnings, which tests count
    os.environ.setdefault("PYTORCH_TESTING_DEVICE_ONLY_FOR", "privateuse1")
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    import torch
    import tiny.torch  # noqa: F401
    from torch.testing._internal import common_device_type

    torch.set_num_threads(1)
    original = common_device_type.instantiate_device_type_tests

    def instantiate(template, scope, *args, **kwargs):
        for name in ("only_for", "except_for", "allow_xpu", "allow_mps"):
            kwargs.pop(name, None)
        return original(template, scope, only_for=("privateuse1",))
    common_device_type.instantiate_device_type_tests = instantiate
    module = __import__(path.stem)
    suite = unittest.TestSuite()
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, common_device_type.PrivateUse1TestBase):
            for name in unittest.defaultTestLoader.getTestCaseNames(kind):
                test = kind(name)
                if test.id() not in done and pattern in test.id():
                    suite.addTest(test)
    suite.run(Outcome(results.put))
    results.put(("end", "", ""))


def run_file(path, options):
    """{test: (outcome, what it said)}; a test that ends the process, or takes too long, failed."""
    outcomes, context = {}, multiprocessing.get_context("spawn")
    while True:
        results = context.Queue()
        process = context.Process(target=_run, args=(path, options.k, set(outcomes), results))
        process.start()
        running, ended = None, False
        while True:
            try:
                kind, name, said = results.get(timeout=options.seconds if running else 10 * options.seconds)
            except queue.Empty:
                process.kill()
                break
            if kind == "end":
                ended = True
                break
            running = name if kind == "begun" else None
            if kind == "begun":
                outcomes[name] = ("failed", "the process ended, or it took too long")
            else:
                outcomes[name] = (kind, said)
        process.join()
        if ended or running is None:
            return outcomes


def apart(name, said):
    for reason, pattern in APART.items():
        if re.search(pattern, said) or re.search(pattern, name):
            return reason
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("-k", default="", help="tests whose name has this text")
    parser.add_argument("--errors", action="store_true", help="name each test that fails")
    parser.add_argument("--seconds", type=int, default=120, help="for each test")
    options = parser.parse_args()
    worst = 100.0
    for file in options.files:
        outcomes = run_file(options.folder.resolve() / file, options)
        reasons = collections.Counter()
        causes = collections.defaultdict(list)
        for name, (outcome, said) in outcomes.items():
            reason = apart(name, said) if outcome == "failed" else None
            reasons[f"apart: {reason}" if reason else outcome] += 1
            if outcome == "failed" and not reason:
                causes[re.sub(r"\d+|'.*?'|\[.*\]", "_", said)[:150]].append((name, said))
        for cause, tests in sorted(causes.items(), key=lambda item: -len(item[1])):
            print(f"  {len(tests)} x {tests[0][1][:200]}")
            for name, said in tests if options.errors else tests[:2]:
                print(f"      {name.split('.', 1)[-1]}")
        total = reasons["passed"] + reasons["failed"]
        rate = 100 * reasons["passed"] / max(total, 1)
        worst = min(worst, rate)
        rest = ", ".join(f"{count} {kind}" for kind, count in sorted(reasons.items()) if kind not in ("passed", "failed"))
        print(f"{file}: {reasons['passed']} of {total} pass ({rate:.1f} %); {rest}", flush=True)
    return 0 if worst >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
