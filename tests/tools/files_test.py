"""Files of tensors and pictures, read and written by tiny run."""

import json
import struct
import unittest
import zipfile

import numpy
from support import CliTest, TensorProto, helper, png, port, save_model, save_pb

DTYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int8": TensorProto.INT8,
          "int32": TensorProto.INT32, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8,
          "bool": TensorProto.BOOL, "float16": TensorProto.FLOAT16}


def safetensors(path, **arrays):
    """A .safetensors file of arrays of float32."""
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


class Tensors(CliTest):
    def identity(self, shape, dtype="float32", name="identity.onnx"):
        return save_model(self.folder / name, [helper.make_node("Identity", ["x"], ["y"])],
                          [port("x", shape, DTYPES[dtype])], [port("y", shape, DTYPES[dtype])])

    def run_identity(self, array, path, *flags):
        model = self.identity(list(array.shape), str(array.dtype))
        return self.json("run", model, "--input", path, "--print", "full", *flags)["outputs"][0]

    def check_values(self, array, path, *flags):
        self.assertEqual(self.run_identity(array, path, *flags)["values"], array.ravel().tolist())

    def test_every_dtype_from_npy_pb_and_npz(self):
        for dtype in DTYPES:
            array = numpy.array([[0, 1, 0], [1, 1, 2]]).astype(dtype)
            with self.subTest(dtype=dtype):
                self.check_values(array, self.npy("x.npy", array, dtype))
                save_pb(self.folder / "x.pb", array)
                self.check_values(array, self.folder / "x.pb")
                numpy.savez(self.folder / "x.npz", x=array)
                self.check_values(array, self.folder / "x.npz")

    def test_npz_packed_columns_first_and_big_endian(self):
        array = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
        numpy.savez_compressed(self.folder / "x.npz", x=numpy.asfortranarray(array))
        self.check_values(array, self.folder / "x.npz")
        numpy.savez(self.folder / "x.npz", array.astype(">f4"))
        self.check_values(array, self.folder / "x.npz")

    def test_npz_members_by_name_and_by_order(self):
        a, b = numpy.array([[1, 2, 3]], "float32"), numpy.array([[4, 5, 6]], "float32")
        model = self.arithmetic()
        numpy.savez(self.folder / "named.npz", b=b, a=a)
        numpy.savez(self.folder / "ordered.npz", a, b)
        for name in ("named.npz", "ordered.npz"):
            result = self.json("run", model, "--input", name)
            self.assertEqual(result["outputs"][0]["values"], [5, 7, 9])
            self.assertEqual([i["name"] for i in result["inputs"]], ["a", "b"])
        numpy.savez(self.folder / "other.npz", c=a)
        self.assertIn("known: a, b", self.json("run", model, "--input", "other.npz",
                                               code=2)["error"]["message"])
        numpy.savez(self.folder / "expected.npz", sum=a + b, product=a * b)
        self.json("run", model, "--input", "named.npz", "--expect", "expected.npz")
        numpy.savez(self.folder / "expected.npz", sum=a + b, product=a + b)
        self.json("run", model, "--input", "named.npz", "--expect", "expected.npz", code=1)

    def test_safetensors_and_members_of_archives(self):
        a, b = numpy.array([[1, 2, 3]], "float32"), numpy.array([[4, 5, 6]], "float32")
        model = self.arithmetic()
        safetensors(self.folder / "named.safetensors", b=b, a=a)
        safetensors(self.folder / "batch.safetensors", **{"x.0": a, "x:1": b, "y": a + b, "z": a * b})
        numpy.savez(self.folder / "batch.npz", first=a, second=b)
        for flags in (["--input", "named.safetensors"],
                      ["--input", "a=named.safetensors", "--input", "b=named.safetensors"],
                      ["--input", "b=batch.safetensors:x:1", "--input", "a=batch.safetensors:x.0"],
                      ["--input", "batch.safetensors:x.0", "--input", "batch.safetensors:x:1"],
                      ["--input", "a=batch.npz:first", "--input", "b=batch.npz:second"]):
            with self.subTest(flags=flags):
                result = self.json("run", model, *flags, "--expect", "sum=batch.safetensors:y",
                                   "--expect", "product=batch.safetensors:z")
                self.assertEqual(result["outputs"][0]["values"], [5, 7, 9])
        self.json("run", model, "--input", "named.safetensors", "--expect",
                  "sum=batch.safetensors:z", code=1)
        for file in ("batch.safetensors", "batch.npz"):
            message = self.json("run", model, "--input", f"a={file}:none", code=5)["error"]["message"]
            self.assertIn("no array 'none'", message)
        self.assertIn("no array 'a'; it has x.0, x:1, y, z", self.json(
            "run", model, "--input", "a=batch.safetensors", code=5)["error"]["message"])
        (self.folder / "bad.safetensors").write_bytes(b"\xff" * 20)
        self.json("run", model, "--input", "bad.safetensors:x", code=5)
        self.json("run", model, "--input", "a=none.safetensors:x", code=5)
        self.json("bench", model, "--input", "named.safetensors", "--runs", "1")

    def test_damaged_archives(self):
        array = numpy.arange(1000, dtype="float32")
        model = self.identity([1000])
        numpy.savez_compressed(self.folder / "x.npz", x=array)
        whole = (self.folder / "x.npz").read_bytes()
        for cut in (10, 100, len(whole) // 2, len(whole) - 1):
            (self.folder / "cut.npz").write_bytes(whole[:cut])
            self.json("run", model, "--input", "cut.npz", code=5)
        for at in range(40, len(whole), 97):
            (self.folder / "bad.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 255]) +
                                                  whole[at + 1:])
            self.tiny("run", model, "--input", "bad.npz", "--json", code=self.code_of(model))
        with zipfile.ZipFile(self.folder / "text.npz", "w") as archive:
            archive.writestr("x.npy", "no array")
        self.json("run", model, "--input", "text.npz", code=5)

    def code_of(self, model):
        """5, or 0 where the damage hit a byte that says nothing (a date)."""
        import subprocess

        import support
        done = subprocess.run([support.TINY, "run", model, "--input", self.folder / "bad.npz"],
                              capture_output=True)
        self.assertIn(done.returncode, (0, 2, 5), done.stderr)
        return done.returncode

    def test_raw_elements_take_shape_from_the_flags(self):
        array = numpy.arange(6, dtype="float32")
        (self.folder / "x.bin").write_bytes(array.tobytes())
        model = self.identity(["N", 3])
        self.assertIn("--shape", self.json("run", model, "--input", "x.bin",
                                           code=2)["error"]["message"])
        for flags in (["--shape", "x=2x3"], ["--dim", "N=2"]):
            output = self.json("run", model, "--input", "x.bin", *flags)["outputs"][0]
            self.assertEqual((output["shape"], output["values"]), ([2, 3], array.tolist()))
        self.json("run", model, "--input", "x.bin", "--dim", "N=3", code=5)

    def test_saving(self):
        a = numpy.array([[1, 2, 3]], "float32")
        model = self.arithmetic()
        flags = ["run", model, "--input", self.npy("a.npy", a), "--input", "a.npy"]
        self.json(*flags, "--save", "folder")
        self.assertEqual(numpy.load(self.folder / "folder" / "sum.npy").tolist(), (a + a).tolist())
        self.json(*flags, "--save", "all.npz")
        with numpy.load(self.folder / "all.npz") as saved:
            self.assertEqual(sorted(saved), ["product", "sum"])
            self.assertEqual(saved["product"].tolist(), (a * a).tolist())
        self.json(*flags, "--save", "one.pb", code=2)
        self.json(*flags, "--save", "one.pb", "--outputs", "sum")
        self.json(*flags, "--expect", "sum=one.pb")
        self.json(*flags, "--expect", "all.npz")


class Pictures(CliTest):
    def picture_model(self, shape, dtype=TensorProto.FLOAT):
        return save_model(self.folder / "picture.onnx",
                          [helper.make_node("Identity", ["x"], ["y"])],
                          [port("x", shape, dtype)], [port("y", shape, dtype)])

    def pixels(self, model, path, *flags):
        output = self.json("run", model, "--input", path, "--print", "full", *flags)["outputs"][0]
        return numpy.array(output["values"], "float32").reshape(output["shape"])

    def setUp(self):
        super().setUp()
        self.rgb = numpy.random.default_rng(1).integers(0, 256, (4, 6, 3)).astype("uint8")
        self.path = png(self.folder / "p.png", self.rgb)

    def test_layouts(self):
        wanted = self.rgb.astype("float32") / 255
        got = self.pixels(self.picture_model([1, 3, 4, 6]), self.path)
        numpy.testing.assert_allclose(got[0], wanted.transpose(2, 0, 1), rtol=1e-6)
        got = self.pixels(self.picture_model(["N", "H", "W", 3]), self.path, "--layout", "nhwc")
        numpy.testing.assert_allclose(got[0], wanted, rtol=1e-6)
        got = self.pixels(self.picture_model([3, "H", "W"]), self.path)
        numpy.testing.assert_allclose(got, wanted.transpose(2, 0, 1), rtol=1e-6)

    def test_scale_mean_and_std(self):
        got = self.pixels(self.picture_model([1, 3, 4, 6]), self.path, "--scale", "0.5", "--mean",
                          "1,-2,3", "--std", "2,4,0.5")
        wanted = (self.rgb * 0.5 - [1, -2, 3]) / [2, 4, 0.5]
        numpy.testing.assert_allclose(got[0], wanted.transpose(2, 0, 1), rtol=1e-6)
        self.json("run", self.picture_model([1, 3, 4, 6]), "--input", self.path, "--mean", "1,2",
                  code=2)
        self.json("run", self.picture_model([1, 3, 4, 6]), "--input", self.path, "--std", "0", code=2)

    def test_integer_inputs_get_the_pixels(self):
        got = self.pixels(self.picture_model([1, 3, 4, 6], TensorProto.UINT8), self.path)
        self.assertEqual(got[0].tolist(), self.rgb.transpose(2, 0, 1).tolist())

    def test_stretching_keeps_the_mean_and_a_constant(self):
        constant = png(self.folder / "c.png", numpy.full((5, 7, 3), 51))
        for shape in ([1, 3, 2, 3], [1, 3, 9, 16]):
            got = self.pixels(self.picture_model(shape), constant)
            numpy.testing.assert_allclose(got, numpy.full(shape, 0.2), rtol=1e-5)
        got = self.pixels(self.picture_model([1, 3, 2, 3]), self.path)
        self.assertAlmostEqual(float(got.mean()), float(self.rgb.mean() / 255), delta=0.05)

    def test_doubling_a_row_interpolates_between_centres(self):
        row = png(self.folder / "r.png", numpy.array([[0, 100, 200, 40]]))
        got = self.pixels(self.picture_model([1, 1, 1, 8]), row, "--scale", "1")
        self.assertEqual(got.ravel().tolist(), [0, 25, 75, 125, 175, 160, 80, 40])

    def test_cropping_takes_the_middle(self):
        wide = numpy.zeros((2, 6), "uint8")
        wide[:, 2:4] = 200
        got = self.pixels(self.picture_model([1, 1, 2, 2]), png(self.folder / "w.png", wide),
                          "--fit", "crop", "--scale", "1")
        self.assertEqual(got.ravel().tolist(), [200] * 4)

    def test_other_formats_and_bad_files(self):
        (self.folder / "p.ppm").write_bytes(b"P6 6 4 255\n" + self.rgb.tobytes())
        got = self.pixels(self.picture_model([1, 3, 4, 6]), self.folder / "p.ppm", "--scale", "1")
        self.assertEqual(got[0].tolist(), self.rgb.transpose(2, 0, 1).tolist())
        (self.folder / "bad.png").write_bytes(self.path.read_bytes()[:60])
        self.json("run", self.picture_model([1, 3, 4, 6]), "--input", "bad.png", code=5)
        self.json("run", self.negation(), "--input", self.path, code=5)


if __name__ == "__main__":
    unittest.main()
