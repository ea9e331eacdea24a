"""Sparse tensors (COO) as operators of dense ones: their indices and values are tensors of the device."""

import math

import torch


def _made(indices, values, shape, is_coalesced=False):
    return torch.ops.aten._sparse_coo_tensor_unsafe(indices, values, shape, is_coalesced=is_coalesced)


def _with(self, values):
    """The same places with other values."""
    return _made(self._indices(), values, self.shape, self.is_coalesced())


def coalesce(self):
    """Each place once, in order, with the sum of its values."""
    indices, values, sizes = self._indices(), self._values(), self.shape[:self.sparse_dim()]
    steps = [math.prod(sizes[axis + 1:]) for axis in range(len(sizes))]
    flat = sum((row * step for row, step in zip(indices, steps)), torch.zeros_like(indices[0]) if len(sizes) else indices.sum(0))
    places, which = torch.unique(flat, return_inverse=True)
    wide = values.int() if values.dtype == torch.bool else values
    sums = wide.new_zeros(len(places), *values.shape[1:]).index_add(0, which, wide).to(values.dtype)
    apart = [(places // step) % size for step, size in zip(steps, sizes)]
    return _made(torch.stack(apart) if apart else indices[:, :len(places)], sums, self.shape, True)


def _is_number(other):
    return not isinstance(other, torch.Tensor) or (other.dim() == 0 and not other.is_sparse)


def add(self, other, *, alpha=1):
    if not self.is_sparse:
        return add_(self.clone().to(torch.promote_types(self.dtype, other.dtype)), other, alpha=alpha)
    if not other.is_sparse:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if self.shape != other.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}")
    if self.sparse_dim() != other.sparse_dim():
        raise RuntimeError("add: expected 'self' and 'other' to have same sparse and dense dimensions")
    dtype = torch.promote_types(self.dtype, other.dtype)
    values = torch.cat([self._values().to(dtype), other._values().to(dtype) * alpha])
    return _made(torch.cat([self._indices(), other._indices()], 1), values, self.shape)


def add_(self, other, *, alpha=1):
    if self.is_sparse:
        return self.copy_(add(self, other, alpha=alpha))
    if self.shape != other.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}")
    if other._nnz() and other.sparse_dim():
        values = (other._values() * alpha).to(self.dtype)
        self.index_put_(tuple(other._indices()), values, accumulate=True)
    elif other._nnz():
        self.add_(other._values().sum(0), alpha=alpha)
    return self


def sub(self, other, *, alpha=1):
    return add(self, other, alpha=-alpha)


def sub_(self, other, *, alpha=1):
    return add_(self, other, alpha=-alpha)


def mul(self, other):
    if not isinstance(self, torch.Tensor) or not self.is_sparse:
        self, other = other, self
    if _is_number(other):
        return _with(self, self._values() * other)
    self = self.coalesce()
    return _with(self, self._values() * sparse_mask(other.expand(self.shape) if not other.is_sparse else other, self)._values())


def mul_(self, other):
    if not self.is_sparse:
        return self.copy_(mul(self, other).to_dense())
    return self.copy_(mul(self, other))


def div(self, other):
    if not self.is_sparse or not _is_number(other):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor")
    return _with(self, self._values() / other)


def div_(self, other):
    return self.copy_(div(self, other))


def pow_scalar(self, exponent):
    self = self.coalesce()
    return _with(self, self._values() ** exponent)


def sparse_mask(self, mask):
    """What `self` has at the places of `mask`."""
    dense = self.to_dense() if self.is_sparse else self
    if dense.shape != mask.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
                           f"{list(mask.shape)}")
    if not mask.sparse_dim():
        return _with(mask, dense.expand(mask._values().shape).clone())
    return _with(mask, dense[tuple(mask._indices())])


def mm(self, other):
    """A sparse matrix times a dense one: rows of this, weighed, added up where the first has them."""
    if not self.is_sparse or other.is_sparse:
        raise NotImplementedError("mm: device \"tiny\" multiplies a sparse matrix with a dense one, in this order")
    rows, columns = self._indices()
    weighed = self._values().unsqueeze(1) * other.index_select(0, columns)
    return weighed.new_zeros(self.shape[0], other.shape[1]).index_add(0, rows, weighed)


def addmm(self, first, second, *, beta=1, alpha=1):
    return self * beta + mm(first, second) * alpha


def _of_sums(function):
    """A function of numbers that is 0 at 0, of each place's sum."""
    def apply(self):
        self = self.coalesce()
        return _with(self, function(self._values()))
    return apply


def _put(function):
    """The same with a result that the caller brings."""
    def apply(self, other, *, out, **options):
        return out.copy_(function(self, other, **options))
    return apply


def register(library):
    for name, function in (("_coalesce", coalesce), ("add.Tensor", add), ("add_.Tensor", add_), ("sub.Tensor", sub), ("sub_.Tensor", sub_),
                           ("mul.Tensor", mul), ("mul_.Tensor", mul_), ("div.Tensor", div), ("div_.Tensor", div_),
                           ("pow.Tensor_Scalar", pow_scalar), ("sparse_mask", sparse_mask), ("mm", mm), ("addmm", addmm)):
        library.impl(name, function, "SparsePrivateUse1")
    for name, function in ("add.out", add), ("sub.out", sub), ("mul.out", mul), ("div.out", div):
        library.impl(name, _put(function), "SparsePrivateUse1")
    for name in "neg", "abs", "sqrt", "sign":
        library.impl(name, _of_sums(getattr(torch, name)), "SparsePrivateUse1")
