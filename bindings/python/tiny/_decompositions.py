"""Decompositions of matrices, of the last two axes of a tensor: x.qr(), x.svd()."""

import math

from . import dtypes
from ._arrangement import diagonal, pad_to
from ._reading import Reading, WrongArgument
from .native import Tensor


def _check(call, matrices):
    if matrices.ndim < 2:
        raise WrongArgument(f"{call}: matrices are wanted, not shape {list(matrices.shape)}")
    return matrices if matrices.dtype.is_float else matrices.cast(dtypes.default_float)


def _unit(self, size):
    """Unit matrices of the same leading axes and dtype."""
    return Tensor.eye(size, dtype=self.dtype).expand([*self.shape[:-2], size, size])


def _divided(a, b):
    """a / b, and 0 where b is 0, without a slope that is no number."""
    nothing = b.eq(0)
    return nothing.where(0, a / nothing.where(1, b))


def _root(squares):
    """The square root, whose slope at 0 is 0."""
    nothing = squares.eq(0)
    return nothing.where(0, nothing.where(1, squares).sqrt())


def _reflector(column):
    """Of [.., m, 1] the vector v and 2 / (v^T v) of Householder's reflection that leaves nothing below the first
    element; 0 of a column that is 0."""
    first = column[..., :1, :]
    sign = (first < 0).where(-1.0, 1.0).cast(column.dtype)
    top = first + sign * _root(column.square().sum(axis=-2, keepdim=True))
    v = top.cat(column[..., 1:, :], dim=-2)
    return v, _divided(2.0, v.square().sum(axis=-2, keepdim=True))


def qr(self, mode=None) -> tuple:
    """Q, whose columns are orthogonal and of length 1, and R, upper triangular, of which Q @ R is the matrix.  Of m rows
    and n columns Q is m x m ("complete"), or m x min(m, n) ("reduced")."""
    matrices = _check("qr", self)
    m, n = matrices.shape[-2:]
    if mode is None and m > n and not Reading.tinygrad:
        raise WrongArgument(f"qr of shape {list(self.shape)}: say mode='complete' or 'reduced'")
    if mode not in (None, "complete", "reduced"):
        raise WrongArgument(f"qr: mode={mode!r}; known: 'complete', 'reduced'")
    q, r = _unit(matrices, m), matrices
    for i in range(min(m - 1, n)):
        v, factor = _reflector(r[..., i:, i:i + 1])
        v = v.pad([None] * (matrices.ndim - 2) + [(i, 0), None])
        scaled = v * factor
        r = (r - scaled @ (v.transpose(-2, -1) @ r)).contiguous()
        q = (q - (q @ v) @ scaled.transpose(-2, -1)).contiguous()
    if mode == "reduced":
        q, r = q[..., :min(m, n)], r[..., :min(m, n), :]
    return q, r.triu()


# ---- Singular values

def _rotation(left, right):
    """Cosine and sine of the angles that make columns orthogonal to those beside them."""
    alpha, beta = (half.square().sum(axis=-2, keepdim=True) for half in (left, right))
    gamma = (left * right).sum(axis=-2, keepdim=True)
    zeta = _divided(beta - alpha, gamma * 2)
    sign = (zeta < 0).where(-1.0, 1.0).cast(zeta.dtype)
    tangent = gamma.eq(0).where(0, sign / (zeta.abs() + (zeta.square() + 1).sqrt()))
    cosine = (tangent.square() + 1).rsqrt()
    return cosine, cosine * tangent


def _rotated(columns, rows):
    """One round of Jacobi's method on `rows` rows of [.., rows + n, n]: each column of the first half is made orthogonal
    to that of the second half in its place; then all but the first move on, so that in n - 1 rounds each meets each."""
    half = columns.shape[-1] // 2
    left, right = columns[..., :half], columns[..., half:]
    cosine, sine = _rotation(left[..., :rows, :], right[..., :rows, :])
    left, right = left * cosine - right * sine, left * sine + right * cosine
    if half > 1:
        left, right = (left[..., :1].cat(right[..., :1], left[..., 1:half - 1], dim=-1),
                       right[..., 1:].cat(left[..., half - 1:], dim=-1))
    return left.cat(right, dim=-1).contiguous()


def _orthogonal_columns(matrices):
    """(A V, V) of which the columns of the first are orthogonal, by Jacobi's method from one side, for n columns."""
    rows, n = matrices.shape[-2:]
    even = n + n % 2  # an odd one more is 0, and meets nothing
    if even == 0:
        return matrices, _unit(matrices, n)
    leading = [None] * (matrices.ndim - 2)
    columns = pad_to(matrices, *leading, None, even).cat(_unit(matrices, even), dim=-2).contiguous()
    sweeps = 4 + max(2, math.ceil(math.log2(even)))
    for _ in range(sweeps * max(1, even - 1)):
        columns = _rotated(columns, rows)
    return columns[..., :rows, :], columns[..., rows:, :]


def svd(self, full_matrices=True) -> tuple:
    """U, S, V of which U @ diag(S) @ V is the matrix: the columns of U and the rows of V are orthogonal and of length 1, S
    descends.  Of m rows and n columns U is m x m and V n x n; without `full_matrices` m x k and k x n with
    k = min(m, n)."""
    matrices = _check("svd", self)
    if matrices.shape[-2] < matrices.shape[-1]:
        u, s, v = svd(matrices.transpose(-2, -1), full_matrices)
        return v.transpose(-2, -1), s, u.transpose(-2, -1)
    m, n = matrices.shape[-2:]
    scaled, v = _orthogonal_columns(matrices)
    values, places = _root(scaled.square().sum(axis=-2)).sort(descending=True)
    places, values = places[..., :n], values[..., :n]

    def in_order(columns):
        return columns.gather(-1, places.unsqueeze(-2).expand([*columns.shape[:-1], n]))
    v = in_order(v)[..., :n, :]
    # Householder's reflections leave the columns but for signs, and complete those of no length.
    u, signs = qr(_divided(in_order(scaled), values.unsqueeze(-2)), "complete" if full_matrices else "reduced")
    signs = (diagonal(signs, 0, -2, -1) < 0).where(-1.0, 1.0).cast(u.dtype)
    u = u * signs.pad([None] * (signs.ndim - 1) + [(0, u.shape[-1] - n)], value=1.0).unsqueeze(-2)
    return u, values, v.transpose(-2, -1)


Tensor.qr, Tensor.svd = qr, svd
