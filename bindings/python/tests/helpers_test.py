"""What programs take from tiny.helpers and tiny.Device, and which exceptions failures are."""

import contextlib
import gzip
import hashlib
import http.server
import io
import os
import pathlib
import pickle
import tempfile
import threading
import unittest
import unittest.mock

import tiny
from tiny import Device, Tensor, helpers
from tiny.helpers import Context, ContextVar


class Kept(unittest.TestCase):
    def test_values_between_runs(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
            self.assertIsNone(helpers.diskcache_get("table", "key"))
            self.assertEqual(helpers.diskcache_put("table", "key", (1, "a")), (1, "a"))
            helpers.diskcache_put("table", {"b": 2, "a": b"1"}, 5)
            helpers.diskcache_put("other", "key", pickle.dumps(6), prepickled=True)
            self.assertEqual([helpers.diskcache_get(table, key) for table, key in (
                ("table", "key"), ("table", {"a": b"1", "b": 2}), ("other", "key"), ("table", {"a": b"1"}))],
                [(1, "a"), 5, 6, None])
            with Context(CACHELEVEL=0):
                self.assertIsNone(helpers.diskcache_get("table", "key"))
            calls = []
            kept = helpers.diskcache(lambda x: calls.append(x) or 2 * x)
            self.assertEqual([kept(3), kept(3), kept(4), calls], [6, 6, 8, [3, 4]])
            helpers.diskcache_clear()
            self.assertIsNone(helpers.diskcache_get("table", "key"))

    def test_of_sequences_and_waiting(self):
        self.assertEqual(helpers.strides_for_shape((2, 1, 3)), (3, 0, 1))
        self.assertEqual(helpers.pad_bytes(b"abc", 4) + helpers.pad_bytes(b"", 4), b"abc\0")
        self.assertEqual((helpers.to_be32(0x01020304), helpers.to_be64(1)), (0x04030201, 1 << 56))
        self.assertEqual(helpers.flat_to_grouped((1, 2, 3, 4)), ((3, 4), (1, 2)))
        self.assertEqual((helpers.resolve_pool_pads(1, 2), helpers.resolve_pool_pads((1, 2), 2)), ([1] * 4, [2, 2, 1, 1]))
        with self.assertRaisesRegex(TimeoutError, "5 ms, condition not met: 1 != 2"):
            helpers.wait_cond(lambda: 1, value=2, timeout_ms=5)


class Settings(unittest.TestCase):
    def test_values_within_a_block(self):
        var = helpers.WINO
        with Context(WINO=2, JIT=0):
            self.assertTrue(var == 2 and var > 1 and var >= 2 and var < 3 and var)
            with Context(WINO=5):
                self.assertEqual(var.value, 5)
            self.assertEqual(var.value, 2)
        self.assertEqual((var.value, helpers.JIT.value, bool(var)), (0, 1, False))

        @Context(WINO=7)
        def within():
            return var.value
        self.assertEqual((within(), var.value), (7, 0))

    def test_training(self):
        with Context(TRAINING=1):
            self.assertTrue(Tensor.training)
        self.assertFalse(Tensor.training)

    def test_mistakes(self):
        with self.assertRaisesRegex(KeyError, "TYPO"):
            Context(TYPO=1)
        with self.assertRaisesRegex(RuntimeError, "WINO"):
            ContextVar("WINO", 1)

    def test_of_ones_own(self):
        os.environ["OF_ONES_OWN"] = "3"
        changes = []
        var = ContextVar("OF_ONES_OWN", 1, changes.append)
        with Context(OF_ONES_OWN=4):
            pass
        self.assertEqual((var.value, changes), (3, [3, 4, 3]))
        self.assertEqual(ContextVar("OF_ONES_OWN_TOO", "a,b,,c").tolist(), ["a", "b", "c"])

    def test_targets(self):
        target = helpers.Target.parse("usb+amd:llvm:gfx1100")
        self.assertEqual((target.device, target.renderer, target.arch, target.interface), ("AMD", "LLVM", "gfx1100", "usb"))
        self.assertEqual(repr(target), "usb+AMD:LLVM:gfx1100")
        self.assertEqual(repr(helpers.Target.parse("cpu")), "CPU")
        for wrong in ("a+b+c", "a:b:c:d"):
            with self.assertRaises(RuntimeError):
                helpers.Target.parse(wrong)
        with Context(DEV="CPU:LLVM"):
            self.assertEqual((helpers.DEV.device, helpers.DEV.renderer), ("CPU", "LLVM"))


class Texts(unittest.TestCase):
    def test_colours(self):
        self.assertEqual(helpers.ansistrip(helpers.colored("a", "RED") + "b"), "ab")
        self.assertEqual((helpers.ansilen(helpers.colored("abc", "red")), helpers.colored(3)), (3, "3"))
        self.assertEqual(helpers.ansilen(helpers.ansipad(helpers.colored("abc", "red"), 5)), 5)

    def test_numbers(self):
        self.assertEqual([helpers.time_to_str(t).strip() for t in (20.0, 0.02, 2e-5)], ["20.00s", "20.00ms", "20.00us"])
        self.assertEqual([helpers.size_to_str(n) for n in (12, 2048, 3 << 20, 5 << 30)],
                         ["12 B", "2.00 KB", "3.00 MB", "5.00 GB"])

    def test_names_and_lines(self):
        self.assertEqual(helpers.to_function_name("a_b 1"), "a_b201")
        self.assertEqual([helpers.strip_parens(t) for t in ("(a+b)", "(a)+(b)", "a", "((a))")],
                         ["a+b", "(a)+(b)", "a", "(a)"])
        red = helpers.colored("x" * 10, "red")
        wrapped = helpers.word_wrap(red + "y" * 5, 8)
        self.assertEqual([helpers.ansilen(line) for line in wrapped.split("\n")], [8, 7])


class Sequences(unittest.TestCase):
    def test_lists(self):
        self.assertEqual((helpers.prod([2, 3]), helpers.prod([])), (6, 1))
        self.assertEqual(helpers.dedup([2, 1, 2]), [2, 1])
        self.assertEqual((helpers.argfix(1, 2), helpers.argfix([1, 2])), ((1, 2), (1, 2)))
        self.assertEqual((helpers.argsort((3, 1, 2)), helpers.argsort([3, 1])), ((1, 2, 0), [1, 0]))
        self.assertEqual(helpers.fully_flatten([[1, [2]], 3, "ab"]), [1, 2, 3, "ab"])
        self.assertEqual(helpers.get_shape([[1, 2, 3], [4, 5, 6]]), (2, 3))
        self.assertEqual(helpers.partition(range(5), lambda x: x % 2), ([1, 3], [0, 2, 4]))
        self.assertEqual(helpers.merge_dicts([{"a": 1}, {"b": 2}, {"a": 1}]), {"a": 1, "b": 2})
        for call in (lambda: helpers.argfix([1], 2), lambda: helpers.get_shape([[1], [1, 2]])):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaisesRegex(RuntimeError, "'a' is 1 and 2"):
            helpers.merge_dicts([{"a": 1}, {"a": 2}])

    def test_whole_numbers(self):
        self.assertEqual([helpers.ceildiv(a, 4) for a in (-5, 0, 1, 4, 5)], [-1, 0, 1, 1, 2])
        self.assertEqual((helpers.round_up(5, 4), helpers.round_down(5, 4), helpers.round_down(-5, 4)), (8, 4, -8))
        self.assertEqual([(helpers.cdiv(a, b), helpers.cmod(a, b)) for a, b in ((7, 2), (-7, 2), (7, -2), (7, 0))],
                         [(3, 1), (-3, -1), (-3, 1), (0, 7)])
        self.assertEqual([helpers.next_power2(n) for n in (0, 1, 3, 4, 5)], [1, 1, 4, 4, 8])
        self.assertEqual((helpers.data64(1 << 32 | 5), helpers.getbits(0b1101, 1, 2)), ((1, 5), 0b10))
        self.assertEqual(helpers.polyN(2.0, [3, 4, 5]), 3 * 4 + 4 * 2 + 5)

    def test_memory(self):
        memory = bytearray(b"abcd")
        address = helpers.mv_address(memoryview(memory))
        self.assertEqual(bytes(helpers.to_mv(address, 4)), b"abcd")
        self.assertEqual(helpers.from_mv(memoryview(memory))[:2], b"ab")


class Loops(unittest.TestCase):
    def test_how_far_it_is(self):
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            self.assertEqual(list(helpers.tqdm([1, 2, 3], desc="steps")), [1, 2, 3])
            with helpers.tqdm(total=10) as bar:
                bar.update(4)
        self.assertRegex(text.getvalue(), "steps: 100%")
        self.assertRegex(text.getvalue(), r"40%.*4/10 \[00:00<")
        with contextlib.redirect_stderr(io.StringIO()) as silent:
            list(helpers.trange(3, disable=True))
        self.assertEqual(silent.getvalue(), "")

    def test_times(self):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            with helpers.Timing("it took ", on_exit=lambda ns: f", {ns > 0}"):
                pass
        self.assertRegex(text.getvalue(), r"it took +[\d.]+ ms, True")


class Files(unittest.TestCase):
    """From a server of this test's own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        served = pathlib.Path(self.folder.name, "served")
        served.mkdir()
        (served / "plain").write_bytes(b"content")
        (served / "packed.gz").write_bytes(gzip.compress(b"content"))

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=str(served))

            def log_message(self, *arguments):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = self.folder.name
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(
            XDG_CACHE_HOME=before))

    def test_fetch(self):
        path = helpers.fetch(self.url + "plain")
        self.assertEqual(path.read_bytes(), b"content")
        path.write_bytes(b"kept")
        self.assertEqual(helpers.fetch(self.url + "plain").read_bytes(), b"kept")
        self.assertEqual(helpers.fetch(self.url + "plain", allow_caching=False).read_bytes(), b"content")
        self.assertEqual(helpers.fetch(self.url + "packed.gz", "name", gunzip=True).read_bytes(), b"content")
        self.assertEqual(helpers.fetch("/a/path"), pathlib.Path("/a/path"))

    def test_what_is_not_as_it_should_be(self):
        digest = hashlib.sha256(b"content").hexdigest()
        self.assertEqual(helpers.fetch(self.url + "plain", sha256=digest).read_bytes(), b"content")
        with self.assertRaisesRegex(RuntimeError, "SHA-256"):
            helpers.fetch(self.url + "plain", "other", sha256="0" * 64)
        self.assertEqual([name for name in os.listdir(pathlib.Path(self.folder.name, "tiny", "downloads"))
                          if name.startswith("tmp")], [])


class Devices(unittest.TestCase):
    def test_names(self):
        self.assertEqual((Device.DEFAULT, Device.canonicalize(None)), ("CPU", "CPU"))
        self.assertEqual([Device.canonicalize(name) for name in ("cpu:0", "cpu:1", "gpu")], ["CPU", "CPU:1", "GPU"])
        self.assertIn("CPU", list(Device.get_available_devices()))

    def test_the_host(self):
        self.assertIn(tiny.float32, Device["CPU"].renderer.supported_dtypes())
        Device[Device.DEFAULT].synchronize()
        with self.assertRaisesRegex(RuntimeError, "NOTHING"):
            Device["nothing"]

    def test_those_of_drivers(self):
        if "OPENCL" not in Device.get_available_devices():
            self.skipTest("no driver of OpenCL has a device here")
        self.assertEqual(Device["opencl:0"].device, "OPENCL")
        x = Tensor([1.0, 2.0, 3.0], context=tiny.Context(device="opencl"))
        self.assertEqual((x * 2 + 1).tolist(), [3, 5, 7])


class Places(unittest.TestCase):
    """Tensors on several devices of one context, by tinygrad's names and by tiny's."""

    def test_moved_and_made(self):
        x = Tensor([[1.0, 2.0], [3.0, 4.0]])
        y = x.to("FAR")
        self.assertEqual((x.device, y.device, (y @ y).device), ("cpu", "far", "far"))
        self.assertEqual((y.T.contiguous() + 1).to("CPU").tolist(), [[2, 4], [3, 5]])
        self.assertIs(y.to("far:0"), y)
        self.assertIs(x.to("CPU:1"), x)
        self.assertIs(y.context, x.context.on_device("far"))
        self.assertIs(y.context.on_device("cpu"), x.context)
        for made in (Tensor([1, 2], device="far"), Tensor.zeros(2, device="far"), Tensor.arange(2, device="far"),
                     Tensor.rand(2, device="far"), Tensor.eye(2, device="far"), Tensor.full((2,), 3, device="far")):
            self.assertEqual((made.device, (made + 1).sum().device), ("far", "far"))
        self.assertEqual(x.clone().to_("far").device, "far")
        self.assertEqual((x * 0 + y.to("cpu")).tolist(), x.tolist())

    def test_two_do_not_meet(self):
        with self.assertRaisesRegex(tiny.Error, 'tiny_binary: .*"far" and not on "cpu".*tiny_tensor_to'):
            Tensor([1.0]) + Tensor([1.0], device="far")
        with self.assertRaisesRegex(ValueError, "device 'GPU': known are CPU"):
            Tensor([1.0]).to("GPU")

    def test_a_step_of_training(self):
        from tiny.nn.optim import SGD
        losses = []
        for device in ("cpu", "far"):
            w = Tensor([[0.5], [-0.25]], device=device, requires_grad=True)
            x, y = (Tensor([[1.0, 2.0], [3.0, 4.0]], device=device), Tensor([[1.0], [2.0]], device=device))
            optimizer = SGD([w], lr=0.03125)
            with Tensor.train():
                for _ in range(3):
                    optimizer.zero_grad()
                    loss = ((x @ w - y) ** 2).sum()
                    loss.backward()
                    optimizer.step()
            losses.append(((x @ w - y) ** 2).sum().item())
        self.assertAlmostEqual(*losses, places=5)
        self.assertLess(losses[0], 3)

    def test_what_is_compiled_runs_there(self):
        from tiny import TinyJit
        weight = Tensor([2.0, 3.0], device="far")
        step = TinyJit(lambda x: (x * weight).realize())
        for i in range(4):
            self.assertEqual(step(Tensor([i, 1.0], device="far")).tolist(), [2 * i, 3])

    def test_where_tensors_are_made(self):
        before = Device.DEFAULT
        try:
            Device.DEFAULT = "far"
            self.assertEqual((Device.DEFAULT, Tensor([1.0]).device, Tensor.ones(2).device), ("FAR", "far", "far"))
            self.assertEqual(Tensor([1.0], device="CPU").device, "cpu")
            Device[Device.DEFAULT].synchronize()
        finally:
            Device.DEFAULT = before
        self.assertEqual(Tensor([1.0]).device, "cpu")


class Failures(unittest.TestCase):
    """Programs catch what NumPy and PyTorch raise."""

    def test_kinds(self):
        x = Tensor.ones(2, 3)
        for call, kinds in ((lambda: x.sum(5), (RuntimeError, IndexError, ValueError)),
                            (lambda: x.reshape(4, 4), (RuntimeError, ValueError)),
                            (lambda: x & x, (RuntimeError, TypeError)),
                            (lambda: x.gather(0, Tensor([[7, 7, 7]])).realize(), (RuntimeError, IndexError))):
            for kind in (tiny.Error, *kinds):
                with self.assertRaises(kind):
                    call()
        try:
            x.sum(5)
        except tiny.Error as error:
            self.assertEqual((error.name, error.status), ("SHAPE", tiny.Status.ERROR_SHAPE))


if __name__ == "__main__":
    unittest.main()
