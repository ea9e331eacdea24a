"""What PyTorch's own suites and database, and programs of other people's kind, found."""

import io
import unittest
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F

import tiny.torch  # noqa: F401 - makes the device


class Found(unittest.TestCase):
    """Operators."""

    def test_runs_of_equal_slices(self):
        x = torch.tensor([[[1, 1], [1, 1], [2, 3]], [[1, 1], [1, 1], [2, 2]]])
        for given in (x, x.transpose(0, 2)):
            for dim in range(3):
                want = torch.unique_consecutive(given, True, True, dim)
                got = torch.unique_consecutive(given.to("tiny"), True, True, dim)
                for result, expected in zip(got, want):
                    self.assertTrue(torch.equal(result.cpu(), expected))

    def test_what_is_written_shares_nothing_with_places_and_values(self):
        places = torch.tensor([2, 1, 0], device="tiny")
        values = torch.rand(6, device="tiny")
        for write in (lambda: places.index_fill_(0, places, 0), lambda: places.index_put_((places,), places.clone()),
                      lambda: places.put_(places, places.clone()), lambda: places.put_(places.clone(), places),
                      lambda: values.put_(places, values[:3]), lambda: torch.rand(1, device="tiny").expand(6).put_(places, values[:3])):
            with self.assertRaisesRegex(RuntimeError, "unsupported operation"):
                write()
        self.assertEqual(places.tolist(), [2, 1, 0])

    def test_grids_that_do_not_fit(self):
        for grid, words in (((2, 4, 4, 2), "same batch size"), ((1, 4, 4, 3), "size 2 in last dimension"), ((1, 4, 4, 4, 3), "4D input")):
            with self.assertRaisesRegex(RuntimeError, words):
                torch.grid_sampler_2d(torch.ones(1, 2, 3, 3, device="tiny"), torch.ones(*grid, device="tiny"), 0, 0, False)

    def test_results_into_tensors_of_every_operator(self):
        """Whose form without `out=` has a kernel: those with it have one, too."""
        x = torch.randn(1, 2, 4, 4, 4)
        window = (2, 2, 0, 1, False)
        for name, call, dtype in (
                ("nonzero", lambda x, out: torch.nonzero(x > 0, out=out), torch.int64),
                ("max", lambda x, out: torch.max(x, out=out), torch.float32), ("min", lambda x, out: torch.min(x, out=out), torch.float32),
                ("max_pool3d backward", lambda x, out: torch.ops.aten.max_pool3d_with_indices_backward.grad_input(
                    x[..., ::2, ::2, ::2].contiguous(), x, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, F.max_pool3d(x, *window, return_indices=True)[1],
                    grad_input=out), torch.float32),
                ("rrelu", lambda x, out: torch.ops.aten.rrelu_with_noise.out(x, torch.zeros_like(x), 0.2, 0.4, False, None, out=out), torch.float32)):
            with self.subTest(name=name):
                want = call(x, torch.empty(0, dtype=dtype))
                for size in (0, want.shape):
                    out = torch.empty(size, dtype=dtype, device="tiny")
                    self.assertIs(call(x.to("tiny"), out), out)
                    torch.testing.assert_close(out.cpu(), want)
        for call in (lambda x: torch.nonzero(x, out=x.new_empty(0)), lambda x: torch.max(x, out=x.new_empty(0, dtype=torch.int64))):
            for device in ("cpu", "tiny"):
                with self.assertRaises(RuntimeError):
                    call(x.to(device))
        y, z = x.clone().requires_grad_(), x.clone().to("tiny").requires_grad_()
        for one in (y, z):
            F.rrelu_(one * 2, training=False).square().sum().backward()
        torch.testing.assert_close(z.grad.cpu(), y.grad)
        drawn = F.rrelu_(-torch.ones(100, device="tiny"), 0.1, 0.3, training=True)
        self.assertTrue(bool(((drawn <= -0.1) & (drawn >= -0.3)).all()) and len(drawn.unique()) > 50)

    def test_what_is_dropped_lies_as_it_did(self):
        for x in (torch.ones(2, 4, 3, device="tiny").mT, torch.ones(2, 3, 4, 5, device="tiny").to(memory_format=torch.channels_last)):
            for training in (True, False):
                made, mask = torch.native_dropout(x.requires_grad_(), 0.5, training)
                slope, = torch.autograd.grad(made, x, torch.ones_like(made))
                self.assertEqual((made.stride(), mask.stride(), slope.stride()), (x.stride(),) * 3)
                self.assertTrue(torch.equal(made, mask * (2.0 if training else 1.0)))
                self.assertTrue(torch.equal(slope, made))

    def test_products_of_bytes(self):
        a, b = torch.randint(-128, 128, (20, 16), dtype=torch.int8), torch.randint(-128, 128, (16, 8), dtype=torch.int8)
        got = torch._int_mm(a.to("tiny"), b.to("tiny"))
        self.assertEqual((got.dtype, got.tolist()), (torch.int32, torch._int_mm(a, b).tolist()))
        for wrong in (b, b.float().to("tiny"), b[:5].to("tiny")):
            with self.assertRaises(RuntimeError):
                torch._int_mm(a.to("tiny"), wrong)

    def test_assertions_of_tensors(self):
        torch._assert_async(torch.tensor(3, device="tiny"))
        for given in (torch.tensor(0), torch.tensor([0, 1])):
            errors = []
            for device in ("cpu", "tiny"):
                with self.assertRaises(RuntimeError) as raised:
                    torch._assert_async(given.to(device))
                errors.append(str(raised.exception))
            self.assertEqual(*errors)
        with self.assertRaisesRegex(RuntimeError, "no mass"):
            torch._assert_async(torch.zeros(1, device="tiny"), "no mass")


