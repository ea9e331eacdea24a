"""Pictures made into tensors by presets, bit for bit as Pillow and torchvision make them, and each step told."""

import hashlib
import unittest

import numpy
from support import CliTest, TensorProto, helper, png, port, save_model

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

# The first digits of SHA-256 of the levels that Pillow 13 makes of pattern(height, width): imagenet is
# torchvision's Resize and CenterCrop, yolo the letterbox around Image.resize, all with BILINEAR.
PILLOW = {
    (300, 451): {("imagenet", 224): "fa751989862fc59f", ("yolo", 640): "742cc632cc706bec",
                 ("imagenet", 299): "4d35a9c2ca294142"},
    (451, 300): {("imagenet", 224): "63801d60e9e50b63", ("yolo", 640): "5360a077c9f4c098",
                 ("imagenet", 299): "36a588967b8bccfa"},
    (30, 45): {("imagenet", 224): "fe99d6f4bdc22c96", ("yolo", 640): "5d9828b5f1b32f53",
               ("imagenet", 299): "9da93ab590346e2e"},
    (256, 256): {("imagenet", 224): "47c7ff24f35ed682", ("yolo", 640): "02c4c2bc598f528e",
                 ("imagenet", 299): "52408f703d3d208f"},
}


def pattern(height, width):
    y, x = numpy.mgrid[0:height, 0:width]
    return numpy.stack([(x * 7 + y * 3) % 256, (x * x + y * 5) % 256, (x * 3 + y * y) % 256],
                       -1).astype("uint8")


