"""What the order of elements decides: medians, places in sorted rows, running extrema, and what is written one after the other."""

import torch


def _of_rows(function, self, dim, keepdim):
    """Of rows along `dim`; a tensor without dimensions is one of one element."""
    rows = self.reshape(1) if self.dim() == 0 else self.movedim(dim, -1)
    made = function(rows)
    if self.dim() == 0:
        return tuple(one.reshape(()) for one in made)
    return tuple(one.unsqueeze(-1).movedim(-1, dim) if keepdim else one for one in made)


# ---- Elements by their rank --------------------------------------------------------------------------------------------------


def _sorted(rows):
    """NaNs stand last."""
    return rows.sort(dim=-1, stable=True)


def _at(pair, place):
    return tuple(one.gather(-1, place).squeeze(-1) for one in pair)


def _numbers(rows):
    """How many of each row are none of NaN."""
    return (rows == rows).sum(-1, keepdim=True)


def _median(rows):
    numbers, count = _numbers(rows), rows.shape[-1]
    return _at(_sorted(rows), torch.where(numbers < count, numbers, (count - 1) // 2))


def _nanmedian(rows):
    return _at(_sorted(rows), ((_numbers(rows) - 1) // 2).clamp(min=0))


def _mode(rows):
    values, places = _sorted(rows)
    number = torch.arange(rows.shape[-1], device=rows.device)
    begins = torch.ones_like(values, dtype=torch.bool)
    begins[..., 1:] = values[..., 1:] != values[..., :-1]
    begun = running(torch.maximum, torch.where(begins, number, 0), -1)
    return _at((values, places), (number - begun).argmax(-1, keepdim=True))


def median_along(self, dim, keepdim=False):
    return _of_rows(_median, self, dim, keepdim)


def nanmedian_along(self, dim, keepdim=False):
    return _of_rows(_nanmedian, self, dim, keepdim)


def mode(self, dim=-1, keepdim=False):
    return _of_rows(_mode, self, dim, keepdim)


def kthvalue(self, k, dim=-1, keepdim=False):
    torch._check(1 <= k <= (self.shape[dim] if self.dim() else 1),
                 lambda: f"kthvalue(): selected number k out of range for dimension {dim}")
    return _of_rows(lambda rows: tuple(one.select(-1, k - 1) for one in _sorted(rows)), self, dim, keepdim)


def _of_all(function):
    def median(self):
        if self.numel() == 0:
            return self.new_full((), float("nan") if self.is_floating_point() else 0)
        return function(self.reshape(-1))[0]
    return median


# ---- Running steps: as many as the length has bits, each over twice as many elements as the one before -----------------------


def running(function, values, dim):
    length, step = values.shape[dim], 1
    while step < length:
        first, rest = values.split((step, length - step), dim)
        values = torch.cat((first, function(values.narrow(dim, 0, length - step), rest)), dim)
        step *= 2
    return values


def _running_extremum(is_beyond):
    def helper(self, values, indices, dim):
        if self.dim() == 0 or self.numel() == 0:
            values.copy_(self)
            indices.zero_()
            return
        shape = [-1 if axis == dim % self.dim() else 1 for axis in range(self.dim())]
        found = self, torch.arange(self.shape[dim], device=self.device).view(shape).expand_as(self)
        length, step = self.shape[dim], 1
        while step < length:
            before = [one.narrow(dim, 0, length - step) for one in found]
            now = [one.narrow(dim, step, length - step) for one in found]
            # The later one of equals; behind a NaN nothing but another.
            stays = (now[0] != now[0]) | (is_beyond(now[0], before[0]) & (before[0] == before[0]))
            found = [torch.cat((one.narrow(dim, 0, step), torch.where(stays, new, old)), dim)
                     for one, new, old in zip(found, now, before)]
            step *= 2
        values.copy_(found[0])
        indices.copy_(found[1])
    return helper


def logcumsumexp(self, dim):
    if self.dim() == 0:
        return self.clone()
    wide = self.float() if self.dtype.itemsize == 2 else self
    return running(torch.logaddexp, wide, dim).to(self.dtype)


# ---- Places in sorted rows ---------------------------------------------------------------------------------------------------


def searchsorted(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    torch._check(side in (None, "left", "right"), lambda: f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    torch._check(not (right and side == "left"),
                 lambda: "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    torch._check(sorted_sequence.dtype == self.dtype,
                 lambda: "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary tensor "
                         f"dtype {sorted_sequence.dtype} and input value tensor dtype {self.dtype}")
    torch._check(sorted_sequence.dim() == 1 or self.dim() and sorted_sequence.shape[:-1] == self.shape[:-1],
                 lambda: "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
                         f"and input value tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} and input value "
                         f"tensor {list(self.shape)}")
    rows = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    count, places = rows.shape[-1], torch.zeros(self.shape, dtype=torch.int64, device=self.device)
    is_behind = torch.gt if right or side == "right" else torch.ge
    for step in reversed([1 << bit for bit in range(count.bit_length())]):
        further = places + step
        last = (further - 1).clamp(max=count - 1)
        row = rows.take(last) if rows.dim() == 1 else rows.gather(-1, last)
        places = torch.where((further <= count) & ~is_behind(row, self), further, places)
    return places.int() if out_int32 else places


def searchsorted_number(sorted_sequence, self, **options):
    return searchsorted(sorted_sequence, torch.tensor(self, dtype=sorted_sequence.dtype, device=sorted_sequence.device), **options)


# ---- What is counted or written one after the other --------------------------------------------------------------------------


def bincount(self, weights=None, minlength=0):
    torch._check_not_implemented(not self.dtype.is_floating_point, lambda: f"bincount of {self.dtype}: only integers are counted")
    torch._check(self.dim() == 1, lambda: "bincount only supports 1-d non-negative integral inputs.")
    torch._check(minlength >= 0, lambda: "minlength should be >= 0")
    torch._check(weights is None or weights.shape == self.shape, lambda: "weights should be 1-d and have the same length as input")
    dtype = torch.int64 if weights is None else torch.float32 if weights.dtype == torch.float32 else torch.float64
    least, most = (int(one) for one in self.aminmax()) if self.numel() else (0, -1)
    torch._check(least >= 0, lambda: "bincount only supports 1-d non-negative integral inputs.")
    added = torch.ones_like(self, dtype=dtype) if weights is None else weights.to(dtype)
    return torch.zeros(max(most + 1, minlength), dtype=dtype, device=self.device).index_add(0, self.long(), added)


def repeat_interleave(repeats, *, output_size=None):
    torch._check(repeats.dim() == 1, lambda: "repeat_interleave only accept 1D vector as repeat")
    ends = repeats.cumsum(0)
    if repeats.numel() == 0:
        return repeats.clone()
    least, total = torch.stack((repeats.min().to(ends.dtype), ends[-1])).tolist()
    torch._check(least >= 0, lambda: "repeats can not be negative")
    torch._check(output_size in (None, total), lambda: "allocated size does not match required size")
    return searchsorted(ends, torch.arange(total, device=ends.device), right=True).to(repeats.dtype)


def put_(self, index, source, accumulate=False):
    torch._check(self.dtype == source.dtype, lambda: "put_(): self and source expected to have the same dtype, but got self.dtype = "
                                                     f"{self.dtype} and source.dtype = {source.dtype}")
    torch._check(index.numel() == source.numel(), lambda: "put_(): Expected source and index to have the same number of elements")
    torch.ops.tiny.refuse_overlap(self, [index, source])
    flat = self.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return self.copy_(flat.view(self.shape))


def masked_scatter_(self, mask, source):
    torch._check(self.dtype == source.dtype, lambda: "masked_scatter: expected self and source to have same dtypes but got "
                                                     f"{self.dtype} and {source.dtype}")
    torch._check(mask.dtype == torch.bool, lambda: f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    mask = mask.expand(self.shape)
    number = mask.reshape(-1).cumsum(0)
    if source.numel() < mask.numel():
        torch._check(self.numel() == 0 or number[-1].item() <= source.numel(),
                     lambda: "masked_scatter: expected self and source to have the same number of elements as ones in mask")
    if self.numel() == 0 or source.numel() == 0:
        return self
    chosen = source.reshape(-1).take((number - 1).clamp(min=0))
    return self.copy_(torch.where(mask, chosen.view(self.shape), self))


def index_reduce(self, dim, index, source, reduce, include_self=True):
    torch._check(index.dim() <= 1, lambda: "index_reduce_(): Index is supposed to be a vector")
    if self.dim() == 0:
        return index_reduce(self.view(1), 0, index.view(1), source.view(1), reduce, include_self=include_self).view(())
    shape = [-1 if axis == dim % self.dim() else 1 for axis in range(self.dim())]
    return self.scatter_reduce(dim, index.long().view(shape).expand_as(source), source, reduce, include_self=include_self)


def embedding_renorm_(self, indices, max_norm, norm_type):
    places = indices.reshape(-1)
    rows = self.index_select(0, places)
    length = rows.norm(norm_type, 1, keepdim=True)
    return self.index_put_((places,), torch.where(length > max_norm, rows * (max_norm / (length + 1e-7)), rows))


# ---- Elements that differ ----------------------------------------------------------------------------------------------------


def _runs(rows, return_inverse, return_counts):
    """The first of each run of equal rows, which run each is in, and how long the runs are; a NaN is a run of its own."""
    count = rows.shape[0]
    begins = torch.ones(count, dtype=torch.bool, device=rows.device)
    begins[1:] = (rows[1:] != rows[:-1]).reshape(max(count - 1, 0), rows.shape[1:].numel()).any(1)
    starts = begins.nonzero().squeeze(1)
    run = begins.cumsum(0) - 1 if return_inverse else starts[:0]
    ends = torch.cat((starts[1:], starts.new_full((min(count, 1),), count)))
    return rows.index_select(0, starts), run, ends - starts if return_counts else starts[:0]


def _unique2(self, sorted=True, return_inverse=False, return_counts=False):
    values, places = _sorted(self.reshape(-1))
    values, run, lengths = _runs(values, return_inverse, return_counts)
    return values, run.scatter(0, places, run).view(self.shape) if return_inverse else run, lengths


def unique(self, sorted=True, return_inverse=False):
    return _unique2(self, sorted, return_inverse)[:2]


def unique_dim_consecutive(self, dim, return_inverse=False, return_counts=False):
    torch._check(self.numel() > 0 or self.shape[dim] == 0,
                 lambda: "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    rows, run, lengths = _runs(self.movedim(dim, 0), return_inverse, return_counts)
    return rows.movedim(0, dim), run, lengths


def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    if dim is not None and self.dim():
        return unique_dim_consecutive(self, dim, return_inverse, return_counts)
    values, run, lengths = _runs(self.reshape(-1), return_inverse, return_counts)
    return values, run.reshape(self.shape) if return_inverse else run, lengths


# ---- Into tensors that the caller brought ------------------------------------------------------------------------------------


def into(function, *names):
    """The form with out= of a function; results go where their names say."""
    def kernel(*given, **options):
        outputs = [options.pop(name) for name in names]
        made = function(*given, **options)
        for output, one in zip(outputs, made if isinstance(made, tuple) else (made,)):
            torch._check(torch.can_cast(one.dtype, output.dtype),
                         lambda: f"Expected out tensor to have dtype {one.dtype}, but got {output.dtype} instead")
            if output.shape != one.shape:
                output.resize_(one.shape)
            output.copy_(one)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]
    return kernel


def register(library):
    rows = {"median.dim_values": median_along, "nanmedian.dim_values": nanmedian_along, "kthvalue.values": kthvalue}
    for name, function in rows.items():
        library.impl(name, into(function, "values", "indices"), "PrivateUse1")
    for name, function in {
        "median": _of_all(_median),
        "nanmedian": _of_all(_nanmedian),
        "mode": mode,
        "_cummax_helper": _running_extremum(torch.ge),
        "_cummin_helper": _running_extremum(torch.le),
        "_logcumsumexp": logcumsumexp,
        "_logcumsumexp.out": into(logcumsumexp, "out"),
        "searchsorted.Tensor": searchsorted,
        "searchsorted.Tensor_out": into(searchsorted, "out"),
        "searchsorted.Scalar": searchsorted_number,
        "searchsorted.Scalar_out": into(searchsorted_number, "out"),
        "bincount": bincount,
        "repeat_interleave.Tensor": repeat_interleave,
        "put_": put_,
        "masked_scatter_": masked_scatter_,
        "_unique": unique,
        "_unique2": _unique2,
        "unique_consecutive": unique_consecutive,
        "unique_dim_consecutive": unique_dim_consecutive,
        "index_reduce.out": into(index_reduce, "out"),
        "embedding_renorm_": embedding_renorm_,
    }.items():
        library.impl(name, function, "PrivateUse1")
