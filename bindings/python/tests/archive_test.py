"""Files of tensors in Python: dicts in and out, by name, and what the engine says of bad ones."""

import json
import os
import struct
import tempfile
import unittest

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
