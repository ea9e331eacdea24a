"""Attention as nn.MultiheadAttention and nn.TransformerEncoderLayer ask for it where nothing is trained: in one call."""

import math

import torch
from torch.nn import functional as F
from torch.nn.attention import flex_attention

MASK_OF_SCORES, MASK_OF_KEYS = 0, 1  # mask_type; another is for each head


def _masked(scores, mask, mask_type):
    if mask is None:
        return scores
    if mask_type == MASK_OF_KEYS:
        mask = mask[:, None, None, :]
    if mask.dtype == torch.bool:
        return scores.masked_fill(mask, -math.inf)
    return scores + mask


def native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
                                need_weights=True, average_attn_weights=True, mask_type=None):
    q, k, v = (F.linear(x, weight, bias).unflatten(-1, (num_head, -1)).transpose(1, 2)
               for x, weight, bias in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3)))
    scores = q @ k.transpose(-1, -2) / math.sqrt(embed_dim // num_head)
    weights = _masked(scores, mask, mask_type).softmax(-1)
    y = F.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return y, None
    return y, weights.mean(1) if average_attn_weights else weights


def transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps,
                                  norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2,
                                  ffn_bias_2, mask=None, mask_type=None):
    def attention(x):
        return native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False,
                                           mask_type=mask_type)[0]

    def wide(x):
        return F.linear((F.gelu if use_gelu else F.relu)(F.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def first(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)
    if norm_first:
        x = src + attention(first(src))
        return x + wide(second(x))
    x = first(src + attention(src))
    return second(x + wide(x))


def _accept_flexible():
    """torch.nn.attention.flex_attention lists the devices that it takes, by name; its own definition of the product runs on any."""
    refuse = getattr(flex_attention, "_validate_device", None)  # a name of its own, which another release may not have
    if refuse is None:
        return

    def validate(query, key, value):
        if query.device.type != "tiny":
            refuse(query, key, value)
    flex_attention._validate_device = validate


def register(library):
    _accept_flexible()
    library.impl("_native_multi_head_attention", native_multi_head_attention, "PrivateUse1")
    library.impl("_transformer_encoder_layer_fwd", transformer_encoder_layer_fwd, "PrivateUse1")