class Devices(unittest.TestCase):
    def test_there_is_one(self):
        x = torch.ones(2, device="tiny")
        for call in (lambda: torch.ones(2, device="tiny:1"), lambda: torch.zeros(2).to("tiny:7"), lambda: x.to("tiny:2"),
                     lambda: torch.empty_strided((2,), (1,), device="tiny:1"), lambda: torch.tensor([1.0], device="tiny:1"),
                     lambda: nn.Linear(2, 2).to("tiny:1"), lambda: torch.Generator("tiny:1"), lambda: x.new_zeros(2, device="tiny:1")):
            with self.assertRaisesRegex(RuntimeError, "there is one device, tiny:0; got tiny:[1-9]"):
                call()
        self.assertEqual(torch.ones(2, device="tiny:0").sum().item(), 2)

    def test_parameters_that_others_hold_move_with_their_module(self):
        """Somebody refers to them weakly; a script keeps them in a list; a file of a script has no Parameters."""
        net = nn.Linear(3, 2)
        seen, weight = weakref.ref(net.weight), net.weight
        net(torch.ones(1, 3)).sum().backward()
        grad = net.weight.grad
        self.assertIs(net.to("tiny").weight, weight)
        self.assertIs(seen(), weight)
        self.assertIs(weight.grad, grad)
        self.assertEqual(grad.tolist(), [[1.0] * 3] * 2)
        net(torch.ones(1, 3, device="tiny")).sum().backward()  # adds to what was moved
        self.assertEqual(weight.grad.tolist(), [[2.0] * 3] * 2)

        torch.manual_seed(0)
        x, layers = torch.randn(2, 3, 4), nn.Sequential(nn.LSTM(4, 3, batch_first=True))
        want = layers(x)[0]
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            script = torch.jit.script(layers)
            torch.jit.save(script, file)
            file.seek(0)
            loaded = torch.jit.load(file)
        for one in (script, loaded):
            torch.testing.assert_close(one.to("tiny")(x.to("tiny"))[0].cpu(), want)
            self.assertEqual({p.device.type for p in one.parameters()}, {"tiny"})
            torch.testing.assert_close(one.to("cpu")(x)[0], want)

    def test_parameters_are_made_anew_for_who_asks(self):
        net, weight = nn.Linear(3, 2), None
        weight = net.weight
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            net.to("tiny")
        finally:
            torch.__future__.set_overwrite_module_params_on_conversion(False)
        self.assertEqual((net.weight.device.type, weight.device.type), ("tiny", "cpu"))


if __name__ == "__main__":
    unittest.main()
