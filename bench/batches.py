"""Convolutions of a batch and their gradients, channels last, with weights that vary: the kernels of training.

An input's gradient is a convolution of the padded gradient with the turned filter, a filter's gradient a sum over
images and places of products; each is one program of one kernel.  Results are compared with onnxruntime's, which
has channels first.  Winograd's tiles are left out: flops are those of the sums as they stand.
"""

import pathlib
import tempfile

import peers
import timing
from graph import Graph, node, values
from report import rows_text

# Images, channels, filters, the input's size, the filter's.
CONVOLUTIONS = {
    "128x1x28, 32 of 5x5": (128, 1, 32, 28, 5),
    "128x32x24, 32 of 5x5": (128, 32, 32, 24, 5),
    "128x32x10, 64 of 3x3": (128, 32, 64, 10, 3),
    "128x64x8, 64 of 3x3": (128, 64, 64, 8, 3),
    "64x32x34, 64 of 3x3": (64, 32, 64, 34, 3),
    "8x64x58, 64 of 3x3": (8, 64, 64, 58, 3),
    "16x128x30, 128 of 3x3": (16, 128, 128, 30, 3),
    "32x256x16, 256 of 3x3": (32, 256, 256, 16, 3),
    "32x64x17, 128 of 3x3": (32, 64, 128, 17, 3),
    "16x240x28, 40 of 1x1": (16, 240, 40, 28, 1),
}
FORMS = ("forward", "input gradient", "filter gradient")
TURN = 0.01
TOLERANCE = 1e-3  # of the largest magnitude: sums of up to 50,000 products, in other orders
LAST, SECOND = [0, 2, 3, 1], [0, 3, 1, 2]  # where channels go
SWAPPED = [1, 0, 2, 3]  # of filters, or of images and channels


def operands(form, sizes):
    """What is convolved with what in the standard's order, and by how much the first is padded."""
    images, channels, filters, size, kernel = sizes
    x, weight = values((images, channels, size, size), 1), values((filters, channels, kernel, kernel), 2)
    gradient = values((images, filters, size - kernel + 1, size - kernel + 1), 3)
    if form == "forward":
        return x, weight, 0
    if form == "input gradient":
        return gradient, weight, kernel - 1
    return x, gradient, 0


def expression(form, a, b, padding):
    """Of tensors with channels last, the filter as it is stored: the result with its channels last too, a filter's
    gradient as [height, width, channels, filters]."""
    a = a.permute(SECOND)
    if form == "forward":
        return a.conv(b).permute(LAST)
    if form == "input gradient":
        return a.conv(b.permute(SWAPPED).flip([2, 3]), padding=padding).permute(LAST)
    return a.permute(SWAPPED).conv(b.permute(SECOND).permute(SWAPPED)).permute([2, 3, 0, 1])


def tiny_contender(form, a, b, padding):
    import json

    import numpy
    import tiny

    context = tiny.Context(threads=1, cache=0, wino="0")
    arrays = [numpy.ascontiguousarray(a.transpose(LAST)),
              numpy.ascontiguousarray(b.transpose(LAST)) if form == "filter gradient" else b]  # fmt: skip
    inputs = [context.input(tiny.float32, list(array.shape)) for array in arrays]
    program = tiny.Program.compile(inputs, [expression(form, *inputs, padding)])
    run = tiny.Run.create(program)
    for index, array in enumerate(arrays):
        run.set_input(index, tiny.from_buffer(array, context=context))
    back = [2, 3, 0, 1] if form == "filter gradient" else SECOND
    about = {"kernel_count": len(json.loads(program.kernels().text())), "interpreted": program.interpreted_count}
    result = lambda: [run.output_tensor(0).numpy().transpose(back)]
    return timing.Contender("tiny", "tiny", run.execute, "threads 1, wino 0", result=result), about


def peer_contender(form, a, b, padding):
    """The same as one convolution with channels first, the operands laid out for it beforehand."""
    import numpy

    if form == "input gradient":
        b = b.transpose(SWAPPED)[:, :, ::-1, ::-1]
    elif form == "filter gradient":
        a, b = a.transpose(SWAPPED), b.transpose(SWAPPED)
    arrays = {"a": numpy.ascontiguousarray(a), "b": numpy.ascontiguousarray(b)}
    graph = Graph("", [node("Conv", ["a", "b"], "y", pads=[padding] * 4)], arrays, {}, (None,) * 4)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "row.onnx"
        path.write_bytes(graph.model().SerializeToString())
        return peers.onnxruntime_contender(peers.session_of(str(path), 1), arrays)


def measured(name, form, sizes, seconds):
    images, channels, filters, size, kernel = sizes
    a, b, padding = operands(form, sizes)
    ours, about = tiny_contender(form, a, b, padding)
    flops = 2.0 * images * channels * filters * kernel**2 * (size - kernel + 1) ** 2
    contenders = [ours, peer_contender(form, a, b, padding), timing.fma_limit(flops, 1)]
    figures, dropped = timing.measure(contenders, seconds, TURN, tolerance=TOLERANCE)
    return {"name": name, "flops": flops, "bytes": 0, "threads": 1, "contenders": figures, "notes": dropped, **about}


def run(arguments):
    """The part "batches" of bench/run: its figures and its table."""
    rows = []
    for convolution, sizes in CONVOLUTIONS.items():
        for form in FORMS:
            name = f"batch {convolution}, {form}"
            if arguments.only in name:
                rows.append(measured(name, form, sizes, arguments.duration))
    return {"rows": rows, "settings": peers.settings_lines(("onnxruntime",))}, rows_text(rows)
