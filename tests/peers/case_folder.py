"""Cases as the onnx package has its own: a model and its inputs in a folder, for tests/onnx/mutation_test.cpp."""

from onnx import numpy_helper


def save_case(folder, model, inputs):
    """`inputs` by name, in the model's order."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    for i, (name, value) in enumerate(inputs.items()):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
