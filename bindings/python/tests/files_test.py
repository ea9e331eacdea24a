"""Files of weights: .safetensors, torch.save's formats and .gguf, as others write them, and what is broken."""

import io
import json
import os
import pickle
import struct
import unittest
from random import Random

import tiny
from support import Folder
from tiny import Tensor, nn
from tiny.nn import gguf

try:
    import numpy
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipIf(torch is None, "PyTorch is not here")


def halves(*numbers):
    return struct.pack(f"<{len(numbers)}e", *numbers)


class Safetensors(Folder):
    def test_out_and_back(self):
        path = self.folder / "any ending"
        state = {"é": Tensor([1.0, 2.0]), "bytes": Tensor([[1, 2, 3]]).cast("int8"), "n": Tensor(5), "none": Tensor([])}
        nn.state.safe_save(state, path, {"format": "pt"})
        back = nn.state.safe_load(path)
        self.assertEqual({key: one.tolist() for key, one in back.items()}, {key: one.tolist() for key, one in state.items()})
        self.assertEqual({key: one.dtype for key, one in back.items()}, {key: one.dtype for key, one in state.items()})
        t, begin, header = nn.state.safe_load_metadata(path)
        self.assertEqual((begin % 8, header["__metadata__"], t.shape[0]), (0, {"format": "pt"}, begin + 8 + 8 + 3))
        content = path.read_bytes()
        back["é"].assign(back["é"] * 3).realize()  # a value of its own
        self.assertEqual((back["é"].tolist(), path.read_bytes()), ([3, 6], content))
        nn.state.safe_save(back, path)  # over the file that they are in
        self.assertEqual(nn.state.safe_load(Tensor(path.read_bytes()))["é"].tolist(), [3, 6])
        self.assertEqual(os.listdir(self.folder), ["any ending"])

    @needs_torch
    def test_with_the_library_of_the_format(self):
        try:
            from safetensors.torch import load_file, save_file
        except ImportError:
            self.skipTest("the package safetensors is not here")
        state = {"w": torch.randn(3, 4), "b": torch.arange(17, dtype=torch.uint8), "i": torch.arange(5),
                 "h": torch.randn(4).bfloat16(), "t": torch.tensor([True, False])}
        save_file(state, self.folder / "theirs")
        mine = nn.state.safe_load(self.folder / "theirs")
        nn.state.safe_save(mine, self.folder / "mine")
        self.assertEqual((self.folder / "mine").read_bytes(), (self.folder / "theirs").read_bytes())
        for key, one in load_file(self.folder / "mine").items():
            self.assertEqual(mine[key].float().tolist(), one.float().tolist())
        save_file({"e": torch.randn(9).to(torch.float8_e5m2), "f": torch.randn(9).to(torch.float8_e4m3fn)},
                  self.folder / "theirs")
        mine = nn.state.safe_load(self.folder / "theirs")
        self.assertEqual([mine[key].dtype for key in "ef"], ["float8_e5m2", "float8_e4m3fn"])
        nn.state.safe_save(mine, self.folder / "mine")
        for key, one in load_file(self.folder / "mine").items():
            self.assertEqual((mine[key].dtype, mine[key].tolist()), (one.dtype, one.float().tolist()))

    def test_what_is_wrong_is_said(self):
        def of(header, data=b"", length=None):
            text = json.dumps(header).encode() if not isinstance(header, bytes) else header
            return Tensor(struct.pack("<Q", len(text) if length is None else length) + text + data)
        one = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        for source, text in (
                (of({}, length=1 << 60), "a header of 1152921504606846976 bytes"), (of(b"{"), "is no JSON"), (of([]), "no JSON"),
                (of(b"[" * 100000), "no JSON"), (of({"a": 3}), "tensor 'a'"), (of({"a": {**one, "shape": [-1]}}), "a shape"),
                (of({"a": {**one, "dtype": "F31"}}, bytes(8)), "known: BOOL"), (of({"a": one}, bytes(4)), "of 4"),
                (of({"a": {**one, "shape": [1 << 62]}}, bytes(8)), "are not bytes"), (of({"a": one}, bytes(9)), "1 bytes behind"),
                (of({"a": one, "b": one}, bytes(8)), "begins at byte 0"), (Tensor(b"short"), "in none of its 5")):
            with self.assertRaisesRegex(ValueError, text):
                nn.state.safe_load(source)
        with self.assertRaisesRegex(ValueError, "none is __metadata__"):
            nn.state.safe_save({"__metadata__": Tensor([1.0])}, self.folder / "a")


