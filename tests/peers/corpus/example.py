"""What a maker of the corpus gives for one network: the module, inputs to trace it by, and which axes are free."""

import dataclasses
import zlib

import torch


@dataclasses.dataclass
class Example:
    module: torch.nn.Module
    inputs: tuple
    names: tuple = ()
    free: dict = dataclasses.field(default_factory=dict)  # {input's name: {axis: name of the dimension}}
    opset: int = 17

    def __post_init__(self):
        self.names = self.names or tuple(f"x{i}" for i in range(len(self.inputs)))
        self.module = self.module.eval()


def settled(name, maker):
    """The example that a maker makes with weights that depend on its name alone; running statistics are no zeros."""
    torch.manual_seed(zlib.crc32(name.encode()))
    example = maker()
    for module in example.module.modules():
        if getattr(module, "running_mean", None) is not None:
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return example


def free_axes(example):
    """The free axes as torch.export wants them; a sum of dimensions has none of its own."""
    return tuple({axis: torch.export.Dim.DYNAMIC for axis in example.free.get(name, {})} or None for name in example.names)


def export(name, maker, exporter, path):
    """Writes the model by torch's exporter of that name: "script" traces, "export" is torch.export's."""
    example = settled(name, maker)
    if exporter == "script":
        torch.onnx.export(example.module, example.inputs, str(path), dynamo=False, opset_version=example.opset,
                          input_names=list(example.names), dynamic_axes=example.free or None)  # fmt: skip
        return
    # Arguments of forward(*inputs) are one to torch.export.
    shapes = free_axes(example) if example.free else None
    torch.onnx.export(example.module, example.inputs, str(path), dynamo=True, external_data=False, verbose=False,
                      input_names=list(example.names), dynamic_shapes=shapes,
                      opset_version=max(example.opset, 18))  # fmt: skip
