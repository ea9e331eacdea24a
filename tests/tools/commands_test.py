"""tiny info, bench, test and devices, the help, and the interrupt key."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import numpy
from support import CliTest, HEAD, TINY, helper, port, save_model, save_pb


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
                self.assertLessEqual({"name", "runs", "ms", "gflops", "gbps", "options"}, kernel.keys())

    def test_plain_text_says_how_many_kernels_are_interpreted(self):
        for device in ("cpu", "interp"):
            text = self.tiny("bench", self.negation(), "--runs", "1", "--device", device)
            self.assertIn(f"kernels 1, interpreted {int(device == 'interp')}", text)

    def test_one_run_is_one_run(self):
        told = []

        def launches(*flags):
            command = [TINY, "bench", self.negation(), *flags, "--runs", "1", "--json"]
            told.append(subprocess.run(command, capture_output=True, text=True, check=True,
                                       env={**os.environ, "TINY_DEBUG": "2"}))  # fmt: skip
            return sum(line.startswith("*** ") for line in told[-1].stderr.splitlines())

        self.assertEqual(launches("--warmup", "0"), 1)
        one = json.loads(told[-1].stdout)["results"][0]
        self.assertEqual((one["runs"], one["ms"]["min"]), (1, one["first_run_ms"]))
        self.assertEqual((one["allocations_per_run"], one["overhead_us_per_kernel"]), (None, None))
        self.assertEqual(launches("--warmup", "2"), 4)  # the first of all, and one that is measured

    def test_scalar_kernels_are_counted(self):
        one = self.json("bench", self.negation(), "--runs", "1", "--device", "cpu")["results"][0]
        self.assertEqual(one["scalar_kernels"], 0)
        flags = ["--runs", "1", "--profile", "--option", "noopt=1"]
        one = self.json("bench", self.negation(), *flags)["results"][0]
        self.assertEqual((one["scalar_kernels"], one["kernels"][0]["scalar"]), (1, True))
        told = subprocess.run([TINY, "bench", self.negation(), "--runs", "1"], capture_output=True, text=True,
                              check=True, env={**os.environ, "TINY_DEBUG": "2", "TINY_NOOPT": "1"}).stderr  # fmt: skip
        self.assertRegex(told, r"\*\*\* .* GB/s\) scalar")

    def test_duration_and_concurrency(self):
        started = time.monotonic()
        result = self.json("bench", self.negation(), "--duration", "0.3", "--concurrency", "3")
        self.assertGreater(time.monotonic() - started, 0.3)
        one = result["results"][0]
        self.assertEqual(one["concurrency"], 3)
        self.assertGreaterEqual(one["runs"], 3)

    def test_wrong_usage(self):
        for flags in (["--runs", "0"], ["--runs", "3", "--duration", "1"], ["--threads", "0"],
                      ["--concurrency", "0"], ["--runs", "99999999999999999999"],
                      ["--warmup", "-1"], ["--cold", "1.5"], ["--threads", "1,20000"],
                      ["--concurrency", "4294967297"]):
            error = self.json("bench", self.negation(), *flags, code=2)["error"]
            self.assertIn(flags[0], error["message"])

    def test_kernels_of_a_model_that_its_values_shape(self):
        text = self.tiny("bench", self.summed(), "--input", self.npy("x.npy", numpy.ones((2, 3))),
                         "--input", self.npy("a.npy", [1], "int64"), "--runs", "2")
        self.assertRegex(text, r"per run kernels [1-9]\d*, interpreted 0, .*overhead per kernel -\n")

    def test_a_model_that_its_values_shape_has_a_profile(self):
        result = self.json("bench", self.summed(), "--input", self.npy("x.npy", numpy.ones((2, 3))),
                           "--input", self.npy("a.npy", [1], "int64"), "--runs", "3", "--profile")
        one = result["results"][0]
        self.assertEqual(len(one["kernels"]), one["kernel_count"])
        self.assertEqual(one["scalar_kernels"], 0)
        for kernel in one["kernels"]:
            self.assertGreater(kernel["ms"], 0)
            self.assertLessEqual({"name", "runs", "gflops", "gbps", "options", "computes", "share"}, kernel.keys())


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
        error = self.json("test", self.folder / "known.txt", code=5)["error"]
        self.assertIn("is no folder", error["message"])

    def test_what_is_wrong_with_the_flags_is_no_result_of_a_case(self):
        self.case("test_a")
        self.json("test", self.folder, "--device", "abacus", code=4)
        self.json("test", self.folder, "--option", "foo=1", code=2)
        self.json("test", self.folder, "--threads", "20000", code=2)

    def test_kernels_of_a_model_that_its_values_shape(self):
        folder = self.folder / "node" / "test_reshaped"
        self.reshaped("node/test_reshaped/model.onnx")
        for number in (0, 1):
            data = folder / f"test_data_set_{number}"
            save_pb(data / "input_0.pb", numpy.arange(6, dtype="float32"))
            save_pb(data / "input_1.pb", numpy.array([2, 3], "int64"))
            save_pb(data / "output_0.pb", -numpy.arange(6, dtype="float32").reshape(2, 3))
        for device, share in (("cpu", 0), ("interp", 1)):
            case, last = self.lines(self.folder, "--device", device, code=0)
            self.assertGreaterEqual(case["kernels"], 2)
            self.assertEqual(case["interpreted"], share * case["kernels"])

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

    def test_common_flags_are_common(self):
        folder = self.folder / "node" / "test_common"
        model = self.arithmetic("node/test_common/model.onnx")
        for name in ("input_0", "input_1", "output_0", "output_1"):
            save_pb(folder / "test_data_set_0" / f"{name}.pb", numpy.ones((4, 3), "float32"))
        save_pb(folder / "test_data_set_0" / "output_0.pb", numpy.full((4, 3), 2, "float32"))
        flags = ["--json", "-q", "-v", "--device", "null:0", "--isa", "auto", "--threads", "1",
                 "--option", "beam=0", "--limit-memory", "1000000000", "--no-cache", "--dim", "N=4",
                 "--shape", "a=4x3", "--seed", "3"]
        for command in (["run", model, "--synth", "ones"], ["info", model], ["devices"],
                        ["bench", model, "--runs", "1"], ["test", self.folder]):
            self.tiny(*command, *flags, code=1 if command[0] == "test" else 0)
        for flag in (["--dim", "M=3"], ["--shape", "q=1"]):
            self.json("info", model, *flag, code=2)

    def test_flags_come_after_the_command(self):
        error = self.json("-v", "devices", code=2)["error"]
        self.assertIn("flags come after the command: tiny COMMAND .. -v", error["message"])

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

    def test_the_interrupt_key_ends_a_run(self):
        """In the middle of a sum of 2^40 terms, which takes minutes."""
        model = save_model(self.folder / "sum.onnx",
                           [helper.make_node("Mul", ["x", "y"], ["z"]),
                            helper.make_node("Sin", ["z"], ["s"]),
                            helper.make_node("ReduceSum", ["s"], ["sum"], keepdims=0)],
                           [port("x", [1 << 20, 1]), port("y", [1, 1 << 20])], [port("sum", [])])
        command = [TINY, "run", model, "--synth", "ones", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            time.sleep(1.5)
            running.send_signal(signal.SIGINT)
            out = running.communicate(timeout=10)[0]
        self.assertEqual(running.returncode, 130)
        self.check_head(json.loads(out), False)

    def test_a_request_to_end(self):
        self.check_end_by(signal.SIGTERM, 130)
        self.check_end_by(signal.SIGHUP, 130)

    def test_a_crash_is_an_internal_error(self):
        self.check_end_by(signal.SIGSEGV, 70)

    def test_a_request_to_end_that_is_ignored_stays_so(self):
        command = ["nohup", TINY, "bench", self.negation(), "--duration", "2", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            time.sleep(1)
            running.send_signal(signal.SIGHUP)
            running.communicate(timeout=20)
        self.assertEqual(running.returncode, 0)

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


class Export(CliTest):
    def setUp(self):
        super().setUp()
        self.model = save_model(self.folder / "the-sum.v2.onnx", [helper.make_node("Add", ["a", "b"], ["sum"])],
                                [port("a", ["N", 3]), port("b", [3])], [port("sum", ["N", 3])])

    def test_the_files(self):
        told = self.json("export", self.model, "--c", self.folder / "c", "--dim", "N=1..8")
        self.assertEqual(told["name"], "the_sum")
        self.assertEqual([pathlib.Path(f).name for f in told["files"]], ["the_sum.c", "the_sum.h", "the_sum.weights"])
        self.assertIn("int64_t N; /* 1 to 8 */", (self.folder / "c/the_sum.h").read_text())
        self.tiny("export", self.model, "--c", self.folder / "c", "--dim", "N=4", "--name", "four")
        self.assertIn("[4][3]", (self.folder / "c/four.h").read_text())

    def test_what_is_wrong(self):
        for flags, what in (([], "a: N is free: --dim N=N says it, or --dim N=1..64"), (["--dim", "N=3..2"], "--dim N"),
                            (["--dim", "M=1..2", "--dim", "N=1"], "no dimension of that name free")):
            self.assertIn(what, self.json("export", self.model, "--c", "c", *flags, code=2)["error"]["message"])
        self.json("export", self.model, "--c", "no/such/folder", "--dim", "N=1", code=5)
        self.assertIn("cannot name functions",
                      self.json("export", self.model, "--c", "c", "--dim", "N=1", "--name", "1", code=2)["error"]["message"])


if __name__ == "__main__":
    unittest.main()