@needs_torch
class Torch(Folder):
    def saved(self, value, **options):
        stream = io.BytesIO()
        torch.save(value, stream, **options)
        return stream.getvalue()

    def test_the_format_before_the_zip(self):
        base = torch.arange(20.0)
        kept = {"a": base[3:9].reshape(2, 3), "b": base, "t": torch.randn(3, 4).T, "n": [1, {"x": torch.ones(2).half()}]}
        content = self.saved(kept, _use_new_zipfile_serialization=False)
        for source in (Tensor(content), self.file("old.pt", content)):
            found = nn.state.torch_load(source)
            for key in "abt":
                self.assertEqual(found[key].tolist(), kept[key].tolist())
            self.assertEqual(found["n"][1]["x"].tolist(), [1, 1])

    def test_the_tar_before_that(self):
        """By the format's own description: nothing writes it any more."""
        class Named:  # what pickles name, without its being there
            def __init__(self, module, name):
                self.module, self.name = module, name

        class Pickler(pickle._Pickler):
            def save(self, value, *rest, **keywords):
                if isinstance(value, Named):
                    return self.write(f"c{value.module}\n{value.name}\n".encode())
                return super().save(value, *rest, **keywords)

        class Tensors(Pickler):
            def persistent_id(self, value):
                return value[1] if isinstance(value, tuple) and value[:1] == ("key",) else None

        def pickled(*values, kind=Pickler):
            stream = io.BytesIO()
            for value in values:
                kind(stream, 2).dump(value)
            return stream.getvalue()
        numbers = struct.pack("<6f", *range(6))
        kind = Named("torch", "FloatStorage")
        storages = pickled(1, ("s", "cpu", kind)) + struct.pack("<q", 6) + numbers
        tensors = (pickled(2, ("k", "s", Named("torch", "FloatTensor"))).replace(b"ctorch\nFloatTensor\n", b"N") +
                   struct.pack("<ii2q2qq", 2, 0, 2, 2, 3, 1, 1) +
                   pickled(("l", "s", None)) + struct.pack("<iiqqq", 1, 0, 3, 1, 3))
        import tarfile
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, content in (("storages", storages), ("tensors", tensors),
                                  ("pickle", pickled({"w": ("key", "k"), "b": ("key", "l")}, kind=Tensors))):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        found = nn.state.torch_load(Tensor(stream.getvalue()))
        self.assertEqual((found["w"].tolist(), found["b"].tolist()), ([[1, 2], [4, 5]], [3, 4, 5]))

    def test_what_a_file_shares_stays_shared_and_small(self):
        value = [torch.ones(1)]
        for _ in range(60):
            value = [value, value]
        found = nn.state.torch_load(Tensor(self.saved(value)))
        self.assertIs(found[0], found[1])

    def test_pickles_that_ask_for_more(self):
        endless = []
        endless.append(endless)
        for content, text in ((self.saved(endless), "has itself in it"), (self.saved({(1, 2): 3}), "key of type tuple"),
                              (self.saved(range(3)), "wants __builtin__.x?range"), (self.saved(bytearray(3)), "wants __builtin__.bytearray")):
            with self.assertRaisesRegex(ValueError, text):
                nn.state.torch_load(Tensor(content))


