"""What a device of PyTorch is beside its operators: copies, files, generators, autocast, events, errors."""

import copy
import io
import os
import pickle
import subprocess
import sys
import unittest

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import tiny.torch as tiny


def saved_and_loaded(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


class Device(unittest.TestCase):
    def test_the_device_is_there(self):
        self.assertTrue(torch.tiny.is_available())
        self.assertEqual((torch.tiny.device_count(), torch.tiny.current_device()), (1, 0))
        self.assertEqual(torch.ones(2, device="tiny").device, torch.device("tiny:0"))
        self.assertEqual(str(torch.accelerator.current_accelerator()), "tiny")
        with self.assertRaisesRegex(RuntimeError, "one device"):
            torch.tiny.set_device(1)

    def test_it_is_imported_without_a_warning(self):
        program = "import torch, warnings; warnings.simplefilter('error'); import tiny.torch; torch.ones(2, device='tiny').sum().item()"
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        subprocess.run([sys.executable, "-B", "-c", program], check=True, env=environment)

    def test_copies(self):
        x = torch.randn(3, 4)
        y = x.to("tiny")
        self.assertTrue(y.is_tiny)
        for back in (y.cpu(), y.to("cpu"), torch.empty(3, 4).copy_(y), x.new_empty(3, 4).copy_(y, non_blocking=True)):
            self.assertTrue(torch.equal(back, x))
        self.assertTrue(torch.equal(x.tiny().cpu(), x))
        self.assertTrue(torch.equal(y.half().cpu(), x.half()))
        self.assertTrue(torch.equal(x.to("tiny", torch.float64).cpu(), x.double()))
        self.assertEqual(y.t().contiguous().stride(), (3, 1))

    def test_every_dtype(self):
        for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                      torch.bfloat16, torch.float32, torch.float64):
            x = torch.tensor([0, 1, 2, 3, 100]).to(dtype)
            self.assertTrue(torch.equal(x.to("tiny").cpu(), x))
            self.assertTrue(torch.equal((x.to("tiny") == x.to("tiny")[2]).cpu(), x == x[2]))
        x = torch.arange(4, dtype=torch.int32)
        for dtype in (torch.float32, torch.int16, torch.int64, torch.uint8, torch.float16, torch.float64):
            self.assertTrue(torch.equal(x.to("tiny").view(dtype).cpu(), x.view(dtype)))
            self.assertTrue(torch.equal(x.to("tiny").view(dtype).view(torch.int32).cpu(), x))
        y = x.to("tiny")
        y.view(torch.uint8)[5] = 3
        self.assertEqual(y.tolist(), [0, 1 + 3 * 256, 2, 3])

    def test_complex_tensors(self):
        """They lie in memory and are views and copies there; the CPU computes, which is counted."""
        tiny.clear_fallbacks()
        for dtype in (torch.complex64, torch.complex128):
            x = torch.randn(3, 4, dtype=dtype)
            y = x.to("tiny")
            part = x.real.dtype
            for got, want in ((y, x), (y.t().contiguous(), x.t().contiguous()), (y[1:, ::2], x[1:, ::2]), (y.real, x.real), (y.imag, x.imag),
                              (torch.view_as_real(y), torch.view_as_real(x)), (y.conj().imag, x.conj().imag), (y.conj(), x.conj()),
                              (y.to(torch.complex128), x.to(torch.complex128)), (y.real.to(dtype), x.real.to(dtype)),
                              (torch.view_as_complex(y.imag.new_ones(3, 2)), torch.view_as_complex(torch.ones(3, 2, dtype=part)))):
                self.assertEqual((got.dtype, got.stride(), got.is_conj()), (want.dtype, want.stride(), want.is_conj()))
                self.assertTrue(torch.equal(got.cpu().resolve_conj(), want.resolve_conj()))
            self.assertEqual(y[1, 2].item(), x[1, 2].item())
            for target, source in ((y, x), (y[:, 1:3], x[:, 1:3].conj()), (y[0].conj(), x[1]), (y[1], x[0].real), (y[2], y[0])):
                want = x.clone() if target is y else target.cpu().resolve_conj()
                target.copy_(source)
                want.copy_(source.cpu())
                self.assertTrue(torch.equal(target.cpu().resolve_conj(), want.resolve_conj()))
            y[1:].real.zero_()
            self.assertTrue(torch.equal(y.real[1:].cpu(), torch.zeros(2, 4, dtype=part)))
            self.assertEqual(torch.zeros(2, dtype=dtype, device="tiny").real._is_view(), True)
            self.assertTrue(torch.equal(y, y.clone()) and torch.equal(y.conj(), y.conj().clone()) and not torch.equal(y, y.conj()))
            want = torch.view_as_real(y.cpu().conj_physical())
            self.assertTrue(torch.equal(torch.view_as_real(y.clone().conj_physical_()).cpu(), want))
            self.assertTrue(torch.equal(torch.view_as_real(y.t().conj_physical().t()).cpu(), want))
        self.assertEqual({name.split(".")[0] for name in tiny.fallbacks()}, {"zero_"})
        x = torch.randn(4, 4, dtype=torch.complex64)
        for function in (lambda x: x @ x.conj().T + 2j * x, lambda x: x.abs() + x.angle() + x[x.real > 0].sum(), lambda x: (x * x.conj()).sum(0),
                         lambda x: torch.cat((x, -x)), lambda x: torch.fft.ifft2(torch.fft.fft2(x.real)), lambda x: x.real * 1j, lambda x: x.mean() / 3):
            leaves = [x.clone().requires_grad_(), x.to("tiny").requires_grad_()]
            made = [function(leaf) for leaf in leaves]
            for one in made:
                (one.abs().square().sum()).backward()
            torch.testing.assert_close(made[1].detach().cpu(), made[0].detach())
            torch.testing.assert_close(leaves[1].grad.cpu(), leaves[0].grad, rtol=1e-4, atol=1e-4)
        self.assertIn("mul.Tensor", tiny.fallbacks())

    def test_processes_that_end_right_after_a_backward_pass(self):
        """Of those without tiny.torch's wait one in three was aborted."""
        for last in ("x.exp().sum().backward()", "x.unique().sum().backward()"):
            lines = f"import torch, tiny.torch; x = torch.ones(4, 4, device='tiny', requires_grad=True); {last}"
            for _ in range(3):
                ended = subprocess.run([sys.executable, "-B", "-c", lines], capture_output=True, text=True)
                self.assertEqual(ended.returncode, 1 if "unique" in last else 0, ended.stderr)  # unique has no gradient

    def test_memory_formats_are_strides(self):
        x = torch.randn(2, 3, 4, 5)
        y = x.to("tiny").to(memory_format=torch.channels_last)
        self.assertEqual(y.stride(), (60, 1, 15, 3))
        self.assertEqual((y * 2 + 1).stride(), (60, 1, 15, 3))
        self.assertTrue(torch.equal(y.cpu(), x))
        self.assertEqual(y.as_strided((120,), (1,)).tolist(), x.permute(0, 2, 3, 1).flatten().tolist())
        self.assertTrue(torch.empty_like(y).is_contiguous(memory_format=torch.channels_last))

    def test_files_and_copies_of_objects(self):
        net = torch.nn.Linear(3, 2).to("tiny")
        shared = torch.arange(6.0, device="tiny")
        file = io.BytesIO()
        torch.save({"net": net.state_dict(), "views": (shared, shared[2:])}, file)
        file.seek(0)
        loaded = torch.load(file)
        self.assertEqual(loaded["net"]["weight"].device.type, "tiny")
        self.assertTrue(torch.equal(loaded["net"]["weight"], net.weight))
        loaded["views"][0].mul_(2)
        self.assertEqual(loaded["views"][1].tolist(), [4, 6, 8, 10])
        file.seek(0)
        self.assertEqual(torch.load(file, map_location="cpu")["views"][1].tolist(), [2, 3, 4, 5])
        self.assertTrue(torch.equal(copy.deepcopy(net).weight, net.weight))
        self.assertEqual(pickle.loads(pickle.dumps(shared)).tolist(), shared.tolist())

    def test_parameters_stay_the_objects_that_they_are(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5, bias=False)
                self.head.weight = self.words.weight

            def forward(self, x):
                return self.head(self.words(x))
        net = Tied()
        weight, optimizer = net.words.weight, torch.optim.SGD(net.parameters(), 0.5)
        weight.note = "kept"
        net(torch.tensor([0])).sum().backward()
        for device in ("tiny", "cpu", "tiny"):
            net.to(device)
            self.assertIs(net.words.weight, weight)
            self.assertIs(net.head.weight, weight)
            self.assertEqual((weight.device.type, weight.grad.device.type, weight.note), (device, device, "kept"))
        before = weight.detach().clone()
        optimizer.step()
        torch.testing.assert_close(weight.detach(), before - 0.5 * weight.grad)
        self.assertEqual([name for name, _ in net.named_parameters()], ["words.weight"])
        frozen = torch.nn.Linear(2, 2).requires_grad_(False).to("tiny")
        self.assertFalse(frozen.weight.requires_grad)

    def test_lazy_modules(self):
        net = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.LazyBatchNorm1d()).to("tiny")
        self.assertEqual(net(torch.ones(3, 5, device="tiny")).shape, (3, 4))
        self.assertEqual((net[0].weight.shape, net[0].weight.device.type), ((4, 5), "tiny"))

    def test_storages_are_resized_and_set(self):
        x = torch.arange(4.0, device="tiny")
        x.resize_(6)
        self.assertEqual((x[:4].tolist(), x.untyped_storage().nbytes()), ([0, 1, 2, 3], 24))
        y = torch.empty(0, device="tiny").set_(x)
        self.assertTrue(y.is_set_to(x))
        y[0] = 5
        self.assertEqual(x[0].item(), 5)
        z = torch.empty(0, device="tiny").set_(x.untyped_storage(), 1, (3,), (1,))
        self.assertEqual(z.tolist(), [1, 2, 3])
        x.untyped_storage().resize_(8)
        self.assertEqual(x.untyped_storage().nbytes(), 8)

    def test_a_copy_is_no_alias(self):
        x = torch.arange(4.0, device="tiny")
        for other in (x.clone(), x.view(2, 2).t().contiguous(), torch.empty_like(x).copy_(x), x.flip(0), x.float() + 0):
            kept = other.tolist()
            x[1:3] += 1
            self.assertEqual(other.tolist(), kept)
            other.view(-1)[0] = 9
            self.assertEqual(x[0].item(), 0)

    def test_items(self):
        for shape in ((), (1,), (1, 1)):
            self.assertEqual(torch.full(shape, 2.5, device="tiny").item(), 2.5)
        self.assertEqual(torch.arange(3, device="tiny")[2].item(), 2)

    def test_printing(self):
        self.assertEqual(repr(torch.tensor([1.0, 2.5], device="tiny")), "tensor([1.0000, 2.5000], device='tiny:0')")


