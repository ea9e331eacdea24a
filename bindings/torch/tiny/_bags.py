"""Embedding bags: sums, means or greatest elements of rows that words choose, of words that lie one bag after the other."""

import math

import torch

SUM, MEAN, MAX = 0, 1, 2


def _kept(indices, padding_idx):
    """Whether words count, [n, 1]."""
    return (indices != padding_idx).unsqueeze(1)


def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=SUM, sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=-1):
    """What bags have, the bag of each word, the words of each bag, and which word each greatest element is of."""
    count, words = len(offsets) - include_last_offset, len(indices)
    begun = torch.zeros(words + 1, dtype=torch.int64, device=indices.device).index_add(0, offsets, torch.ones_like(offsets).long())
    bags = begun.cumsum(0)[:words] - 1
    kept = _kept(indices, padding_idx)
    sizes = torch.zeros(count, dtype=torch.int64, device=indices.device).index_add(0, bags, kept[:, 0].long())
    rows = weight.index_select(0, indices)
    if mode == MAX:
        most, words_of_most = _greatest(rows.masked_fill(~kept, -math.inf), indices, bags, count)
        return most, bags.to(indices.dtype), sizes.to(indices.dtype), words_of_most
    wide = rows.float() if rows.dtype.itemsize == 2 else rows
    if per_sample_weights is not None:
        wide = wide * per_sample_weights.unsqueeze(1)
    total = wide.new_zeros(count, weight.shape[1]).index_add(0, bags, wide.masked_fill(~kept, 0))
    if mode == MEAN:
        total = total / sizes.clamp(min=1).unsqueeze(1)
    return total.to(weight.dtype), bags.to(indices.dtype), sizes.to(indices.dtype), sizes.to(indices.dtype)


def _greatest(rows, indices, bags, count):
    words, width = rows.shape
    places = bags.unsqueeze(1).expand(-1, width)
    most = rows.new_full((count, width), -math.inf).scatter_reduce(0, places, rows, "amax")
    number = torch.arange(words, device=rows.device).unsqueeze(1)
    number = torch.where((rows == most.index_select(0, bags)) & (rows > -math.inf), number, words)
    first = torch.full((count, width), words, device=rows.device).scatter_reduce(0, places, number, "amin")
    is_empty = first == words
    chosen = torch.cat((indices, indices.new_full((1,), -1))).take(first)
    return most.masked_fill(is_empty, 0), chosen


def embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
                                 per_sample_weights, padding_idx=-1):
    table = grad.new_zeros(num_weights, grad.shape[1])
    if mode == MAX:
        return table.scatter_add(0, maximum_indices.clamp(min=0).long(), grad.masked_fill(maximum_indices < 0, 0))
    rows = grad.index_select(0, offset2bag)
    if mode == MEAN:
        rows = rows / bag_size.index_select(0, offset2bag).clamp(min=1).unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if scale_grad_by_freq:
        often = grad.new_zeros(num_weights).index_add(0, indices, torch.ones_like(indices, dtype=grad.dtype))
        rows = rows / often.index_select(0, indices).unsqueeze(1)
    return table.index_add(0, indices, rows.masked_fill(~_kept(indices, padding_idx), 0))


def embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
                           per_sample_weights, padding_idx=-1):
    if sparse:
        return torch.ops.aten._embedding_bag_sparse_backward(grad, indices, offsets, offset2bag, bag_size, num_weights,
                                                             scale_grad_by_freq, mode, per_sample_weights, padding_idx)
    return embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
                                        per_sample_weights, padding_idx)


def embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode, padding_idx=-1):
    products = grad.index_select(0, offset2bag) * weight.index_select(0, indices)
    return products.masked_fill(~_kept(indices, padding_idx), 0).sum(1)


def register(library):
    library.impl("_embedding_bag", embedding_bag, "PrivateUse1")
    library.impl("_embedding_bag_forward_only", embedding_bag, "PrivateUse1")
    library.impl("_embedding_bag_backward", embedding_bag_backward, "PrivateUse1")
    library.impl("_embedding_bag_dense_backward", embedding_bag_dense_backward, "PrivateUse1")
    library.impl("_embedding_bag_per_sample_weights_backward", embedding_bag_per_sample_weights_backward, "PrivateUse1")
