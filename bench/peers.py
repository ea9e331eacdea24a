"""tiny and the libraries from PyPI as contenders; a library that is absent has no rows."""

import importlib
import importlib.metadata
import json

from timing import Contender

NAMES = ("onnxruntime", "torch", "tinygrad")


def installed(name):
    """The version of a library, or None."""
    try:
        importlib.import_module(name)
    except ImportError:
        return None
    return importlib.metadata.version(name)


def settings_lines(names=NAMES):
    how = {"onnxruntime": "ORT_ENABLE_ALL, bound inputs and outputs, inter_op threads 1",
           "torch": "inference mode, matmul precision as named, set_num_threads",
           "tinygrad": "compiled only, its disk cache off"}  # fmt: skip
    versions = {name: installed(name) for name in names}
    return [f"{name} {version}: {how[name]}" if version else f"{name}: not installed"
            for name, version in versions.items()]  # fmt: skip


def session_of(model, threads):
    """`model` is a path or the bytes of a model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def onnxruntime_contender(session, arrays, name="onnxruntime"):
    """Calls that copy neither inputs nor outputs."""
    binding = session.io_binding()
    for port in session.get_inputs():
        binding.bind_cpu_input(port.name, arrays[port.name])
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return Contender(name, "peer", lambda: session.run_with_iobinding(binding),
                     result=binding.copy_outputs_to_cpu)


class TinyModel:
    """A model compiled for the arrays' shapes, with a run that they are bound to."""

    def __init__(self, path, arrays, threads, **options):
        import tiny

        self.context = tiny.Context(threads=threads, **options)
        self.model = tiny.Model.load(self.context, str(path))
        names = [self.model.input_name(i) for i in range(self.model.input_count)]
        ordered = [arrays[name] for name in names]
        self.program = self.model.compile([size for array in ordered for size in array.shape])
        self.run = tiny.Run.create(self.program)
        for index, array in enumerate(ordered):
            self.run.set_input(index, tiny.from_buffer(array, context=self.context))
        kernels = json.loads(self.program.kernels().text())
        self.operations = sum(kernel["operations"] for kernel in kernels)
        self.about = {"kernel_count": len(kernels), "interpreted": self.program.interpreted_count}

    def outputs(self, like):
        """{name: array} of the last run, as the arrays of `like` are."""
        import numpy

        names = [self.model.output_name(i) for i in range(self.model.output_count)]
        made = [numpy.empty_like(like[name]) for name in names]
        for index, array in enumerate(made):
            self.run.read_output(index, array)
        return dict(zip(names, made))

    def contender(self, session, reference, name="tiny", kind="tiny"):
        """Its results in the order of the session's, which made those of `reference`."""
        order = [output.name for output in session.get_outputs()]

        def result():
            made = self.outputs(dict(zip(order, reference.result())))
            return [made[name] for name in order]

        return Contender(name, kind, self.run.execute, result=result)


def torch_contender(name, function, threads, precision="highest", settings=""):
    """None where torch is absent; `function` returns a tensor and is called in inference mode."""
    if not installed("torch"):
        return None
    import torch

    last = []

    @torch.inference_mode()
    def call():
        last[:] = [function(torch)]

    def before():
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)

    return Contender(name, "peer", call, settings or f"matmul precision {precision}",
                     before=before, result=lambda: [last[0].numpy()])