class Laziness(unittest.TestCase):
    def kernels(self, action):
        torch.tiny.synchronize()
        before = tiny.counters()["realized"]["launches"]
        result = action()
        torch.tiny.synchronize()
        self.assertIsNotNone(result)
        return tiny.counters()["realized"]["launches"] - before

    def test_a_chain_is_one_kernel(self):
        x = torch.randn(32, 32, device="tiny")

        def chain():
            y = ((x * 2 + 1).relu() - x.t()).sigmoid()
            y.mul_(3).add_(x)
            return y.exp()
        self.assertEqual(self.kernels(chain), 1)

    def test_a_copy_between_strides_is_one_kernel(self):
        x, y = torch.randn(8, 8, device="tiny"), torch.randn(16, 16, device="tiny")
        self.assertLessEqual(self.kernels(lambda: y[::2, 1::2].copy_(x.t())), 1)

    def test_places_that_nobody_looks_at_are_not_computed(self):
        """Of maxima along an axis and of pools, where the places live on beside the values."""
        x = torch.randn(4, 3, 8, 8, device="tiny")
        for call in lambda: x.exp().max(3), lambda: F.max_pool2d(x.exp(), 3, 2, 1, return_indices=True):
            with self.subTest():
                both = []
                self.assertEqual(self.kernels(lambda: both.append(call()) or both), 1)
                values, places = both[0]
                self.assertGreater(self.kernels(lambda: both.append(places + 0) or both), 0)

    def test_places_are_those_of_what_was_there(self):
        """Whatever is written to the tensor between, by whom they are seen first, and whether it still lives."""
        def seen(device, write, look):
            torch.manual_seed(0)
            x = torch.randn(2, 3, 6, 6).to(device)
            given = x.clone()
            pooled, places = F.max_pool2d(given, 2, return_indices=True)
            values, rows = given.max(2)
            write(given)
            del given
            made = [look(places), look(rows)]
            places += 1
            rows[0] = 7
            return [pooled, values, *made, places, rows]
        for name, write in {"nothing": lambda x: None, "all": lambda x: x.neg_(), "a part": lambda x: x[:, 1].fill_(9.0),
                            "a view": lambda x: x.view(-1)[::2].mul_(-1)}.items():
            for kind, look in {"as it is": torch.clone, "a view": lambda x: x[1:].clone(), "its bytes": lambda x: x.view(torch.int32).clone(),
                               "a file's": saved_and_loaded, "a copy resized": lambda x: x.detach().clone().resize_(3)}.items():
                with self.subTest(written=name, look=kind):
                    for got, want in zip(seen("tiny", write, look), seen("cpu", write, look)):
                        self.assertTrue(torch.equal(got.cpu(), want))

    def test_resnet_18_is_few_kernels(self):
        from networks_test import ResNet18
        net, x = ResNet18().eval().to("tiny"), torch.randn(1, 3, 64, 64, device="tiny")
        with torch.no_grad():
            net(x).cpu()
            self.assertLessEqual(self.kernels(lambda: net(x)), 30)

    def test_numbers_that_change_compile_nothing(self):
        x = torch.randn(16, device="tiny")

        def compiled():
            return tiny.counters()["kernels"]["compiled"]
        for k in range(3):
            x.mul_(0.1234 + k * 0.01).cpu()
        before = compiled()
        for k in range(3):
            x.mul_(0.4321 + k * 0.01).cpu()
        self.assertEqual(compiled(), before)