class Presets(CliTest):
    def identity(self, shape, dtype=TensorProto.FLOAT):
        return save_model(self.folder / "identity.onnx", [helper.make_node("Identity", ["x"], ["y"])],
                          [port("x", shape, dtype)], [port("y", shape, dtype)])

    def made(self, shape, path, *flags, dtype=TensorProto.FLOAT):
        """The tensor, and what is told of it."""
        result = self.json("run", self.identity(shape, dtype), "--input", path, "--save",
                           self.folder / "y.npy", *flags)
        return numpy.load(self.folder / "y.npy"), result["inputs"][0]["picture"]

    def test_levels_are_pillows(self):
        for size, wanted in PILLOW.items():
            path = png(self.folder / "p.png", pattern(*size))
            for (preset, side), digest in wanted.items():
                with self.subTest(size=size, preset=preset, side=side):
                    got, _ = self.made([1, 3, side, side], path, "--preset", preset,
                                       dtype=TensorProto.UINT8)
                    levels = numpy.ascontiguousarray(got[0].transpose(1, 2, 0))
                    self.assertEqual(hashlib.sha256(levels.tobytes()).hexdigest()[:16], digest)

    def test_imagenet_is_normalised(self):
        path = png(self.folder / "p.png", pattern(300, 451))
        levels, _ = self.made([1, 3, 224, 224], path, "--preset", "imagenet", dtype=TensorProto.UINT8)
        got, told = self.made([1, 3, "H", "W"], path, "--preset", "imagenet")
        wanted = ((levels[0].transpose(1, 2, 0) / 255 - MEAN) / STD).transpose(2, 0, 1)
        numpy.testing.assert_allclose(got[0], wanted, rtol=1e-5, atol=1e-6)
        self.assertEqual({key: told[key] for key in ("preset", "size", "channels", "resized", "placed_at",
                                                     "canvas", "fill", "mean", "std", "layout")},
                         {"preset": "imagenet", "size": [451, 300], "channels": 3, "resized": [384, 256],
                          "placed_at": [-80, -16], "canvas": [224, 224], "fill": None, "mean": MEAN,
                          "std": STD, "layout": "nchw"})
        self.assertAlmostEqual(told["scale"], 1 / 255)

    def test_yolo_is_a_letterbox_of_grey(self):
        path = png(self.folder / "p.png", pattern(300, 450))
        got, told = self.made(["N", 3, "H", "W"], path, "--preset", "yolo")
        self.assertEqual(got.shape, (1, 3, 640, 640))
        numpy.testing.assert_allclose(got[0, :, :106], 114 / 255, rtol=1e-6)
        numpy.testing.assert_allclose(got[0, :, -107:], 114 / 255, rtol=1e-6)
        self.assertGreater(got[0, :, 106:-107].std(), 0.1)
        self.assertEqual((told["resized"], told["placed_at"], told["fill"]), ([640, 427], [0, 106], 114))

    def test_own_flags_go_before_the_preset(self):
        path = png(self.folder / "p.png", pattern(40, 60))
        got, told = self.made([1, 3, 20, 20], path, "--preset", "imagenet", "--mean", "0", "--std", "2",
                              "--scale", "1", "--fit", "stretch")
        self.assertEqual((told["resized"], told["mean"], told["std"]), ([20, 20], [0], [2]))
        self.assertGreater(got.max(), 100)
        _, told = self.made([1, 3, 20, 20], path, "--preset", "imagenet", "--resize", "30")
        self.assertEqual((told["resized"], told["placed_at"]), ([45, 30], [-12, -5]))
        _, told = self.made([1, 3, 20, 40], path, "--fit", "letterbox")
        self.assertEqual((told["resized"], told["placed_at"], told["preset"]), ([30, 20], [5, 0], None))

    def test_the_steps_are_printed(self):
        path = png(self.folder / "p.png", pattern(300, 451))
        text = self.tiny("run", self.identity([1, 3, 224, 224]), "--input", path, "--preset", "imagenet")
        self.assertIn("imagenet: 451x300 RGB, resized to 384x256, cropped to 224x224 at 80,16, "
                      "(pixel / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], nchw\n", text)
        text = self.tiny("run", self.identity([1, 3, 64, 64]), "--input", path, "--fit", "letterbox")
        self.assertIn("resized to 64x43, at 0,10 of 64x64 filled with 114, pixel / 255, nchw\n", text)
        text = self.tiny("run", self.identity([1, 3, 50, 50]), "--input", path, "--fit", "crop")
        self.assertIn("451x300 RGB, of it 300x300 at 75.5,0, resized to 50x50, pixel / 255", text)

    def test_wrong_usage(self):
        path = png(self.folder / "p.png", pattern(40, 60))
        model = self.identity([1, 3, 20, 20])
        for flags, word in ((["--resize", "30"], "--fit crop"),
                            (["--preset", "imagenet", "--resize", "19"], "less than the input's side"),
                            (["--preset", "imagenette"], "imagenet"),
                            (["--fit", "crop", "--resize", "0"], "--resize")):
            error = self.json("run", model, "--input", path, *flags, code=2)["error"]
            self.assertIn(word, error["message"])
        error = self.json("run", self.identity([1, 20, 20, 3]), "--input", path, code=5)["error"]
        self.assertIn("did you mean --layout nhwc?", error["message"])

    def test_a_jpeg_whose_table_is_too_long(self):
        """stb_image would write behind it."""
        lengths = bytes([200] * 16)
        path = self.folder / "long.jpg"
        path.write_bytes(b"\xff\xd8\xff\xc4" + (19 + sum(lengths)).to_bytes(2, "big") + b"\0" + lengths +
                         bytes(sum(lengths)) + b"\xff\xd9")
        error = self.json("run", self.identity([1, 3, 20, 20]), "--input", path, code=5)["error"]
        self.assertIn("long.jpg: no picture: a table of more than 256 codes", error["message"])

    def test_a_file_that_ends_early(self):
        """stb_image would take zeros, or whatever memory holds, for the rest."""
        pixels = bytes(range(3 * 4 * 4))
        bmp = (b"BM" + (54 + 48).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") +
               (40).to_bytes(4, "little") + (4).to_bytes(4, "little") * 2 + b"\1\0\x18\0" + bytes(24) + pixels)
        model = self.identity([1, 3, 4, 4])
        for name, whole in (("p.ppm", b"P6 4 4 255\n" + pixels), ("p.bmp", bmp),
                            ("p.png", png(self.folder / "p.png", pattern(4, 4)).read_bytes())):
            path = self.folder / name
            path.write_bytes(whole)
            self.json("run", model, "--input", path)
            for left in (1, len(whole) // 2, len(whole) - 20):
                with self.subTest(name=name, left=left):
                    path.write_bytes(whole[:-left])
                    error = self.json("run", model, "--input", path, code=5)["error"]
                    self.assertIn(f"{name}: no picture: ", error["message"])


class Batches(CliTest):
    """Pictures behind the model, one batch of them, a row of the output for each."""

    def means(self, shape, axes, dtype=TensorProto.FLOAT):
        """y = the means over the axes."""
        return save_model(self.folder / "means.onnx",
                          [helper.make_node("ReduceMean", ["x"], ["y"], axes=axes, keepdims=0)],
                          [port("x", shape, dtype)], [port("y", [None] * (len(shape) - len(axes)), dtype)])

    def colours(self, *names):
        """Pictures that are all of one colour."""
        channels = {"red": (255, 0, 0), "green": (0, 255, 0), "grey": (128, 128, 128)}
        return [png(self.folder / f"{name}.png", numpy.full((4, 6, 3), channels[name])) for name in names]

    def test_each_picture_has_its_row(self):
        (self.folder / "labels.txt").write_text("red\ngreen\nblue\n")
        paths = self.colours("green", "red")
        flags = ["run", self.means(["N", 3, 4, 6], [2, 3]), *paths, "--labels", "labels.txt"]
        result = self.json(*flags, "--top", "2")
        rows = result["outputs"][0]["pictures"]
        self.assertEqual([row["file"] for row in rows], list(map(str, paths)))
        self.assertEqual([[entry["label"] for entry in row["top"]] for row in rows],
                         [["green", "red"], ["red", "green"]])
        self.assertEqual(rows[0]["top_percent"], [100, 0])
        self.assertEqual(result["inputs"][0]["source"], f"{paths[0]} and 1 more")
        self.assertEqual([told["file"] for told in result["inputs"][0]["pictures"]], list(map(str, paths)))
        width = len(str(paths[0]))
        self.assertEqual(self.tiny(*flags, "--print", "none").splitlines(),
                         [f"    {'picture':{width}}  class  probability",
                          f"    {paths[0]}  green      100.00%",
                          f"    {str(paths[1]):{width}}  red        100.00%"])

    def test_percentages_are_of_each_row(self):
        paths = self.colours("green", "grey")
        rows = self.json("run", self.means([2, 3, 4, 6], [2, 3]), *paths, "--scale", "1")["outputs"][0]["pictures"]
        self.assertEqual([row["top_percent_of"] for row in rows], ["softmax", "softmax"])
        numpy.testing.assert_allclose([row["top_percent"][0] for row in rows], [100, 100 / 3], rtol=1e-5)

    def test_grey_pictures_without_an_axis_of_channels(self):
        pixels = [numpy.full((4, 6), 9), numpy.arange(24).reshape(4, 6)]
        paths = [png(self.folder / f"{i}.png", each) for i, each in enumerate(pixels)]
        model = save_model(self.folder / "identity.onnx", [helper.make_node("Identity", ["x"], ["y"])],
                           [port("x", ["N", 4, 6], TensorProto.UINT8)], [port("y", ["N", 4, 6], TensorProto.UINT8)])
        self.json("run", model, *paths, "--save", "y.npy")
        numpy.testing.assert_array_equal(numpy.load(self.folder / "y.npy"), pixels)
        self.json("run", model, "--input", paths[1], "--save", "y.npy")
        numpy.testing.assert_array_equal(numpy.load(self.folder / "y.npy"), pixels[1:])

    def test_one_picture_for_an_input_of_one(self):
        rows = self.json("run", self.means([3, 4, 6], [1, 2]), *self.colours("red"))["outputs"][0]["pictures"]
        self.assertEqual([entry["index"] for entry in rows[0]["top"]], [0])

    def test_a_model_that_takes_some_at_once(self):
        paths = self.colours("green", "grey", "red", "red")
        want = [[0, 1, 0], [128 / 255] * 3, [1, 0, 0], [1, 0, 0]]
        for shape, axes, seen in (([1, 3, 4, 6], [2, 3], [4, 3, 4, 6]), ([2, 3, 4, 6], [2, 3], [4, 3, 4, 6]),
                                  ([3, 4, 6], [1, 2], [3, 4, 6])):
            result = self.json("run", self.means(shape, axes), *paths, "--save", "y.npy")
            numpy.testing.assert_allclose(numpy.load(self.folder / "y.npy"), want, rtol=1e-6)
            self.assertEqual(result["inputs"][0]["source"], f"{paths[0]} and 3 more")
            self.assertEqual(result["inputs"][0]["shape"], seen)
            rows = result["outputs"][0]["pictures"]
            self.assertEqual([row["file"] for row in rows], list(map(str, paths)))
            self.assertEqual([row["top"][0]["index"] for row in rows], [1, 0, 0, 0])

    def test_wrong_usage(self):
        paths = self.colours("green", "red", "grey")
        error = self.json("run", self.means([2, 3, 4, 6], [2, 3]), *paths, code=5)["error"]
        self.assertIn("one picture for an input of 2", error["message"])
        error = self.json("run", self.means([2, 3, 4, 6], [0, 2, 3]), *paths, paths[0], code=2)["error"]
        self.assertIn("output y has no row for each picture", error["message"])
        small = png(self.folder / "small.png", numpy.zeros((2, 2, 3)))
        model = save_model(self.folder / "identity.onnx", [helper.make_node("Identity", ["x"], ["y"])],
                           [port("x", [1, 3, None, None])], [port("y", [1, 3, None, None])])
        error = self.json("run", model, paths[0], small, code=2)["error"]
        self.assertIn("[1,3,4,6] and [1,3,2,2]", error["message"])
        error = self.json("run", self.means(["N", 3, 4, 6], [2, 3]), "x.npy", code=5)["error"]
        self.assertIn("x.npy: no such file", error["message"])
        error = self.json("run", self.means(["N", 3, 4, 6], [2, 3]), self.npy("x.npy", [1]), code=2)["error"]
        self.assertIn("did you mean --input", error["message"])
        model = self.means(["N", 3, 4, 6], [2, 3])
        error = self.json("run", model, paths[0], "--input", paths[1], code=2)["error"]
        self.assertIn("all are given", error["message"])


if __name__ == "__main__":
    unittest.main()
