"""Files of tensors in Python: dicts in and out, by name, and what the engine says of bad ones."""

import gzip
import json
import os
import pickle
import struct
import tempfile
import unittest
import zipfile
import zlib
from random import Random

try:
    import numpy
except ImportError:
    numpy = None

import tiny


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "w.safetensors")

    def test_dicts_go_out_and_come_back(self):
        weights = {"fc.weight": tiny.tensor([[1.0, 2.0], [3.0, 4.0]]), "é": tiny.tensor([7, 8])}
        tiny.save(self.path, weights, {"format": "pt"})
        back = tiny.load(self.path)
        self.assertEqual({name: t.tolist() for name, t in back.items()},
                         {"fc.weight": [[1, 2], [3, 4]], "é": [7, 8]})
        self.assertEqual(back["é"].dtype, tiny.int64)

    def test_the_file_is_the_formats_own(self):
        header = {"__metadata__": {"k": "v"}, "x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
        text = json.dumps(header).encode()
        with open(self.path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + struct.pack("<f", 2.5))
        archive = tiny.Archive.load(tiny.default_context(), self.path)
        self.assertEqual((len(archive), list(archive), "x" in archive, "y" in archive),
                         (1, ["x"], True, False))
        self.assertEqual(archive["x"].item(), 2.5)
        self.assertEqual(json.loads(archive.info().text())["metadata"], {"k": "v"})
        archive["y"] = archive["x"] * 2
        archive.save(self.path)
        self.assertEqual(tiny.load(self.path)["y"].item(), 5)

    def test_one_tensor_is_loaded_without_a_name(self):
        x = tiny.tensor([1.0, 2.0])
        x.save(self.path, "x")
        self.assertEqual(tiny.Tensor.load(tiny.default_context(), self.path).tolist(), [1, 2])

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_npz(self):
        path = self.path.replace(".safetensors", ".npz")
        arrays = {kind: numpy.arange(12).reshape(3, 4).astype(kind) for kind in
                  "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 >f4 >i2".split()}
        arrays |= {"turned": numpy.asfortranarray(arrays["int32"]), "one": numpy.float32(2), "none": numpy.ones((0, 3))}
        for write in (numpy.savez, numpy.savez_compressed):
            write(path, **arrays)
            back = tiny.load(path)
            self.assertEqual(list(back), list(arrays))
            for name, array in arrays.items():
                self.assertEqual(back[name].dtype.name, array.dtype.name)
                numpy.testing.assert_array_equal(back[name].numpy(), array)
        tiny.save(path, back)
        with numpy.load(path) as theirs:
            for name, array in arrays.items():
                numpy.testing.assert_array_equal(theirs[name], array)
        with self.assertRaisesRegex(TypeError, "bfloat16"):
            tiny.save(path, {"x": tiny.tensor([1.0], "bfloat16")})
        for wrong, said in ((b"", "no .npy file"), (b"\x93NUMPY\1\0\x10\0" + b"x" * 20, "header"),
                            (b"\x93NUMPY\1\0\x3e\0{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }" + b" " * 6 + b"\n",
                             "bytes of elements, not 16")):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("a.npy", wrong)
            with self.assertRaisesRegex(ValueError, said):
                tiny.load(path)

    def test_what_is_wrong_is_said(self):
        with open(self.path, "wb") as file:
            file.write(b"\xff" * 20)
        with self.assertRaisesRegex(tiny.Error, "w.safetensors.*the header is to have"):
            tiny.load(self.path)
        tiny.save(self.path, {"a": tiny.tensor([1.0])})
        with self.assertRaisesRegex(tiny.Error, "\"b\"; known: \"a\""):
            tiny.Archive.load(tiny.default_context(), self.path)["b"]


def idx(shape, code, data):
    return struct.pack(f">HBB{len(shape)}I", 0, code, len(shape), *shape) + data


class Compressed(Files):
    """Against Python's own zlib: every level and strategy, several members, and what is broken."""

    def read(self, name, content):
        path = os.path.join(os.path.dirname(self.path), name)
        with open(path, "wb") as file:
            file.write(content)
        return tiny.load(path)[""]

    @staticmethod
    def bytes_of(tensor):
        data = bytearray(tensor.numel)
        tensor.read(data)
        return bytes(data)

    def data(self):
        random = Random(5)
        yield b""
        yield bytes(100000)
        yield bytes(random.randrange(256) for _ in range(70000))
        yield bytes(random.choice(b"abcdefgh   ") for _ in range(200000))
        yield b"".join(b"%d," % (i * i) for i in range(30000))

    def test_what_zlib_packs_is_unpacked(self):
        for data in self.data():
            for level in (0, 1, 4, 6, 9):
                for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE):
                    packer = zlib.compressobj(level, zlib.DEFLATED, 31, 8, strategy)
                    packed = packer.compress(idx([len(data)], 8, data)) + packer.flush()
                    self.assertEqual(self.bytes_of(self.read("a-idx1-ubyte.gz", packed)), data)

    def test_members_follow_one_another(self):
        whole = idx([6], 8, b"abcdef")
        packed = b"".join(gzip.compress(whole[i:i + 3]) for i in range(0, len(whole), 3)) + bytes(7)
        self.assertEqual(self.bytes_of(self.read("a.idx.gz", packed)), b"abcdef")
        named = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x02\x00xxname\0comment\0" + b"\0\0" + gzip.compress(whole, mtime=0)[10:]
        self.assertEqual(self.bytes_of((self.read("a.idx.gz", named))), b"abcdef")

    def test_what_is_cut_or_changed_is_refused_as_zlib_does(self):
        packed = gzip.compress(idx([400], 8, bytes(Random(1).choice(b"abcde") for _ in range(400))), mtime=0)
        refused = 0
        for at in range(len(packed)):
            for broken in (packed[:at], packed[:at] + bytes([packed[at] ^ 1 << at % 8]) + packed[at + 1:]):
                try:
                    wanted = gzip.decompress(broken)
                except (EOFError, OSError, zlib.error):
                    wanted = None
                with self.subTest(at=at):
                    if wanted is None or len(wanted) != 408:
                        refused += 1
                        with self.assertRaises(tiny.Error) as error:
                            self.read("a.idx.gz", broken)
                        self.assertEqual(error.exception.name, "INVALID_MODEL")
                    else:
                        self.assertEqual(self.bytes_of(self.read("a.idx.gz", broken)), wanted[8:])
        self.assertGreater(refused, len(packed))

    def test_idx_has_every_type(self):
        for code, letter, dtype in ((8, "B", "uint8"), (9, "b", "int8"), (11, "h", "int16"), (12, "i", "int32"),
                                    (13, "f", "float32"), (14, "d", "float64")):
            values = [1, 2, -3, 4, 5, -6] if letter != "B" else [1, 2, 253, 4, 5, 250]
            tensor = self.read("t10k-images-idx3-ubyte", idx([2, 3], code, struct.pack(">6" + letter, *values)))
            self.assertEqual((tensor.dtype, tensor.tolist()), (getattr(tiny, dtype), [values[:3], values[3:]]))
        for content, message in ((b"\0\0\x08", "3 bytes"), (b"\0\0\x0a\x01", "element type 10"),
                                 (b"\1\0\x08\x01", "begin with 0 0"), (idx([3], 8, b"ab"), "needs 3 bytes"),
                                 (idx([2], 8, b"abc"), "needs 2 bytes"), (b"\0\0\x08\x02\0\0\0\1", "sizes of 2 axes"),
                                 (idx([1 << 31] * 3, 14, b""), "")):
            with self.assertRaisesRegex(tiny.Error, message):
                self.read("a.idx", content)


