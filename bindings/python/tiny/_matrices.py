"""Products and decompositions of matrices: Tensor.einsum("ij,jk->ik", a, b), x.qr(), x.svd(), x.newton_schulz(..)."""


from ._operator import op
from ._reading import WrongArgument
from .native import Tensor


def einsum(formula, *operands, dtype=None) -> Tensor:
    """Sums of products over named axes, as numpy.einsum: "ij,jk->ik"; of tensors one by one or as one list.  With a
    dtype the sums are made in it."""
    tensors = list(operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands)
    count = formula.split("->")[0].count(",") + 1
    if count != len(tensors):
        raise WrongArgument(f"einsum({formula!r}): {count} operands are wanted, not {len(tensors)}")
    if dtype is not None:
        tensors = [tensor.cast(dtype) for tensor in tensors]
    return op("Einsum", *tensors, equation=formula.replace(" ", ""))


def dot(self, w, dtype=None) -> Tensor:
    """The product of matrices; of a row of numbers the sum of products.  With a dtype the sums are made in it."""
    if not self.ndim or not w.ndim:
        raise WrongArgument(f"dot: shapes {list(self.shape)} and {list(w.shape)}: one axis at least is wanted")
    return _matmul(self, w) if dtype is None else _matmul(self.cast(dtype), w.cast(dtype))


def matmul(self, x, reverse=False, dtype=None) -> Tensor:
    """self @ x; with `reverse` x @ self.  With a dtype the sums are made in it."""
    return dot(x, self, dtype) if reverse else dot(self, x, dtype)


def newton_schulz(self, steps, params, eps=1e-7) -> Tensor:
    """The matrices after `steps` steps of G (params[0] + params[1] A + params[2] A A + ..) with A = G^T G, from a Frobenius
    norm of 1 on: towards the nearest orthogonal ones."""
    if self.ndim < 2:
        raise WrongArgument(f"newton_schulz: matrices are wanted, not shape {list(self.shape)}")
    if self.shape[-2] > self.shape[-1]:
        return newton_schulz(self.transpose(-2, -1), steps, params, eps).transpose(-2, -1)
    made = self / (self.square().sum(axis=(-2, -1), keepdim=True).sqrt() + eps)
    for _ in range(steps):
        square = made @ made.transpose(-2, -1)
        term, total = made, made * params[0]
        for factor in params[1:]:
            term = square @ term
            total = total + term * factor
        made = total
    return made


_matmul = Tensor.matmul
Tensor.einsum = staticmethod(einsum)
for _function in (dot, matmul, newton_schulz):
    setattr(Tensor, _function.__name__, _function)