class Random(unittest.TestCase):
    def test_seeds(self):
        torch.manual_seed(3)
        first = [torch.randn(4, device="tiny").tolist() for _ in range(2)]
        torch.manual_seed(3)
        self.assertEqual([torch.randn(4, device="tiny").tolist() for _ in range(2)], first)
        self.assertNotEqual(first[0], first[1])
        state = torch.tiny.get_rng_state()
        after = torch.rand(3, device="tiny").tolist()
        torch.tiny.set_rng_state(state)
        self.assertEqual(torch.rand(3, device="tiny").tolist(), after)

    def test_generators(self):
        a, b = (torch.Generator("tiny").manual_seed(5) for _ in range(2))
        self.assertEqual(torch.rand(3, device="tiny", generator=a).tolist(), torch.rand(3, device="tiny", generator=b).tolist())
        with self.assertRaisesRegex(RuntimeError, "Expected a 'tiny' device type for generator"):
            torch.rand(3, device="tiny", generator=torch.Generator())

    def test_what_is_computed_again_draws_the_same_numbers(self):
        for reentrant in (True, False):
            x = torch.ones(100, device="tiny", requires_grad=True)
            y = checkpoint(lambda x: torch.nn.functional.dropout(x * 1, 0.5), x, use_reentrant=reentrant)
            y.sum().backward()
            self.assertEqual(x.grad.tolist(), y.tolist())
            self.assertGreater(y.count_nonzero(), 0)

    def test_distributions(self):
        count = 20000
        x = torch.empty(count, device="tiny")
        for name, args, mean, deviation in [("uniform_", (2, 4), 3, 4 / 12 ** 0.5 / 2), ("normal_", (1, 2), 1, 2),
                                            ("exponential_", (2,), 0.5, 0.5), ("bernoulli_", (0.25,), 0.25, 0.1875 ** 0.5),
                                            ("random_", (10,), 4.5, (99 / 12) ** 0.5)]:
            getattr(x, name)(*args)
            self.assertAlmostEqual(x.mean().item(), mean, delta=5 * deviation / count ** 0.5, msg=name)
            self.assertAlmostEqual(x.std().item(), deviation, delta=0.1 * deviation, msg=name)
        self.assertEqual(torch.randperm(50, device="tiny").sort()[0].tolist(), list(range(50)))
        kept = torch.nn.functional.dropout(torch.ones(count, device="tiny"), 0.25)
        self.assertEqual(sorted(set(kept.tolist())), [0.0, torch.tensor(1 / 0.75).item()])