def cifar(count):
    """A batch of CIFAR-10 as Python 2 wrote it: opcode for opcode."""
    data = bytes(Random(3).randrange(256) for _ in range(count * 3072))
    text = lambda words: b"U" + bytes([len(words)]) + words  # noqa: E731
    array = (b"cnumpy.core.multiarray\n_reconstruct\nq\x06cnumpy\nndarray\nq\x07K\x00\x85q\x08" + text(b"b") +
             b"q\x09\x87q\x0aRq\x0b(K\x01K" + bytes([count]) + b"M\x00\x0c\x86q\x0ccnumpy\ndtype\nq\x0d" + text(b"u1") +
             b"q\x0eK\x00K\x01\x87q\x0fRq\x10(K\x03" + text(b"|") + b"q\x11NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x12b"
             b"\x89T" + struct.pack("<I", len(data)) + data + b"q\x13tq\x14b")
    names = b"](" + b"".join(text(b"%d.png" % i) for i in range(count)) + b"e"
    labels = b"]q\x05(" + b"".join(b"K" + bytes([i]) for i in range(count)) + b"e"
    return (b"\x80\x02}q\x01(" + text(b"batch_label") + b"q\x02" + text(b"training batch 1 of 5") + b"q\x03" + text(b"labels") +
            b"q\x04" + labels + text(b"data") + array + text(b"filenames") + names + b"u."), data


