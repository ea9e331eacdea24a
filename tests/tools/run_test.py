"""tiny run: inputs, outputs, comparisons, what it prints and how it exits."""

import subprocess
import unittest

from support import (CliTest, HEAD, TINY, TensorProto, helper, numpy, numpy_helper, port, save_model,
                     save_pb)


class Values(CliTest):
    def test_outputs_and_report_of_given_inputs(self):
        a, b = [[1, 2, 3], [4, 5, 6]], [[10, 20, 30], [0.5, 0.25, -1]]
        result = self.json("run", self.arithmetic(), "--input", self.npy("a.npy", a),
                           "--input", f"b={self.npy('b.npy', b)}")
        self.assertLessEqual(HEAD | {"model", "device", "isa", "threads", "inputs", "outputs",
                                     "times_ms", "kernels", "memory"}, result.keys())
        self.assertLessEqual({"path", "ir_version", "opset", "producer"}, result["model"].keys())
        self.assertEqual(result["model"]["opset"], {"": 13})
        self.assertEqual([(i["name"], i["dtype"], i["shape"]) for i in result["inputs"]],
                         [("a", "float32", [2, 3]), ("b", "float32", [2, 3])])
        self.assertTrue(result["inputs"][0]["source"].endswith("a.npy"))
        total, product = result["outputs"]
        self.assertEqual(total["values"], [11, 22, 33, 4.5, 5.25, 5])
        self.assertEqual(product["values"], [10, 40, 90, 2, 1.25, -6])
        self.assertEqual((product["min"], product["max"], product["nan"], product["inf"]),
                         (-6, 90, 0, 0))
        self.assertAlmostEqual(product["mean"], numpy.mean([10, 40, 90, 2, 1.25, -6]), places=5)
        self.assertEqual(result["times_ms"].keys(),
                         {"load", "schedule", "compile", "init", "first_run"})
        self.assertTrue(all(isinstance(ms, float) for ms in result["times_ms"].values()))
        self.assertEqual(result["kernels"].keys(), {"count", "compiled", "cached", "interpreted"})
        self.assertEqual(result["memory"].keys(), {"arena", "weights", "peak_rss"})
        self.assertGreater(result["memory"]["peak_rss"], 1 << 20)

    def test_either_of_two_branches_of_different_ranks(self):
        model = self.chosen()
        for values, shape in (([[1, 2], [3, 4]], [2, 2]), ([[-1, -2], [-3, -4]], [])):
            y, = self.json("run", model, "--input", self.npy("x.npy", values))["outputs"]
            self.assertEqual((y["shape"], y["values"]), (shape, [1, 2, 3, 4] if shape else [-10]))

    def test_missing_inputs_are_all_listed(self):
        error = self.json("run", self.arithmetic(), code=2)["error"]
        self.assertIn("a (float32 [N,3])", error["message"])
        self.assertIn("b (float32 [N,3])", error["message"])

    def test_synthesised_inputs_follow_seed_and_dim(self):
        model = self.arithmetic()

        def values(*flags):
            return self.json("run", model, "--synth", "uniform", "--dim", "N=4", *flags)
        first = values()
        self.assertEqual(first["inputs"][0]["shape"], [4, 3])
        self.assertEqual(first["inputs"][0]["source"], "uniform")
        self.assertEqual(first["outputs"], values()["outputs"])
        self.assertNotEqual(first["outputs"], values("--seed", "7")["outputs"])
        self.assertGreaterEqual(first["outputs"][0]["min"], 0)
        self.assertLess(first["outputs"][0]["max"], 2)

    def test_kinds_of_synthesis(self):
        model = self.negation()
        for kind, wanted in {"zeros": [0] * 6, "ones": [-1] * 6,
                             "arange": [0, -1, -2, -3, -4, -5]}.items():
            self.assertEqual(self.json("run", model, "--synth", kind)["outputs"][0]["values"], wanted)
        self.tiny("run", model, "--synth", "noise", code=2)

    def test_a_free_dimension_is_shared_by_the_inputs(self):
        a = self.npy("a.npy", numpy.ones((5, 3)))
        result = self.json("run", self.arithmetic(), "--input", f"a={a}", "--synth", "ones")
        self.assertEqual(result["inputs"][1]["shape"], [5, 3])

    def test_odd_floats_are_strings(self):
        x = self.npy("x.npy", [[numpy.nan, numpy.inf, -numpy.inf], [1, 2, 3]])
        output = self.json("run", self.negation(), "--input", x)["outputs"][0]
        self.assertEqual(output["values"], ["nan", "-inf", "inf", -1, -2, -3])
        self.assertEqual((output["nan"], output["inf"]), (1, 2))
        self.assertEqual((output["min"], output["max"]), ("-inf", "inf"))

    def test_every_integer_is_exact(self):
        x = self.npy("x.npy", [[2 ** 62 + 1, -2 ** 63 + 1, 7]], "int64")
        model = self.negation((1, 3), TensorProto.INT64)
        self.assertEqual(self.json("run", model, "--input", x)["outputs"][0]["values"],
                         [-2 ** 62 - 1, 2 ** 63 - 1, -7])

    def test_values_stop_at_64_unless_all_are_asked_for(self):
        model = self.negation((65,))
        self.assertNotIn("values", self.json("run", model, "--synth", "ones")["outputs"][0])
        full = self.json("run", model, "--synth", "ones", "--print", "full")["outputs"][0]
        self.assertEqual(full["values"], [-1] * 65)

    def test_chosen_outputs(self):
        model = self.arithmetic()
        result = self.json("run", model, "--synth", "ones", "--outputs", "product")
        self.assertEqual([o["name"] for o in result["outputs"]], ["product"])
        error = self.json("run", model, "--synth", "ones", "--outputs", "quotient", code=2)["error"]
        self.assertIn("known: sum, product", error["message"])

    def test_top_and_labels(self):
        (self.folder / "labels.txt").write_text("zero\none\ntwo\nthree\nfour\nfive\n")
        x = self.npy("x.npy", [[-3, -1, -4], [-1, -5, numpy.nan]])
        flags = ["run", self.negation(), "--input", x, "--top", "3"]
        top = self.json(*flags, "--labels", "labels.txt")["outputs"][0]["top"]
        self.assertEqual(top, [{"index": 4, "label": "four", "value": 5},
                               {"index": 2, "label": "two", "value": 4},
                               {"index": 0, "label": "zero", "value": 3}])
        self.assertIn("1      4 four 5", self.tiny(*flags, "--labels", "labels.txt"))
        self.json(*flags, "--labels", "none.txt", code=5)
        (self.folder / "short.txt").write_text("zero\none\ntwo\n")
        top = self.json(*flags, "--labels", "short.txt")["outputs"][0]["top"]
        self.assertEqual([entry["label"] for entry in top], [None, "two", "zero"])
        self.assertIn("1      4 - 5", self.tiny(*flags, "--labels", "short.txt"))
        for wrong in ("-1", "1.5", "99999999999999999999"):
            error = self.json("run", self.negation(), "--input", x, "--top", wrong, code=2)["error"]
            self.assertIn("--top", error["message"])

    def test_kernels_of_a_model_that_its_values_shape(self):
        model, x = self.reshaped(), self.npy("x.npy", numpy.arange(6))
        for device in ("cpu", "interp"):
            flags = ["--input", x, "--input", self.npy("s.npy", [2, 3], "int64"), "--no-cache",
                     "--device", device]
            result = self.json("run", model, *flags)
            self.assertEqual(result["outputs"][0]["shape"], [2, 3])
            kernels, times = result["kernels"], result["times_ms"]
            self.assertGreaterEqual(kernels["count"], 1)
            self.assertEqual(kernels["interpreted"], kernels["count"] * (device == "interp"))
            self.assertEqual(kernels["compiled"], kernels["count"] * (device == "cpu"))
            self.assertEqual(kernels["cached"], 0)
            self.assertGreater(times["schedule"], 0)
            self.assertGreater(times["compile"], 0)

    def test_plain_text_says_the_same(self):
        text = self.tiny("run", self.negation(), "--synth", "ones")
        self.assertIn("output y  float32 [2,3]  min -1.0  max -1.0", text)
        self.assertEqual(self.tiny("run", self.negation(), "--synth", "ones", "--print", "none"), "")