class Modes(unittest.TestCase):
    def test_autocast(self):
        x, w = torch.randn(4, 4, device="tiny"), torch.randn(4, 4, device="tiny", requires_grad=True)
        for dtype in (torch.float16, torch.bfloat16):
            with torch.autocast("tiny", dtype):
                y = x @ w
                self.assertEqual((y.dtype, torch.softmax(y, 0).dtype), (dtype, torch.float32))
            y.float().sum().backward()
            self.assertEqual(w.grad.dtype, torch.float32)

    def test_a_scaler_of_losses(self):
        w = torch.ones(3, device="tiny", requires_grad=True)
        scaler, optimizer = torch.amp.GradScaler("tiny", init_scale=4.0), torch.optim.SGD([w], 1.0)
        scaler.scale((w * 2).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual(w.tolist(), [-1, -1, -1])
        optimizer.zero_grad()
        scaler.scale((w * float("inf")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual((w.tolist(), scaler.get_scale()), ([-1, -1, -1], 2.0))

    def test_fused_optimizers_leave_gradients_without_the_scale(self):
        """As PyTorch's do, with or without maximize, unless one of them is not finite."""
        def stepped(device, optimizer, options, worst):
            w = torch.tensor([1.0, -2.0, 3.0]).to(device).requires_grad_()
            optimizer = optimizer([w], 0.5, fused=True, **options)
            scaler = torch.amp.GradScaler(device, init_scale=8.0)
            scaler.scale((w * w * worst).sum()).backward()
            scaler.step(optimizer)
            return w.grad.cpu(), w.detach().cpu()
        for optimizer in torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad:
            for options in {}, {"maximize": True}:
                for worst in 1.0, float("inf"):
                    with self.subTest(optimizer=optimizer.__name__, options=options, worst=worst):
                        torch.testing.assert_close(stepped("tiny", optimizer, options, worst), stepped("cpu", optimizer, options, worst))

    def test_deterministic_algorithms(self):
        torch.use_deterministic_algorithms(True)
        try:
            x = torch.zeros(3, device="tiny").index_add_(0, torch.tensor([0, 0, 2], device="tiny"), torch.ones(3, device="tiny"))
            self.assertEqual(x.tolist(), [2, 0, 1])
        finally:
            torch.use_deterministic_algorithms(False)

    def test_events_tell_the_time_of_work(self):
        first, last = (torch.Event("tiny", enable_timing=True) for _ in range(2))
        flushes = tiny.flush_count()
        first.record()
        x = torch.randn(64, 64, device="tiny")
        for _ in range(4):
            x = x @ x / 8
        last.record()
        self.assertTrue(last.query())
        self.assertGreater(tiny.flush_count(), flushes)
        self.assertGreater(first.elapsed_time(last), 0)

    def test_what_falls_back_is_counted_and_else_refused(self):
        tiny.clear_fallbacks()
        x = torch.eye(3, device="tiny") * 2
        self.assertEqual(torch.linalg.inv(x).diagonal().tolist(), [0.5] * 3)
        self.assertEqual(list(tiny.fallbacks()), ["linalg_inv_ex.inverse"])
        with self.assertRaisesRegex(NotImplementedError, "tiny: aten::_sparse_mm_reduce_impl|quantize_per_tensor"):
            torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)

    def test_devices_do_not_mix(self):
        with self.assertRaisesRegex(RuntimeError, "same device"):
            torch.ones(3, device="tiny") + torch.ones(3)
        self.assertEqual((torch.ones(3, device="tiny") + torch.tensor(2.0)).tolist(), [3, 3, 3])


class Gradients(unittest.TestCase):
    def test_through_views_and_writes(self):
        found = []
        for device in ("cpu", "tiny"):
            x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
            y = x * 2
            y[0, 1:] *= x[1, :2]
            y.t()[2].add_(x[:, 0])
            z = torch.cat([y, y.flip(0)]).cumsum(0)
            z.masked_fill_(z > 20, 0)
            (z ** 2).sum().backward()
            found.append(x.grad.tolist())
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    unittest.main()