class DataSets(Files):
    def load(self, name, content):
        path = os.path.join(os.path.dirname(self.path), name)
        with open(path, "wb") as file:
            file.write(content)
        return tiny.Archive.load(tiny.default_context(), path)

    def test_cifar_of_python(self):
        content, data = cifar(4)
        for name, packed in (("data_batch_1", content), ("test_batch.gz", gzip.compress(content))):
            archive = self.load(name, packed)
            self.assertEqual(list(archive), ["labels", "data"])
            self.assertEqual(archive.metadata("batch_label"), "training batch 1 of 5")
            self.assertEqual(archive["labels"].tolist(), [0, 1, 2, 3])
            self.assertEqual((archive["data"].shape, archive["data"].dtype), ((4, 3072), tiny.uint8))
            self.assertEqual(Compressed.bytes_of(archive["data"]), data)

    def test_cifar_in_binary(self):
        pictures = [bytes([i + 1]) * 1024 + bytes([i + 2]) * 1024 + bytes([i + 3]) * 1024 for i in range(3)]
        archive = self.load("data_batch_1.bin", b"".join(bytes([9 - i]) + p for i, p in enumerate(pictures)))
        self.assertEqual((archive["data"].shape, archive["labels"].tolist()), ((3, 3, 32, 32), [9, 8, 7]))
        self.assertEqual(Compressed.bytes_of(archive["data"]), b"".join(pictures))
        archive = self.load("train.bin", b"".join(bytes([i, 40 + i]) + p for i, p in enumerate(pictures)))
        self.assertEqual((archive["coarse_labels"].tolist(), archive["fine_labels"].tolist()), ([0, 1, 2], [40, 41, 42]))
        for size in (0, 3075, 3073 * 3074):
            with self.assertRaisesRegex(tiny.Error, "CIFAR"):
                self.load("x.bin", bytes(size))

    def test_pickles_of_today(self):
        state = {"n": 7, "labels": [1, -2, 300, 70000, -(1 << 40)], "nothing": None, "more": (1.5, True)}
        for protocol in (2, 3, 4, 5):
            archive = self.load("state.pkl", pickle.dumps({**state, b"text": "é"}, protocol))
            self.assertEqual((list(archive), archive.metadata("text")), (["labels"], "é"))
            self.assertEqual(archive["labels"].tolist(), state["labels"])
            if numpy is None:
                continue
            arrays = {name: numpy.arange(6).reshape(2, 3).astype(name) for name in
                      ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64")}
            arrays["empty"] = numpy.zeros((0, 4), "float32")
            archive = self.load("arrays", pickle.dumps(arrays, protocol))
            for name, array in arrays.items():
                self.assertEqual((name, archive[name].tolist()), (name, array.tolist()))
                self.assertEqual(archive[name].shape, array.shape)
            self.assertEqual(self.load("a.pickle", pickle.dumps(arrays["int32"], protocol))[""].tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_what_could_be_executed_is_refused_by_name(self):
        marker = os.path.join(os.path.dirname(self.path), "executed")

        class Harmful:
            def __reduce__(self):
                return os.system, (f"touch {marker}",)

        for protocol in (2, 4):
            with self.assertRaisesRegex(tiny.Error, "the name \"posix system\"") as refused:
                self.load("data_batch_1", pickle.dumps({"a": Harmful()}, protocol))
            self.assertEqual(refused.exception.name, "UNSUPPORTED")
        self.assertFalse(os.path.exists(marker))
        for content, message in ((b"\x80\x02I1\n.", "the operation 73"), (b"\x80\x02K\x01.", "neither a dict nor an array"),
                                 (b"\x80\x09N.", "protocol 9"), (b"\x80\x02cnumpy\nndarray\n).", "2 values are left"),
                                 (b"\x80\x02cnumpy\nndarray\n)R.", "a call of"), (b"", "protocol 2"), (b"\x80\x02h\x01.", "place"),
                                 (b"\x80\x02(.", "neither a dict"), (b"\x80\x02}(K\x01u.", "takes none"),
                                 (pickle.dumps(1 << 100, 2), "integer of 13 bytes")):
            with self.assertRaisesRegex(tiny.Error, message):
                self.load("x.pkl", content)

    def test_pickles_that_are_cut_or_changed_do_no_harm(self):
        content, _ = cifar(1)
        head = content[:400]
        for at in range(len(head)):
            for broken in (content[:at], content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1:]):
                try:
                    self.load("data_batch_1", broken)
                except tiny.Error as error:
                    self.assertIn(error.name, ("INVALID_MODEL", "UNSUPPORTED", "LIMIT"))


class Layer:
    def __init__(self, value):
        self.weight, self.bias, self.size = tiny.tensor([[value, value]]), None, 2


class Network:
    def __init__(self, value):
        self.layers = [Layer(value), Layer(value + 1)]
        self.head = {"out": Layer(value + 2)}
        self.tied = self.layers[0].weight


class States(Files):
    def test_tensors_have_dotted_names(self):
        network = Network(1.0)
        found = tiny.state.get_state_dict(network)
        self.assertEqual(list(found), ["layers.0.weight", "layers.1.weight", "head.out.weight", "tied"])
        self.assertIs(found["tied"], network.layers[0].weight)
        self.assertEqual(len(tiny.state.get_parameters(network)), 3)
        network.itself, network.kind = [network], tiny.Dtype.FLOAT32
        self.assertEqual(list(tiny.state.get_state_dict(network)), list(found))

    def test_a_state_goes_to_a_file_and_back(self):
        network, other = Network(1.0), Network(5.0)
        tiny.state.safe_save(tiny.state.get_state_dict(network), self.path)
        kept = other.head["out"].weight
        tiny.state.load_state_dict(other, self.path)
        self.assertEqual(kept.tolist(), [[3, 3]])
        tiny.state.load_state_dict(network, tiny.state.get_state_dict(Network(9.0)))
        self.assertEqual(network.tied.tolist(), [[9, 9]])

    def test_what_does_not_fit_is_listed(self):
        layer = Layer(1.0)
        tiny.save(self.path, {"weight": tiny.tensor([[2.0, 2.0]]), "more": tiny.tensor([1.0])})
        with self.assertRaisesRegex(tiny.Error, "target lacks \"more\""):
            tiny.state.load_state_dict(layer, tiny.load(self.path))
        tiny.state.load_state_dict(layer, tiny.state.safe_load(self.path), strict=False)
        self.assertEqual(layer.weight.tolist(), [[2, 2]])
        archive = tiny.Archive.load(tiny.default_context(), self.path)
        del archive["weight"]
        self.assertEqual(list(archive), ["more"])


if __name__ == "__main__":
    unittest.main()
