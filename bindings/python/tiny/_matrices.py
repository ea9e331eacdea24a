"""Products and decompositions of matrices: Tensor.einsum("ij,jk->ik", a, b), x.mm(y), x.qr(), x.svd(), x.newton_schulz(..)."""

from ._movement import axis_of
from ._operands import is_array, want_tensors, want_text
from ._operator import op
from ._reading import WrongArgument
from .methods import Dtype
from .native import Tensor


def einsum(formula, *operands, dtype=None) -> Tensor:
    """Sums of products over named axes, as numpy.einsum: "ij,jk->ik"; of tensors one by one or as one list.  With a
    dtype the sums are made in it."""
    want_text("einsum", formula=formula)
    tensors = list(operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands)
    count = formula.split("->")[0].count(",") + 1
    if count != len(tensors):
        raise WrongArgument(f"einsum({formula!r}): {count} operands are wanted, not {len(tensors)}")
    want_tensors("einsum", **{f"operand {i}": tensor for i, tensor in enumerate(tensors)})
    if dtype is not None:
        tensors = [tensor.cast(dtype) for tensor in tensors]
    return op("Einsum", *tensors, equation=formula.replace(" ", ""))


def dot(self, w, dtype=None) -> Tensor:
    """The product of matrices; of a row of numbers the sum of products.  With a dtype the sums are made in it."""
    if not is_array(w):
        want_tensors("dot", w=w)
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


# ---- As PyTorch spells it, of so many axes

def _of_axes(call, *wanted):
    """Raises unless each tensor has as many axes as its description has sizes."""
    for tensor, sizes in wanted:
        if not is_array(tensor):
            want_tensors(call, **{f"[{sizes}]": tensor})
        if tensor.ndim != sizes.count(",") + 1:
            raise WrongArgument(f"{call}: [{sizes}] is wanted, not shape {list(tensor.shape)}")


def mm(self, mat2) -> Tensor:
    """[n, k] @ [k, m]."""
    _of_axes("mm", (self, "n, k"), (mat2, "k, m"))
    return dot(self, mat2)


def bmm(self, mat2) -> Tensor:
    """[b, n, k] @ [b, k, m]."""
    _of_axes("bmm", (self, "b, n, k"), (mat2, "b, k, m"))
    if self.shape[0] != mat2.shape[0]:
        raise WrongArgument(f"bmm: {self.shape[0]} matrices and {mat2.shape[0]}")
    return dot(self, mat2)


def mv(self, vec) -> Tensor:
    """[n, k] @ [k]."""
    _of_axes("mv", (self, "n, k"), (vec, "k"))
    return dot(self, vec)


def outer(self, vec2) -> Tensor:
    """[n, m]: the products of each element of [n] with each of [m]."""
    _of_axes("outer", (self, "n"), (vec2, "m"))
    return self.unsqueeze(1) * vec2.unsqueeze(0)


def inner(self, other) -> Tensor:
    """The sums of products over the last axis of both: [..n, ..m] of [..n, k] and [..m, k]."""
    if not self.ndim or not other.ndim:
        return self * other
    axes = other.ndim - 1
    return (self.reshape([*self.shape[:-1], *[1] * axes, self.shape[-1]]) * other).sum(axis=-1)


def vdot(self, other) -> Tensor:
    """The sum of products of [n] and [n]."""
    _of_axes("vdot", (self, "n"), (other, "n"))
    return dot(self, other)


def _added(name, product, doc):
    def add(self, first, second, *, beta=1, alpha=1) -> Tensor:
        made = product(first, second)
        made = made if alpha == 1 else made * alpha
        return made if beta == 0 else made + (self if beta == 1 else self * beta)
    add.__name__, add.__qualname__, add.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, add)


def cross(self, other, dim=-1) -> Tensor:
    """The vector at right angles to both, of three elements along an axis."""
    axis = axis_of(self, dim)
    if self.shape[axis] != 3 or other.shape[axis] != 3:
        raise WrongArgument(f"cross: 3 elements along axis {dim} are wanted, of shapes {list(self.shape)} and "
                            f"{list(other.shape)}")
    x, y = self.expand(other.shape) if self.ndim == other.ndim else self, other

    def turned(tensor, by):
        return tensor.roll(-by, axis)
    return turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1)


def matrix_power(self, n) -> Tensor:
    """Square matrices [.., n, n], n times the factor of a product; n is not negative."""
    if self.ndim < 2 or self.shape[-1] != self.shape[-2] or n < 0:
        raise WrongArgument(f"matrix_power: square matrices and n >= 0 are wanted, not {list(self.shape)} and {n}")
    made, square = None, self
    while n:
        if n & 1:
            made = square if made is None else dot(made, square)
        n >>= 1
        square = dot(square, square) if n else square
    if made is None:
        places = self.context.arange(Dtype.INT64, self.shape[-1])
        made = places.unsqueeze(1).eq(places).cast(self.dtype).expand(self.shape)
    return made


_matmul = Tensor.matmul
Tensor.image_dot, Tensor.image_conv2d = dot, Tensor.conv2d  # for devices with images; here they are the same
Tensor.einsum = staticmethod(einsum)
_added("addmm", mm, "beta * x + alpha * (first @ second), of matrices.")
_added("addmv", mv, "beta * x + alpha * (first @ second), of a matrix and a vector.")
_added("addr", outer, "beta * x + alpha * outer(first, second).")
_added("baddbmm", bmm, "beta * x + alpha * (first @ second), of as many matrices.")
_added("addbmm", lambda first, second: bmm(first, second).sum(axis=0),
       "beta * x + alpha * the sum of the products of as many matrices.")
for _function in (dot, matmul, newton_schulz, mm, bmm, mv, outer, inner, vdot, cross, matrix_power):
    setattr(Tensor, _function.__name__, _function)
Tensor.ger = outer
