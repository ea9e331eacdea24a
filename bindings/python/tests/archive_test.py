"""Files of tensors in Python: dicts in and out, by name, and what the engine says of bad ones."""

import gzip
import json
import os
import struct
import tempfile
import unittest
import zlib
from random import Random

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