def a_gguf(tensors, pairs=(), version=3):
    """A file of tensors (name, sizes, type, bytes) and values (key, type, bytes)."""
    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()
    out, at = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)), 0
    for key, kind, content in pairs:
        out += text(key) + struct.pack("<I", kind) + content
    for name, sizes, kind, content in tensors:
        out += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *reversed(sizes), kind, at)
        at += -(-len(content) // 32) * 32
    out += bytes(-len(out) % 32)
    return out + b"".join(content + bytes(-len(content) % 32) for *_, content in tensors)


class Gguf(Folder):
    def test_a_file(self):
        weights = struct.pack("<6f", *range(6))
        block = halves(0.5) + bytes(range(1, 33))
        pairs = [("name", 8, struct.pack("<Q", 4) + b"tiny"), ("count", 4, struct.pack("<I", 7)),
                 ("list", 9, struct.pack("<IQ3h", 3, 3, -1, 2, 3)), ("yes", 7, b"\1")]
        content = a_gguf([("w", (2, 3), 0, weights), ("q", (1, 32), 8, block)], pairs)
        for source in (Tensor(content), self.file("a.gguf", content)):
            said, found = gguf.gguf_load(source)
            self.assertEqual(said, {"name": "tiny", "count": 7, "list": [-1, 2, 3], "yes": True})
            self.assertEqual(found["w"].tolist(), [[0, 1, 2], [3, 4, 5]])
            self.assertEqual((found["q"].shape, found["q"].tolist()[0]), ((1, 32), [0.5 * i for i in range(1, 33)]))
        self.assertEqual((found["q"] @ Tensor([1.0] * 32)).item(), 0.5 * 32 * 33 / 2)

    def test_several_files(self):
        def part(name, number):
            pairs = [("split.count", 4, struct.pack("<I", 2)), ("split.no", 4, struct.pack("<I", number))]
            return a_gguf([(name, (1,), 0, struct.pack("<f", number))], pairs)
        path = self.file("m-00001-of-00002.gguf", part("a", 0))
        with self.assertRaises(FileNotFoundError):
            gguf.gguf_load(path)
        self.file("m-00002-of-00002.gguf", part("b", 1))
        self.assertEqual({key: one.item() for key, one in gguf.gguf_load(path)[1].items()}, {"a": 0, "b": 1})
        with self.assertRaisesRegex(ValueError, "a path is wanted"):
            gguf.gguf_load(Tensor(part("a", 0)))
        with self.assertRaisesRegex(ValueError, "the path of the first one is wanted"):
            gguf.gguf_load(self.file("n.gguf", part("a", 0)))

    def test_formats_by_their_definitions(self):
        """A block of each, whose fields are worked out one by one here."""
        low, high = [i % 16 for i in range(16)], [15 - i for i in range(16)]
        nibbles = bytes(a | b << 4 for a, b in zip(low, high))
        fifth = [i % 3 == 0 for i in range(32)]
        bits = sum(one << i for i, one in enumerate(fifth)).to_bytes(4, "little")
        wide = [value + 16 * one for value, one in zip(low + high, fifth)]
        four = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
        signs = bytes(range(16))
        for kind, block, want in (
                (2, halves(0.5) + nibbles, [0.5 * (q - 8) for q in low + high]),
                (3, halves(0.5, -3) + nibbles, [0.5 * q - 3 for q in low + high]),
                (6, halves(2) + bits + nibbles, [2.0 * (q - 16) for q in wide]),
                (7, halves(2, 1) + bits + nibbles, [2.0 * q + 1 for q in wide]),
                (8, halves(2) + bytes((-i) % 256 for i in range(32)), [-2.0 * i for i in range(32)]),
                (39, b"\x81" + nibbles, [2.0 * four[q] for q in low + high]),
                (41, halves(3) + signs, [3.0 if signs[i // 8] >> i % 8 & 1 else -3.0 for i in range(128)])):
            made = gguf.ggml_data_to_tensor(Tensor(block * 2), 2 * len(want), kind)
            self.assertEqual(made.tolist(), want * 2, kind)

    def test_the_larger_blocks_by_their_definitions(self):
        random = Random(4)
        for kind, size, value in ((12, 144, self.q4_k), (13, 176, self.q5_k), (14, 210, self.q6_k), (23, 136, self.iq4_xs)):
            block = bytearray(random.randbytes(size))
            block[:4] = halves(0.25, 0.5)
            if kind == 14:
                block[-2:] = halves(0.25)
            made = gguf.ggml_data_to_tensor(Tensor(bytes(block)), 256, kind).tolist()
            self.assertEqual(made, [value(block, i) for i in range(256)], kind)

    @staticmethod
    def k_scale(b, group):
        s = b[4:16]
        if group < 4:
            return (s[group] & 63) * 0.25, (s[group + 4] & 63) * 0.5
        return ((s[group + 4] & 15 | s[group - 4] >> 6 << 4) * 0.25, (s[group + 4] >> 4 | s[group] >> 6 << 4) * 0.5)

    def q4_k(self, b, i):
        scale, least = self.k_scale(b, i // 32)
        return scale * (b[16 + i // 64 * 32 + i % 32] >> i // 32 % 2 * 4 & 15) - least

    def q5_k(self, b, i):
        scale, least = self.k_scale(b, i // 32)
        q = b[48 + i // 64 * 32 + i % 32] >> i // 32 % 2 * 4 & 15 | (b[16 + i % 32] >> i // 32 & 1) << 4
        return scale * q - least

    @staticmethod
    def q6_k(b, i):
        half, place = divmod(i, 128)
        low = b[half * 64 + place % 64] >> place // 64 * 4 & 15
        high = b[128 + half * 32 + place % 32] >> place // 32 * 2 & 3
        return 0.25 * struct.unpack("b", b[192 + i // 16:193 + i // 16])[0] * ((low | high << 4) - 32)

    @staticmethod
    def iq4_xs(b, i):
        group, place = divmod(i, 32)
        scale = b[4 + group // 2] >> group % 2 * 4 & 15 | (int.from_bytes(b[2:4], "little") >> 2 * group & 3) << 4
        levels = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
        return 0.25 * (scale - 32) * levels[b[8 + group * 16 + place % 16] >> place // 16 * 4 & 15]

    def test_what_is_wrong_is_said(self):
        weights = struct.pack("<2f", 1, 2)
        for content, text in ((b"GGUX" + bytes(40), "begin with GGUF"), (a_gguf([], version=9), "version 9"),
                              (a_gguf([("w", (3,), 0, weights)])[:-24], "12 bytes from byte"),
                              (a_gguf([("w", (2,), 99, weights)]), "type 99; known"),
                              (a_gguf([("w", (3,), 2, weights)]), "3 elements are not whole blocks of 32"),
                              (a_gguf([("w", (1 << 40, 1 << 40), 0, weights)]), "bytes from byte"),
                              (a_gguf([], [("k", 9, struct.pack("<IQ", 8, 1 << 60))]), "an array of 1152921504606846976"),
                              (a_gguf([], [("k", 9, struct.pack("<IQ", 9, 1) * 20)]), "in 8 arrays"),
                              (a_gguf([], [("general.alignment", 4, bytes(4))]), "general.alignment 0"),
                              (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "it ends before"), (b"", "it ends before")):
            with self.assertRaisesRegex(ValueError, "gguf_load: the tensor: .*" + text):
                gguf.gguf_load(Tensor(content) if content else Tensor([]).cast("uint8"))


class Broken(Folder):
    """Files in which some bytes are others, or which end too early: an error, or some value, and never more."""

    def mutations(self, content, count, random):
        for _ in range(count):
            changed = bytearray(content)
            for _ in range(random.choice((1, 1, 2, 8))):
                at = random.randrange(min(len(changed), random.choice((64, 512, 1 << 20))))
                changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            yield bytes(changed[:random.randrange(len(changed))]) if random.random() < 0.2 else bytes(changed)

    def survive(self, load, content, allowed, count=300):
        random, seen = Random(11), 0
        for changed in self.mutations(content, count, random):
            try:
                found = load(Tensor(changed) if changed else Tensor([]).cast("uint8"))
                for one in found.values() if isinstance(found, dict) else ():
                    if isinstance(one, Tensor) and one.numel < 10000:
                        one.tolist()
            except allowed as error:
                self.assertTrue(str(error))
                seen += 1
        self.assertGreater(seen, 20)

    def test_safetensors(self):
        path = self.folder / "a"
        nn.state.safe_save({"a": Tensor([[1.0, 2.0]]), "b": Tensor([1, 2, 3])}, path)
        self.survive(nn.state.safe_load, path.read_bytes(), ValueError)

    def test_gguf(self):
        content = a_gguf([("w", (2, 3), 0, bytes(24)), ("q", (1, 32), 8, bytes(34))],
                         [("name", 8, struct.pack("<Q", 4) + b"tiny"), ("list", 9, struct.pack("<IQ3h", 3, 3, 1, 2, 3))])
        self.survive(lambda t: gguf.gguf_load(t)[1], content, ValueError)

    @needs_torch
    def test_torch(self):
        for zipped in (True, False):
            stream = io.BytesIO()
            torch.save({"w": torch.randn(3, 4), "t": torch.randn(4, 3).T, "n": {"x": 1}}, stream,
                       _use_new_zipfile_serialization=zipped)
            self.survive(nn.state.torch_load, stream.getvalue(), ValueError)

    def test_archives(self):
        import tarfile
        import zipfile
        stream, other = io.BytesIO(), io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            info = tarfile.TarInfo("a")
            info.size = 700
            archive.addfile(info, io.BytesIO(bytes(700)))
        with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", bytes(700))
        self.survive(nn.state.tar_extract, stream.getvalue()[:2048], (tarfile.TarError, ValueError))
        self.survive(nn.state.zip_extract, other.getvalue(), (zipfile.BadZipFile, NotImplementedError, ValueError))


if __name__ == "__main__":
    unittest.main()