class Comparisons(CliTest):
    def run_negation(self, want, *flags, code=0, x=((1, 2, 3), (4, 5, 6))):
        result = self.json("run", self.negation(), "--input", self.npy("x.npy", x), "--expect",
                           self.npy("y.npy", want), *flags, code=code)
        return result["outputs"][0]["compare"]

    def test_equal(self):
        compared = self.run_negation([[-1, -2, -3], [-4, -5, -6]])
        self.assertEqual(compared.keys(), {"file", "pass", "max_abs", "max_rel", "mismatched",
                                           "total", "first"})
        self.assertEqual((compared["pass"], compared["mismatched"], compared["total"],
                          compared["first"]), (True, 0, 6, None))

    def test_different(self):
        compared = self.run_negation([[-1, -2, -3], [-4.5, -5, -7]], code=1)
        self.assertEqual((compared["pass"], compared["mismatched"]), (False, 2))
        self.assertEqual(compared["first"], {"index": 3, "got": -4, "want": -4.5})
        self.assertEqual(compared["max_abs"], 1)
        self.assertAlmostEqual(compared["max_rel"], 1 / 7)

    def test_tolerance_is_numpys(self):
        want = [[-1.01, -2, -3], [-4, -5, -6]]
        self.run_negation(want, code=1)
        self.run_negation(want, "--rtol", "0.02")
        self.run_negation(want, "--rtol", "0", "--atol", "0.0101")
        self.run_negation(want, "--rtol", "0", "--atol", "0.0099", code=1)

    def test_nan_equals_nan_and_infinities_themselves(self):
        odd = numpy.array([[numpy.nan, numpy.inf, -numpy.inf], [1, 2, 3]])
        self.run_negation(-odd, x=odd)
        self.run_negation(odd, x=odd, code=1)

    def test_another_shape_fails(self):
        compared = self.run_negation([-1, -2], code=1)
        self.assertIn("float32 [2]", compared["reason"])

    def test_a_data_set(self):
        model, folder = self.arithmetic(), self.folder / "set"
        a = numpy.arange(6, dtype="float32").reshape(2, 3)
        save_pb(folder / "input_0.pb", a)
        save_pb(folder / "input_1.pb", a)
        save_pb(folder / "output_0.pb", a + a)
        save_pb(folder / "output_1.pb", a * a)
        result = self.json("run", model, "--data", folder)
        self.assertTrue(all(o["compare"]["pass"] for o in result["outputs"]))
        save_pb(folder / "output_1.pb", a)
        result = self.json("run", model, "--data", folder, code=1)
        self.assertEqual([o["compare"]["pass"] for o in result["outputs"]], [True, False])
        self.json("run", model, "--data", self.folder / "no-such", code=5)
        # A wrong output fails, shown or not.
        error = self.json("run", model, "--data", folder, "--outputs", "sum", code=1)["error"]
        self.assertIn("product", error["message"])
        (self.folder / "empty").mkdir()
        for flags in ([], ["--synth", "ones"]):
            error = self.json("run", model, "--data", self.folder / "empty", *flags, code=5)["error"]
            self.assertIn("no input_0.pb", error["message"])
            self.assertIn("empty", error["message"])
        error = self.json("run", model, "--data", folder / "input_0.pb", code=5)["error"]
        self.assertIn("is no folder", error["message"])

    def test_a_device_that_computes_nothing_is_not_right(self):
        wanted = self.npy("y.npy", -numpy.ones((2, 3)))
        flags = ["--synth", "ones", "--expect", wanted]
        self.json("run", self.negation(), *flags)
        self.json("run", self.negation(), *flags, "--device", "null", code=1)

    def test_what_is_expected_must_be_chosen(self):
        wrong = self.npy("wrong.npy", numpy.zeros((1, 3)))
        error = self.json("run", self.arithmetic(), "--synth", "ones", "--expect",
                          f"product={wrong}", "--outputs", "sum", code=2)["error"]
        self.assertIn("product", error["message"])
        self.assertIn("--outputs", error["message"])


