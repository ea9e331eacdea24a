"""Regions of pictures, convolutions that are moved and determinants against onnxruntime, at random shapes and
attributes.

    PYTHONPATH=build/release/bindings/python regions_test.py [PATTERN]
"""

import sys

import named_tests

try:
    import hypothesis
    import numpy as np
    import onnxruntime
    import tiny
    from hypothesis import strategies as st
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
EXAMPLES = hypothesis.settings(max_examples=20, deadline=None, database=None, derandomize=True)


def check(op, inputs, version=22, tolerance=1e-4, constants=(), **attributes):
    names = [f"i{i}" if x is not None else "" for i, x in enumerate(inputs)]
    given = {name: x for i, (name, x) in enumerate(zip(names, inputs)) if x is not None and i not in constants}
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], op, ports,
                              [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(inputs[i], names[i]) for i in constants])  # fmt: skip
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10).SerializeToString()
    want = onnxruntime.InferenceSession(content).run(None, given)[0]
    model = tiny.Model.load(tiny.default_context(), content)
    got = np.array(model.run(list(given.values()))[0].numpy())
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(1, np.abs(want).max(initial=0)))


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9),
                  st.integers(1, 4), st.integers(1, 3), st.sampled_from(("half_pixel", "output_half_pixel")),
                  st.sampled_from((10, 16)), st.sampled_from(("avg", "max")))  # fmt: skip
def roi_align(seed, batch, channels, height, width, size, sampling, pixels, version, mode):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((batch, channels, height, width)).astype(np.float32)
    corners = np.sort(rng.uniform(-2, 12, (5, 2, 2)), axis=1).reshape(5, 4).astype(np.float32)
    more = {"coordinate_transformation_mode": pixels} if version >= 16 else {}
    check("RoiAlign", [x, corners, rng.integers(0, batch, 5)], version, output_height=size, output_width=3,
          sampling_ratio=sampling, spatial_scale=0.8, mode=mode, **more)  # fmt: skip


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4),
                  st.sampled_from((0.1, 1.0, 5.0, 40.0)), st.sampled_from(("half_pixel", "output_half_pixel")))
def roi_align_by_size(seed, height, width, size, scale, pixels):
    """As many places as a region has pixels, also of regions that are larger than the picture, or empty."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 2, height, width)).astype(np.float32)
    corners = np.sort(rng.uniform(-2, 12, (5, 2, 2)), axis=1).reshape(5, 4).astype(np.float32)
    corners[0, 2:] = corners[0, :2]
    check("RoiAlign", [x, corners, rng.integers(0, 2, 5)], 16, output_height=size, output_width=3, sampling_ratio=0,
          spatial_scale=scale, mode="avg", coordinate_transformation_mode=pixels)


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 3), st.integers(2, 9), st.integers(2, 9), st.integers(1, 4))
def max_roi_pool(seed, batch, height, width, size):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((batch, 2, height, width)).astype(np.float32)
    corners = np.sort(rng.integers(0, 2 * min(height, width), (5, 2, 2)), axis=1).reshape(5, 4) / 2
    regions = np.concatenate([rng.integers(0, batch, (5, 1)), corners], 1).astype(np.float32)
    check("MaxRoiPool", [x, regions], version=21, pooled_shape=[size, 2], spatial_scale=1.0)


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 2), st.sampled_from(((1, 1), (2, 1), (1, 2), (2, 2))),
                  st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2), st.booleans(),
                  st.booleans())  # fmt: skip
def deform_conv(seed, batch, groups, kernel, stride, dilation, pad, has_mask, has_bias):
    rng = np.random.default_rng(seed)
    group, offset_group = groups
    height, width = 7, 6
    x = rng.standard_normal((batch, 4, height, width)).astype(np.float32)
    w = rng.standard_normal((6, 4 // group, kernel, 2)).astype(np.float32)
    out = [(n + 2 * pad - (dilation * (k - 1) + 1)) // stride + 1 for n, k in ((height, kernel), (width, 2))]
    hypothesis.assume(min(out) > 0)
    taps = offset_group * kernel * 2
    offset = rng.uniform(-2.5, 2.5, (batch, 2 * taps, *out)).astype(np.float32)
    mask = rng.uniform(0, 1, (batch, taps, *out)).astype(np.float32)
    bias = rng.standard_normal(6).astype(np.float32)
    check("DeformConv", [x, w, offset, bias if has_bias else None, *([mask] if has_mask else [])], group=group,
          offset_group=offset_group, strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4,
          kernel_shape=[kernel, 2])  # fmt: skip


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 7), st.lists(st.integers(1, 3), max_size=2))
def det(seed, n, batch):
    rng = np.random.default_rng(seed)
    check("Det", [rng.standard_normal((*batch, n, n)).astype(np.float32)], tolerance=1e-3)


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.tuples(*[st.integers(1, 7)] * 2), st.tuples(*[st.integers(1, 9)] * 2),
                  st.sampled_from(("nearest", "linear")), st.booleans())  # fmt: skip
def resized_crop(seed, size, wanted, mode, has_axes):
    """A region that is data: all four axes', or those of the pictures."""
    # onnxruntime leaves axes that keep their size as they are, whatever the region is.
    hypothesis.assume(size[0] != wanted[0] and size[1] != wanted[1])
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 3, *size)).astype(np.float32)
    begin, end = np.sort(rng.uniform(-0.3, 1.3, (2, 2)), axis=0)
    whole = 0 if has_axes else 2
    region = np.concatenate([np.zeros(whole), begin, np.ones(whole), end]).astype(np.float32)
    sizes = np.array(wanted if has_axes else (2, 3, *wanted), np.int64)
    attributes = {"axes": [2, 3]} if has_axes else {}
    check("Resize", [x, region, None, sizes], 19, constants=(3,), mode=mode, extrapolation_value=-4.0,
          coordinate_transformation_mode="tf_crop_and_resize", **attributes)


TESTS = (resized_crop, roi_align, roi_align_by_size, max_roi_pool, deform_conv, det)


if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
