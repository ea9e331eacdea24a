"""What people read: messages, suggestions, aligned figures, percentages, the progress bar."""

import json
import os
import pathlib
import pty
import subprocess
import unittest
from unittest import mock

import numpy
from support import CliTest, TINY, TensorProto, helper, numpy_helper, png, port, save_model


class Messages(CliTest):
    def words(self, *arguments, code):
        self.tiny(*arguments, code=code)
        return self.done.stderr

    def test_no_names_of_c(self):
        model = self.negation()
        for flags, code in (([self.folder / "none.onnx"], 5), ([self.strange(), "--synth", "ones"], 4),
                            ([model, "--input", self.npy("w.npy", [1.0])], 5),
                            ([model, "--synth", "ones", "--option", "threads=-3"], 2)):
            self.assertNotIn("tiny_", self.words("run", *flags, code=code))
        error = self.json("run", self.folder / "none.onnx", code=5)["error"]
        self.assertEqual(error["call"], "tiny_model_load")

    def test_did_you_mean(self):
        model = self.arithmetic()
        for arguments, meant in ((["rnu", model], "'run'"), (["run", model, "--inptu", "x"], "'--input'"),
                                 (["run", model, "--synth", "ones", "--outputs", "porduct"], "'product'"),
                                 (["run", model, "--synth", "ones", "--option", "bem=1"], '"beam"'),
                                 (["run", model, "--synth", "ones", "--dim", "n=3"], "'N'")):
            self.assertIn(f"did you mean {meant}?", self.words(*arguments, code=2))
        for arguments in (["elephant"], ["run", model, "--xylophone"]):
            self.assertNotIn("did you mean", self.words(*arguments, code=2))
        self.assertIn("did you mean 'cpu'?", self.words("run", model, "--device", "cup", code=4))

    def test_what_is_no_model_is_named(self):
        (self.folder / "empty.onnx").write_bytes(b"")
        (self.folder / "page.onnx").write_bytes(b"<!DOCTYPE html><html>")
        (self.folder / "lfs.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
        texts = {"README.md": ("# Title\n\nA na\u00efve model.\n", "a text"), "list.txt": ("[1, 2]", "a text"),
                 "m.json": ('\n {"a": 1}', "a JSON text"), "old.html": ("\ufeff\n<HTML>", "a web page"),
                 "m.xml": ("  <?xml version='1.0'?>", "an XML file")}
        for name, (text, _) in texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        (self.folder / "weights.safetensors").write_bytes(b"\x40" + bytes(7) + b'{"x":1}')
        files = {png(self.folder / "cat.png", numpy.zeros((2, 2))): "a PNG picture",
                 self.npy("x.npy", [1, 2]): "a NumPy array",
                 self.folder / "page.onnx": "a web page", self.folder / "lfs.onnx": "Git LFS",
                 self.folder / "empty.onnx": "an empty file", TINY: "an ELF program",
                 self.folder / "weights.safetensors": "weights without a graph",
                 **{self.folder / name: kind for name, (_, kind) in texts.items()}}
        for path, kind in files.items():
            words = self.words("info", path, code=3)
            self.assertIn(kind, words)
            self.assertIn("not an ONNX model", words)
        (self.folder / "cut.onnx").write_bytes(pathlib.Path(self.arithmetic()).read_bytes()[:40])
        self.assertNotIn("not an ONNX model", self.words("info", self.folder / "cut.onnx", code=3))
        self.assertIn("is a folder", self.words("info", self.folder, code=5))
        self.assertNotIn("not an ONNX model", self.words("info", self.folder / "none.onnx", code=5))

    def test_targets_that_could_mean_something_else_are_refused(self):
        flags = ["run", self.arithmetic(), "--synth", "ones", "--save"]
        for target in ("out.txt", "out.npzz", "out.v2", "one.npy", "one.pb"):
            self.words(*flags, target, code=2)
            self.assertFalse((self.folder / target).exists(), target)
        (self.folder / "taken").write_text("precious")
        self.words(*flags, "taken", code=5)
        self.assertEqual((self.folder / "taken").read_text(), "precious")
        (self.folder / "folder.npz").mkdir()
        for target in ("out.v2/", "folder.npz"):
            self.words(*flags, target, code=0)
            self.assertEqual(sorted(p.name for p in (self.folder / target).iterdir()),
                             ["product.npy", "sum.npy"])
        self.words(*flags, "sum.npy", "--outputs", "sum", code=0)
        self.assertEqual(numpy.load(self.folder / "sum.npy").tolist(), [[2, 2, 2]])
        self.words(*flags, "both.safetensors", code=0)
        self.words("run", self.negation((1, 3)), "--input", "both.safetensors:product", "--expect",
                   self.npy("want.npy", [[-1, -1, -1]]), code=0)

    def test_numpys_files_take_no_bfloat16(self):
        model = self.negation((2,), TensorProto.BFLOAT16)
        for target in ("y.npy", "y.npz"):
            self.assertIn("bfloat16", self.words("run", model, "--synth", "ones", "--save", target, code=2))
            self.assertFalse((self.folder / target).exists())
        for target in ("y.pb", "y.safetensors", "y/"):
            self.words("run", model, "--synth", "ones", "--save", target, code=0)
        self.assertTrue((self.folder / "y" / "y.pb").exists())


class Text(CliTest):
    def scores(self, values):
        x = self.npy("scores.npy", [values])
        model = self.negation((1, len(values)))
        return ["run", model, "--input", x, "--top", "3"]

    def test_percentages_of_logits_and_of_probabilities(self):
        flags = self.scores([-3, 1, -2, -1, 0.5])  # the model negates
        text = self.tiny(*flags)
        share = numpy.exp([3, -1, 2, 1, -0.5]) / numpy.exp([3, -1, 2, 1, -0.5]).sum() * 100
        self.assertIn("the 3 largest; percentages are their softmax\n", text)
        self.assertIn(f"   1      0 - 3.0  {share[0]:.2f}%\n", text)
        output = self.json(*flags)["outputs"][0]
        self.assertEqual(output["top_percent_of"], "softmax")
        numpy.testing.assert_allclose(output["top_percent"], share[[0, 2, 3]], rtol=1e-6)
        flags = self.scores([-0.25, -0.5, -0.125, -0.125])
        self.assertIn("   1      1 -   0.5  50.00%\n", self.tiny(*flags))
        self.assertIn("as percentages", self.tiny(*flags))
        self.assertEqual(self.json(*flags)["outputs"][0]["top_percent_of"], "values")

    def test_no_percentages_where_they_would_mean_nothing(self):
        self.assertNotIn("%", self.tiny(*self.scores([-0.9, -0.8, -0.1])))  # scores of their own
        self.assertNotIn("%", self.tiny(*self.scores([-numpy.inf, 1, 2])))
        matrix = ["run", self.negation(), "--synth", "ones", "--top", "2"]
        self.assertNotIn("top_percent", self.json(*matrix)["outputs"][0])

    def test_columns_are_aligned(self):
        labels = self.folder / "labels.txt"
        labels.write_text("ox\nélan\ncat\n")
        text = self.tiny(*self.scores([-10.5, -9, 100]), "--labels", labels)
        rows = [line for line in text.splitlines() if line.endswith("%")]
        self.assertEqual(rows, ["   1      0 ox     10.5  81.76%", "   2      1 élan    9.0  18.24%",
                                "   3      2 cat  -100.0   0.00%"])
        text = self.tiny("run", self.negation(), "--input", self.npy("x.npy", [[1, 20, 300], [4, 5, -6]]))
        self.assertIn("\n         -1.0  -20.0 -300.0\n         -4.0   -5.0    6.0\n", text)

    def test_times_on_request(self):
        flags = ["run", self.negation(), "--synth", "ones"]
        self.assertNotIn("first_run", self.tiny(*flags))
        text = self.tiny(*flags, "--times")
        for word in ("first_run", "peak_rss", "compiled"):
            self.assertIn(word, text)

    def test_a_profile_is_sorted_and_has_shares(self):
        model = save_model(self.folder / "two.onnx",
                           [helper.make_node("MatMul", ["a", "a"], ["b"]),
                            helper.make_node("MatMul", ["b", "b"], ["c"])],
                           [port("a", [64, 64])], [port("c", [64, 64])])
        kernels = self.json("bench", model, "--runs", "2", "--profile")["results"][0]["kernels"]
        self.assertEqual(sorted(k["index"] for k in kernels), list(range(len(kernels))))
        self.assertEqual([k["ms"] for k in kernels], sorted((k["ms"] for k in kernels), reverse=True))
        self.assertAlmostEqual(sum(k["share"] for k in kernels), 1)
        lines = self.tiny("bench", model, "--runs", "2", "--profile").splitlines()
        head = next(i for i, line in enumerate(lines) if "GFLOPS" in line)
        for line in lines[head + 1:]:
            self.assertEqual(line.rfind("  ") + 2, lines[head].find("computes"), line)
        self.assertIn("100.0%", lines[-1])

    def network(self, name, first="conv1"):
        """A convolution, its scale, a relu and a nameless product."""
        def weights(label, *shape):
            values = numpy.random.default_rng(3).standard_normal(shape).astype("float32")
            return numpy_helper.from_array(values, label)
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name=first, pads=[1, 1, 1, 1]),
                 helper.make_node("Mul", ["c", "s"], ["m"], name="scale"),
                 helper.make_node("Relu", ["m"], ["r"], name="relu1"),
                 helper.make_node("MatMul", ["r", "r"], ["y"])]
        return save_model(self.folder / name, nodes, [port("x", [1, 3, 32, 32])],
                          [port("y", [1, 8, 32, 32])],
                          initializers=[weights("w", 8, 3, 3, 3), weights("s", 1, 8, 1, 1)])

    def test_kernels_name_the_nodes_that_they_compute(self):
        flags = ["--runs", "1", "--profile", "--option", f"cache_dir={self.folder}/cache"]
        with mock.patch.dict(os.environ, {"TINY_SPEC": "0"}):  # 1 reads no cache
            # The second time from the cache; of another model with this structure, its own names.
            for first in ("conv1", "conv1", "other", "other"):
                kernels = self.json("bench", self.network("net.onnx", first), *flags)["results"][0]["kernels"]
                computes = [name for kernel in sorted(kernels, key=lambda k: k["index"])
                            for name in kernel["computes"]]
                self.assertEqual(computes, [first, "scale", "relu1", "MatMul:y"])
        self.assertIn(" other + scale + relu1\n", self.tiny("bench", self.folder / "net.onnx", *flags))

    def test_a_trace_that_perfetto_opens(self):
        result = self.json("bench", self.network("net.onnx"), "--runs", "1", "--threads", "1", "--profile",
                           "--trace", "trace.json")["results"][0]
        trace = json.loads((self.folder / "trace.json").read_text(), parse_constant=self.fail)
        self.assertEqual(trace["displayTimeUnit"], "ms")
        events = trace["traceEvents"]
        for event in events:
            self.assertLessEqual({"name", "cat", "ph", "ts", "dur", "pid", "tid"}, event.keys())
            self.assertEqual(event["ph"], "X")
            for key, kind in (("ts", (int, float)), ("dur", (int, float)), ("pid", int), ("tid", int),
                              ("name", str), ("cat", str)):
                self.assertIsInstance(event[key], kind)
            self.assertGreaterEqual(min(event["ts"], event["dur"]), 0)
        phases = [event["name"] for event in events if event["cat"] == "phase"]
        self.assertEqual(phases, ["load", "schedule", "compile", "init", "first run", "run"])
        kernels = [event for event in events if event["cat"] == "kernel"]
        self.assertEqual(sorted(event["name"] for event in kernels),
                         sorted(kernel["name"] for kernel in result["kernels"]))
        run = events[phases.index("run")]
        end = run["ts"]
        for event in kernels:  # one after the other, within the run
            self.assertGreaterEqual(event["ts"], end - 1e-3)
            end = event["ts"] + event["dur"]
            self.assertLessEqual({"computes", "gflops", "bytes", "options"}, event["args"].keys())
        self.assertLessEqual(end, run["ts"] + run["dur"] + 1e-3)
        self.json("bench", self.negation(), "--runs", "1", "--trace", "no/such/folder/t.json", code=5)

    def test_each_commands_help_has_its_own_examples(self):
        for command in ("run", "info", "bench", "test", "export", "devices"):
            text = self.tiny(command, "--help")
            self.assertIn(f"  tiny {command}", text.split("Examples:")[1])
        for line in self.tiny("run", "--help").split("Examples:")[1].split("\n"):
            self.assertTrue(not line or line.startswith("  tiny run"), line)


class Progress(CliTest):
    def terminal(self, *arguments):
        """What a terminal on stderr is shown."""
        shown, stderr = pty.openpty()
        with subprocess.Popen([TINY, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=stderr,
                              cwd=self.folder) as running:
            os.close(stderr)
            text = b""
            while True:
                try:
                    part = os.read(shown, 65536)
                except OSError:  # nobody holds the other side
                    break
                if not part:
                    break
                text += part
        os.close(shown)
        self.assertEqual(running.returncode, 0, text)
        return text.decode()

    def test_a_bar_while_a_measurement_lasts(self):
        text = self.terminal("bench", self.negation(), "--duration", "1.8")
        self.assertRegex(text, r"measuring with threads \d+ \[#{10,}\.*\]  ?[5-9]\d%")
        self.assertTrue(text.endswith("\r\x1b[K"), text[-40:])

    def test_nothing_for_what_is_short_or_quiet(self):
        self.assertEqual(self.terminal("bench", self.negation(), "--runs", "3"), "")
        self.assertEqual(self.terminal("bench", self.negation(), "--duration", "1.5", "-q"), "")


if __name__ == "__main__":
    unittest.main()