class ExitCodes(CliTest):
    def test_wrong_usage(self):
        model = self.negation()
        text = self.json("run", model, "--inputs", "x", code=2)["error"]["message"]
        for flag in ("--input", "--expect", "--threads"):
            self.assertIn(flag, text)
        x = self.npy("x.npy", numpy.ones((2, 3)))
        text = self.json("run", model, "--input", f"z={x}", code=2)["error"]["message"]
        self.assertIn("known: x", text)
        for flags in (["--dim", "M=3"], ["--shape", "x=1x2"], ["--shape", "q=1"], ["--threads", "-1"],
                      ["--threads", "two"], ["--print", "some"], ["--option", "nonsense=1"],
                      ["--option", "nonsense"], ["--isa", "mmx"], ["--rtol", "x"]):
            self.json("run", model, "--synth", "ones", *flags, code=2)
        self.json("run", code=2)
        self.tiny(code=2)
        self.tiny("walk", code=2)
        self.assertIn("run, info, bench, test, export, devices", self.done.stderr)

    def test_numbers_have_ranges(self):
        model = self.negation()
        for flags in (["--threads", "1025"], ["--threads", "20000"], ["--threads", "2147483648"],
                      ["--threads", "99999999999999999999"], ["--limit-memory", "-1"],
                      ["--seed", "18446744073709551616"]):
            error = self.json("run", model, "--synth", "ones", *flags, code=2, timeout=10)["error"]
            self.assertIn(flags[0], error["message"])
        error = self.json("run", model, "--synth", "ones", "--option", "debug=8", code=2)["error"]
        self.assertIn('"debug" wants from 0 to 7; got 8', error["message"])
        self.json("run", model, "--synth", "ones", "--threads", "3")

    def test_an_unknown_option_lists_all_known_ones(self):
        for value in ("1", "text"):
            message = self.json("run", self.negation(), "--synth", "ones", "--option",
                                f"nonsense={value}", code=2)["error"]["message"]
            for key in ("device", "threads", "opts", "cache_dir", "beam"):
                self.assertIn(key, message)

    def test_numbers_of_devices(self):
        for device in ("null:0", "cpu:0", "interp:0"):
            result = self.json("run", self.negation(), "--synth", "ones", "--device", device)
            self.assertEqual(result["device"], device.split(":")[0])
        for device in ("null:1", "cpu:3", "interp:99999999999999999999", "null:", "null:x", "abacus:0"):
            error = self.json("run", self.negation(), "--synth", "ones", "--device", device,
                              code=4)["error"]
            self.assertIn(device.split(":")[0], error["message"])

    def test_the_node_and_the_file_of_an_error(self):
        nodes = [helper.make_node("Reshape", ["x", "s"], ["y"], name="the_node")]
        shape = numpy_helper.from_array(numpy.array([4, 5]), "s")
        model = save_model(self.folder / "node.onnx", nodes, [port("x", [2, 3])], [port("y", [4, 5])],
                           initializers=[shape])
        error = self.json("run", model, "--synth", "ones", code=3)["error"]
        self.assertEqual((error["node"], error["file"]), ("the_node", str(model)))
        error = self.json("run", self.strange(), "--synth", "ones", code=4)["error"]
        self.assertEqual(error["node"], "y")
        missing = self.json("run", self.folder / "none.onnx", code=5)["error"]
        self.assertEqual((missing["node"], missing["file"]), (None, str(self.folder / "none.onnx")))

    def test_invalid_models(self):
        garbage = self.folder / "garbage.onnx"
        garbage.write_bytes(b"\xff\x00garbage" * 9)
        result = self.json("run", garbage, "--synth", "ones", code=3)
        self.assertEqual(result["status"], "INVALID_MODEL")
        whole = self.arithmetic().read_bytes()
        (self.folder / "cut.onnx").write_bytes(whole[:len(whole) // 2])
        self.json("run", "cut.onnx", "--synth", "ones", code=3)

    def test_unsupported_operators_and_devices(self):
        result = self.json("run", self.strange(), "--synth", "ones", code=4)
        self.assertEqual(result["status"], "UNSUPPORTED")
        self.assertIn("Strange", result["error"]["message"])
        text = self.json("run", self.negation(), "--synth", "ones", "--device", "abacus",
                         code=4)["error"]["message"]
        self.assertIn("interp", text)

    def test_files(self):
        model = self.negation()
        missing = self.json("run", self.folder / "none.onnx", code=5)
        self.assertEqual(missing["status"], "IO")
        self.json("run", model, "--input", "none.npy", code=5)
        self.json("run", model, "--input", "x=none.npy", code=5)
        for array in (numpy.ones((2, 4), "float32"), numpy.ones((2, 3), "float64"),
                      numpy.ones(6, "float32")):
            self.json("run", model, "--input", self.npy("wrong.npy", array, array.dtype), code=5)
        (self.folder / "bad.npy").write_bytes(b"\x93NUMPY garbage")
        self.json("run", model, "--input", "bad.npy", code=5)
        self.json("run", model, "--synth", "ones", "--save", "no/such/folder/y.npz", code=5)
        with open("/dev/full", "w") as full:
            done = subprocess.run([TINY, "run", model, "--synth", "ones"], stdout=full,
                                  stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 5)

    def test_limits(self):
        result = self.json("run", self.negation((1000, 1000)), "--synth", "ones", "--limit-memory",
                           "1000", code=6)
        self.assertIn(result["status"], ("OUT_OF_MEMORY", "LIMIT"))
        self.json("run", self.arithmetic(), "--synth", "ones", "--dim", f"N={2 ** 62}", code=6)


class Names(CliTest):
    def test_names_may_hold_anything(self):
        name = "a=b:c/d"
        model = self.negation(source=name)
        x = self.npy("x.npy", numpy.ones((2, 3)))
        y = self.npy("e=f.npy", -numpy.ones((2, 3)))
        self.json("run", model, "--input", f"{name}={x}", "--expect", f"y={y}")
        self.json("run", model, "--input", y)  # a file whose name holds a '='
        self.json("run", model, "--synth", "ones", "--shape", f"{name}=2x3")

    def test_saved_names_are_no_paths(self):
        nodes = [helper.make_node("Neg", ["x"], [name]) for name in ("../up", "/root", "a b", "")
                 if name]
        model = save_model(self.folder / "names.onnx", nodes, [port("x", [2])],
                           [port(n.output[0], [2]) for n in nodes])
        self.json("run", model, "--synth", "ones", "--save", "inner/out", code=5)
        self.json("run", model, "--synth", "ones", "--save", "out")
        names = sorted(path.name for path in (self.folder / "out").iterdir())
        self.assertEqual(names, ["%2E.%2Fup.npy", "%2Froot.npy", "a%20b.npy"])
        self.assertEqual(numpy.load(self.folder / "out" / "a%20b.npy").tolist(), [-1, -1])


if __name__ == "__main__":
    unittest.main()
