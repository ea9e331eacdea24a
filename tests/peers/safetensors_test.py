"""Files of tensors and the format's own library: what one writes the other reads, every dtype of both."""

import os
import sys
import tempfile
import unittest

try:
    import ml_dtypes
    import numpy as np
    import safetensors.numpy
    from safetensors import SafetensorError, safe_open
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import tiny

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64"]


def arrays():
    """Some of every dtype, without axes and without elements too."""
    rng = np.random.default_rng(7)
    made = {"scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.int16)}
    for dtype in DTYPES:
        made[f"layer.{dtype}"] = (rng.normal(size=(3, 5)) * 9).astype(dtype)
    return made


class Safetensors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "w.safetensors")

    def same(self, ours, theirs):
        self.assertEqual(set(ours), set(theirs))
        for name, array in theirs.items():
            self.assertEqual((name, ours[name].dtype, ours[name].shape), (name, array.dtype, array.shape))
            self.assertEqual(ours[name].tobytes(), array.tobytes(), name)

    def test_what_the_library_writes_is_read(self):
        theirs = arrays()
        safetensors.numpy.save_file(theirs, self.path, {"format": "np", "é": "ü\n\"\\"})
        self.same({name: t.numpy() for name, t in tiny.load(self.path).items()}, theirs)
        archive = tiny.Archive.load(tiny.default_context(), self.path)
        self.assertEqual(archive.metadata("é"), "ü\n\"\\")

    def test_what_is_written_the_library_reads(self):
        ours = arrays()
        tiny.save(self.path, {name: tiny.tensor(array) for name, array in ours.items()}, {"é": "ü\n"})
        self.same(ours, safetensors.numpy.load_file(self.path))
        with safe_open(self.path, "np") as file:
            self.assertEqual(file.metadata(), {"é": "ü\n"})

    def test_bfloat16_both_ways(self):
        wide = np.arange(-4, 4, dtype=np.float32)
        tiny.save(self.path, {"b": tiny.tensor(wide).cast(tiny.bfloat16)})
        theirs = safetensors.numpy.load_file(self.path)["b"]
        self.assertEqual(theirs.dtype, ml_dtypes.bfloat16)
        self.assertEqual(theirs.astype(np.float32).tolist(), wide.tolist())
        safetensors.numpy.save_file({"b": theirs}, self.path)
        self.assertEqual(tiny.load(self.path)["b"].cast(tiny.float32).tolist(), wide.tolist())

    def test_both_refuse_the_same_files(self):
        """Headers with one mistake each: neither library reads any of them."""
        good = '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        a = good[1:-1]
        for header, data in [
                ("", 0), ("{", 8), (good, 7), (good, 9), (good.replace("8", "9"), 9),
                (good.replace("[0,8]", "[4,12]"), 12), (good.replace("[0,8]", "[8,0]"), 8),
                (good.replace("[0,8]", "[-8,0]"), 8), (good.replace("F32", "F33"), 8),
                ("{" + a + ',"b":' + a[4:] + "}", 8),  # two in one place
                (good.replace('"dtype":"F32",', ""), 8), (good.replace("[2]", "[2.5]"), 8),
                (good.replace("[2]", "[18446744073709551615,2]"), 8), (good + "x", 8),
                ('{"__metadata__":{"k":1},' + a + "}", 8)]:
            text = header.encode()
            with open(self.path, "wb") as file:
                file.write(len(text).to_bytes(8, "little") + text + bytes(data))
            with self.subTest(header=header, data=data):
                with self.assertRaises(SafetensorError):
                    safetensors.numpy.load_file(self.path)
                with self.assertRaises(tiny.Error) as refused:
                    tiny.load(self.path)["a"]
                self.assertIn(refused.exception.name, ("INVALID_MODEL", "LIMIT", "UNSUPPORTED"))
        for bytes_ in (b"", b"\x01", b"\xff" * 8, b"\xff" * 7 + b"\x7f" + b"{}"):
            with open(self.path, "wb") as file:
                file.write(bytes_)
            with self.assertRaises(SafetensorError):
                safetensors.numpy.load_file(self.path)
            with self.assertRaises(tiny.Error):
                tiny.load(self.path)

    def test_a_state_goes_through_the_library(self):
        weight = tiny.tensor(np.zeros((2, 3), np.float32))
        state = tiny.Archive.create(tiny.default_context())
        state["fc.weight"] = weight
        safetensors.numpy.save_file({"fc.weight": np.full((2, 3), 3.5, np.float16)}, self.path)
        state.assign(tiny.Archive.load(tiny.default_context(), self.path))
        self.assertEqual(weight.tolist(), [[3.5] * 3] * 2)


if __name__ == "__main__":
    unittest.main()
