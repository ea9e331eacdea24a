"""tiny info, bench, test and devices, the help, and the interrupt key."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import numpy
from support import CliTest, HEAD, TINY, save_pb


class Info(CliTest):
    def test_keys(self):
        info = self.json("info", self.arithmetic())
        self.assertLessEqual(HEAD | {"model", "inputs", "outputs", "dims", "operators", "nodes",
                                     "initializers", "unsupported", "supported", "flops",
                                     "metadata"}, info.keys())
        self.assertEqual(info["inputs"][0], {"name": "a", "dtype": "float32", "shape": ["N", 3]})
        self.assertEqual((info["dims"], info["nodes"], info["supported"], info["unsupported"]),
                         (["N"], 2, True, []))
        self.assertEqual(info["model"]["producer"], "tests")
        operators = {op["op"]: op for op in info["operators"]}
        self.assertEqual(operators.keys(), {"Add", "Mul"})
        self.assertEqual(operators["Add"].keys(), {"domain", "op", "version", "count", "supported"})
        self.assertEqual(operators["Add"]["count"], 1)

    def test_what_is_unsupported(self):
        model = self.strange()
        info = self.json("info", model)
        self.assertFalse(info["supported"])
        self.assertLessEqual({"node", "domain", "op", "version", "dtypes", "reason"},
                             info["unsupported"][0].keys())
        checked = self.json("info", model, "--check", code=4)
        self.assertEqual(checked["unsupported"], info["unsupported"])
        self.json("info", self.arithmetic(), "--check")
        self.assertIn("NOT supported", self.tiny("info", model))

    def test_plain_text(self):
        text = self.tiny("info", self.arithmetic())
        for line in ("input   a  float32 [N,3]", "output  product  float32 [N,3]", "free    N"):
            self.assertIn(line, text)
        self.json("info", "none.onnx", code=5)


class Bench(CliTest):
    def test_keys(self):
        result = self.json("bench", self.arithmetic(), "--dim", "N=4", "--runs", "7", "--warmup", "1",
                           "--threads", "1,2", "--profile", "--samples", "--cold", "1")
        self.assertEqual(result["cpu"].keys(), {"model", "isa", "cores"})
        self.assertEqual([r["threads"] for r in result["results"]], [1, 2])
        for one in result["results"]:
            self.assertLessEqual({"threads", "concurrency", "runs", "ms", "per_second", "load_ms",
                                  "compile_ms", "first_run_ms", "overhead_us_per_kernel",
                                  "allocations_per_run", "cold_ms", "samples_ms", "kernels",
                                  "kernel_count", "interpreted"}, one.keys())
            self.assertEqual((one["kernel_count"], one["interpreted"]), (len(one["kernels"]), 0))
            ms = one["ms"]
            self.assertEqual(ms.keys(), {"min", "mean", "stddev", "p50", "p90", "p99", "max"})
            self.assertEqual((one["runs"], len(one["samples_ms"])), (7, 7))
            self.assertEqual((ms["min"], ms["max"]),
                             (min(one["samples_ms"]), max(one["samples_ms"])))
            self.assertAlmostEqual(ms["p90"], numpy.percentile(one["samples_ms"], 90), places=6)
            self.assertAlmostEqual(ms["stddev"], numpy.std(one["samples_ms"], ddof=1), places=6)
            self.assertGreater(one["cold_ms"]["min"], 0)
            for kernel in one["kernels"]:
                self.assertEqual(kernel.keys(), {"name", "runs", "ms", "gflops", "gbps", "options"})

    def test_plain_text_says_how_many_kernels_are_interpreted(self):
        for device in ("cpu", "interp"):
            text = self.tiny("bench", self.negation(), "--runs", "1", "--device", device)
            self.assertIn(f"kernels 1, interpreted {int(device == 'interp')}", text)

    def test_duration_and_concurrency(self):
        started = time.monotonic()
        result = self.json("bench", self.negation(), "--duration", "0.3", "--concurrency", "3")
        self.assertGreater(time.monotonic() - started, 0.3)
        one = result["results"][0]
        self.assertEqual(one["concurrency"], 3)
        self.assertGreaterEqual(one["runs"], 3)

    def test_wrong_usage(self):
        for flags in (["--runs", "0"], ["--runs", "3", "--duration", "1"], ["--threads", "0"],
                      ["--concurrency", "0"]):
            self.json("bench", self.negation(), *flags, code=2)


class Test(CliTest):
    def lines(self, *arguments, code):
        text = self.tiny("test", *arguments, "--json", code=code)
        return [json.loads(line) for line in text.splitlines()]

    def test_results_and_summary(self):
        self.case("test_good")
        self.case("test_wrong", wrong=True)
        self.case("test_other", category="simple")
        self.strange("node/test_strange/model.onnx")
        for file in ("input_0.pb", "output_0.pb"):
            save_pb(self.folder / "node/test_strange/test_data_set_0" / file,
                    numpy.ones(2, "float32"))
        (self.folder / "node/test_bad").mkdir()
        (self.folder / "node/test_bad/model.onnx").write_bytes(b"garbage")
        *cases, last = self.lines(self.folder, "--jobs", "2", code=1)
        for case in cases:
            self.assertLessEqual({"name", "category", "result", "reason", "max_abs", "max_rel", "ms",
                                  "kernels", "interpreted"}, case.keys())
            self.check_head(case, case["result"] == "pass")
        self.assertEqual({c["name"]: c["result"] for c in cases},
                         {"test_good": "pass", "test_wrong": "fail", "test_other": "pass",
                          "test_strange": "unsupported", "test_bad": "error"})
        self.check_head(last, False)
        self.assertEqual(last["summary"].pop("by_category"),
                         {"node": {"passed": 1, "failed": 1, "unsupported": 1, "errors": 1,
                                   "known": 0, "total": 4},
                          "simple": {"passed": 1, "failed": 0, "unsupported": 0, "errors": 0,
                                     "known": 0, "total": 1}})
        self.assertGreaterEqual(last["summary"].pop("kernels"), 3)
        self.assertEqual(last["summary"].pop("interpreted"), 0)
        self.assertEqual(last["summary"], {"passed": 2, "failed": 1, "unsupported": 1, "errors": 1,
                                           "known": 0, "total": 5})
        text = self.tiny("test", self.folder, code=1)
        self.assertEqual(text.splitlines()[-1], "2 passed, 2 failed, 1 skipped")
        self.assertRegex(text.splitlines()[-2], r"^[1-9]\d* kernels ran, 0 of them interpreted$")

    def test_choosing_cases(self):
        for name in ("test_a1", "test_a2", "test_b1"):
            self.case(name, wrong=name == "test_a2")

        def names(*flags, code):
            return sorted(c["name"] for c in self.lines(self.folder, *flags, code=code)[:-1])
        self.assertEqual(names("--filter", "a", code=1), ["test_a1", "test_a2"])
        self.assertEqual(names("--exclude", "a2$", code=0), ["test_a1", "test_b1"])
        (self.folder / "known.txt").write_text("# may fail\ntest_a2\ntest_b1\n")
        *cases, last = self.lines(self.folder, "--known", "known.txt", code=0)
        self.assertEqual({c["name"]: c["result"] for c in cases},
                         {"test_a1": "pass", "test_a2": "known", "test_b1": "pass"})
        self.assertEqual(last["summary"]["known"], 1)
        self.assertIn("2 passed, 0 failed, 1 skipped",
                      self.tiny("test", self.folder, "--known", "known.txt"))
        self.json("test", self.folder, "--filter", "(", code=2)
        self.json("test", self.folder, "--filter", "nothing", code=5)
        self.json("test", self.folder / "none", code=5)

    def test_a_case_that_takes_too_long_is_an_error_of_its_own(self):
        self.case("test_a")
        self.case("test_b")
        *cases, last = self.lines(self.folder, "--case-timeout", "0.001", code=1)
        self.assertEqual({c["result"] for c in cases}, {"error"})
        self.assertIn("time-out", cases[0]["reason"])
        self.assertEqual(last["summary"]["errors"], 2)


class Others(CliTest):
    def test_devices(self):
        devices = self.json("devices")["devices"]
        for device in devices:
            self.assertLessEqual({"name", "description", "available", "reason", "isa", "threads",
                                  "memory", "default"}, device.keys())
        self.assertEqual(sum(device["default"] for device in devices), 1)
        self.assertIn("cpu", [device["name"] for device in devices])
        self.assertEqual(len(self.tiny("devices").splitlines()), len(devices))

    def test_help_and_version(self):
        text = self.tiny("--help")
        for word in ("run", "info", "bench", "test", "devices", "Examples", "Exit codes"):
            self.assertIn(word, text)
        for command in ("run", "info", "bench", "test", "devices"):
            self.assertIn("--json", self.tiny(command, "--help"))
        self.assertNotIn("one-case", self.tiny("test", "--help"))
        self.assertRegex(self.tiny("--version"), r"^\d+\.\d+\.\d+$")

    def test_quiet(self):
        self.tiny("run", self.arithmetic(), "--synth", "ones")
        self.assertIn("N is free", self.done.stderr)
        self.tiny("run", self.arithmetic(), "--synth", "ones", "-q")
        self.assertEqual(self.done.stderr, "")

    def check_end_by(self, number, code):
        """A signal in the middle of a measurement ends it with this exit code and a last word."""
        command = [TINY, "bench", self.negation(), "--duration", "60", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            time.sleep(1.5)
            running.send_signal(number)
            out = running.communicate(timeout=10)[0]
        self.assertEqual(running.returncode, code)
        self.check_head(json.loads(out), False)

    def test_the_interrupt_key(self):
        self.check_end_by(signal.SIGINT, 130)

    def test_a_crash_is_an_internal_error(self):
        self.check_end_by(signal.SIGSEGV, 70)

    def test_an_interrupt_ends_the_cases_of_a_test(self):
        for number in range(50):
            self.case(f"test_{number}")
        with subprocess.Popen([TINY, "test", self.folder], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as running:
            child = self.stop_a_child(running.pid)
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=10)
        self.assertEqual(running.returncode, 130)
        for _ in range(100):
            if self.state(child) in ("", "Z"):  # gone, or waiting to be collected
                return
            time.sleep(0.05)
        self.fail("the case goes on after its parent's end")

    def state(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
        except OSError:
            return ""

    def stop_a_child(self, pid):
        """Stops one of the process's children, so that it cannot end by itself.  Not before it has
        become the case: until then its parent waits for it, and would be stopped as well."""
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        for _ in range(2000):
            for child in map(int, children.read_text().split()):
                try:
                    if b"--one-case" not in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                        continue
                    os.kill(child, signal.SIGSTOP)
                except (ProcessLookupError, FileNotFoundError):
                    continue
                if self.state(child) == "T":
                    return child
            time.sleep(0.001)
        self.fail("no case is started")


if __name__ == "__main__":
    unittest.main()
