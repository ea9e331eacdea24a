"""Sparse tensors (COO) and sparse gradients on device "tiny", compared with the CPU's."""

import copy
import io
import unittest

import torch
from torch import nn

import tiny.torch  # noqa: F401


def sparse(device, seed, shape=(5, 4), count=9, dense=0, coalesced=False):
    draw = torch.Generator().manual_seed(seed)
    rank = len(shape) - dense
    indices = torch.stack([torch.randint(size, (count,), generator=draw) for size in shape[:rank]])
    values = torch.randn(count, *shape[rank:], generator=draw)
    made = torch.sparse_coo_tensor(indices.to(device), values.to(device), shape)
    return made.coalesce() if coalesced else made


class Sparse(unittest.TestCase):
    def same(self, action, **tolerance):
        """What a function of a device gives is on that device, and the CPU's."""
        want, got = action("cpu"), action("tiny")
        if not isinstance(want, (list, tuple)):
            want, got = [want], [got]
        self.assertEqual(len(want), len(got))
        for expected, result in zip(want, got):
            self.assertEqual(result.device.type, "tiny")
            self.assertEqual(result.layout, expected.layout)
            torch.testing.assert_close(result.cpu(), expected, **tolerance)

    def trained(self, device, make, optimizer, steps=4):
        torch.manual_seed(5)
        net = make().to(device)
        chosen = optimizer([p for p in net.parameters()])
        draw = torch.Generator().manual_seed(6)
        for _ in range(steps):
            chosen.zero_grad()
            words = torch.randint(12, (3, 5), generator=draw).to(device)
            net(words).square().sum().backward()
            chosen.step()
        return [p.detach() for p in net.parameters()]

    def test_embeddings_are_trained_by_sparse_gradients(self):
        for optimizer in (lambda p: torch.optim.SGD(p, 0.05), lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
                          lambda p: torch.optim.SparseAdam(p, 0.05), lambda p: torch.optim.Adagrad(p, 0.05)):
            self.same(lambda device: self.trained(device, lambda: nn.Embedding(12, 4, sparse=True), optimizer), rtol=1e-4, atol=1e-5)
            self.same(lambda device: self.trained(device, lambda: nn.Embedding(12, 4, sparse=True, padding_idx=3), optimizer),
                      rtol=1e-4, atol=1e-5)
        for mode in "sum", "mean":
            self.same(lambda device: self.trained(device, lambda: nn.EmbeddingBag(12, 4, sparse=True, mode=mode),
                                                  lambda p: torch.optim.SparseAdam(p, 0.05)), rtol=1e-4, atol=1e-5)

    def test_a_gradient_is_sparse_and_adds_up(self):
        def gradient(device):
            torch.manual_seed(1)
            table = nn.Embedding(7, 3, sparse=True).to(device)
            for words in ([1, 2, 2], [2, 6]):
                table(torch.tensor(words, device=device)).exp().sum().backward()
            self.assertTrue(table.weight.grad.is_sparse)
            return table.weight.grad.coalesce(), table.weight.grad.to_dense()
        self.same(gradient, rtol=1e-5, atol=1e-6)

    def test_making_and_taking_apart(self):
        def parts(device):
            x = sparse(device, 2)
            self.assertEqual((x.sparse_dim(), x.dense_dim(), x._nnz(), x.is_coalesced()), (2, 0, 9, False))
            together = x.coalesce()
            self.assertTrue(together.is_coalesced())
            return together.indices(), together.values(), x.to_dense(), x.t().to_dense(), x._values(), x.clone().coalesce()
        self.same(parts)
        self.same(lambda device: [sparse(device, 3, (4, 3, 2), dense=1).coalesce(), sparse(device, 3, (4, 3, 2), dense=1).to_dense()])
        self.same(lambda device: torch.eye(4, device=device)[:3].to_sparse())
        self.same(lambda device: torch.arange(12.0, device=device).reshape(3, 4).to_sparse(1))
        self.same(lambda device: torch.sparse_coo_tensor(size=(2, 3), device=device).to_dense())

    def test_arithmetic(self):
        def results(device):
            a, b = sparse(device, 4), sparse(device, 5)
            dense = torch.arange(20.0, device=device).reshape(5, 4)
            added = dense.clone()
            added.t().add_(a.t(), alpha=-2)
            changed = a.clone()
            changed.mul_(3).add_(b, alpha=0.5).div_(2)
            return [(a + b).coalesce(), (a - b).coalesce(), (a * 2).coalesce(), (a / 4).coalesce(), (a * b).to_dense(), (-a).coalesce(),
                    a.coalesce().pow(2), dense + a, added, changed.coalesce(), a.clone().zero_().to_dense(), dense.sparse_mask(b.coalesce()),
                    torch.sparse.sum(a), a.coalesce().abs().sqrt()]
        self.same(results, rtol=1e-5, atol=1e-6)

    def test_a_sparse_matrix_times_a_dense_one(self):
        def product(device):
            matrix = sparse(device, 8, coalesced=True)
            x = torch.linspace(-1, 1, 12, device=device).reshape(4, 3).requires_grad_()
            y = torch.sparse.mm(matrix, x)
            y.square().sum().backward()
            return y.detach(), x.grad, matrix @ x.detach(), torch.addmm(torch.ones(5, 3, device=device), matrix, x.detach())
        self.same(product, rtol=1e-5, atol=1e-5)

    def test_devices_copies_and_files(self):
        x = sparse("cpu", 9)
        there = x.to("tiny")
        torch.testing.assert_close(there.cpu(), x)
        torch.testing.assert_close(copy.deepcopy(there).cpu(), x)
        torch.testing.assert_close(there.to(torch.float64).cpu(), x.double())
        held = io.BytesIO()
        torch.save(there, held)
        held.seek(0)
        again = torch.load(held)
        self.assertEqual(again.device.type, "tiny")
        torch.testing.assert_close(again.cpu(), x)
        self.assertIn("nnz=9", repr(there))

    def test_what_is_refused_says_why(self):
        a = sparse("tiny", 4)
        with self.assertRaisesRegex(RuntimeError, "sizes of 'self' and 'other' to match"):
            a + sparse("tiny", 4, (5, 5))
        with self.assertRaisesRegex(RuntimeError, "dense"):
            a + torch.zeros(5, 4, device="tiny")
        with self.assertRaisesRegex(NotImplementedError, "aten::exp.* has no kernel for sparse tensors on device"):
            torch.exp(a)

    def test_rows_and_blocks_are_refused_where_they_are_made(self):
        ends, places = torch.tensor([0, 1, 2], device="tiny"), torch.tensor([0, 1], device="tiny")
        values, blocks = torch.ones(2, device="tiny"), torch.ones(2, 1, 1, device="tiny")
        makers = {
            "csr": lambda: torch.sparse_csr_tensor(ends, places, values, (2, 2)),
            "csr of lists": lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], device="tiny"),
            "csr of no size": lambda: torch.sparse_csr_tensor(ends, places, values),
            "csc": lambda: torch.sparse_csc_tensor(ends, places, values, (2, 2)),
            "bsr": lambda: torch.sparse_bsr_tensor(ends, places, blocks, (2, 2)),
            "any": lambda: torch.sparse_compressed_tensor(ends, places, values, (2, 2), layout=torch.sparse_csr),
            "zeros": lambda: torch.zeros(2, 2, layout=torch.sparse_csr, device="tiny"),
            "of the CPU's": lambda: torch.eye(2).to_sparse_csr().to("tiny"),
            "of dense ones": lambda: torch.eye(2, device="tiny").to_sparse_csr(),
        }
        for name, make in makers.items():
            with self.subTest(name), self.assertRaisesRegex(NotImplementedError, "has no kernel .*on device .tiny."):
                make()


if __name__ == "__main__":
    unittest.main()
