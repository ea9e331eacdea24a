"""Comparing with PyTorch: values and slopes of one function of both."""

import unittest

import hypothesis
import hypothesis.strategies as st
import numpy as np
import torch

from tiny import Tensor

BOX = dict(max_examples=30, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(hypothesis.HealthCheck))
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def numbers(shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


class Case(unittest.TestCase):
    def same(self, of_tiny, of_torch, *arrays, slopes=True, rtol=2e-5, atol=2e-6):
        """Both give the same values, and slopes of sums of their products with the same weights."""
        ours = [Tensor(array) for array in arrays]
        theirs = [torch.tensor(array, requires_grad=slopes) for array in arrays]
        want = of_torch(*theirs)
        got = of_tiny(*ours)
        self.assertEqual(tuple(got.shape), tuple(want.shape))
        if slopes:
            weights = numbers(tuple(want.shape), 9)
            got_slopes = (of_tiny(*ours) * Tensor(weights)).sum().gradient(*ours)
            want_slopes = torch.autograd.grad((want * torch.tensor(weights)).sum(), theirs)
            for one, other in zip(got_slopes, want_slopes):
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=rtol, atol=atol)
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=rtol, atol=atol)
