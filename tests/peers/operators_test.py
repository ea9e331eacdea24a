"""Every operator of onnx's node cases through tiny.op: right after its inputs were realised, with every attribute that
the standard gives it, and with placeholders as inputs.

    PYTHONPATH=build/release/bindings/python operators_test.py [PATTERN]
"""

import pathlib
import re
import sys

try:
    import numpy as np
    import onnx
    import tiny
    from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

CASES = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
# Of the attributes that have no default, those that change nothing where they are given.
HARMLESS = {"seed": 1.0}
# A default of two directions, of which a network may have one.
OF_TWO = ("RNN", "activations")
# What draws numbers draws others than numpy, whose the cases have.
DRAWS = re.compile(r"^test_(bernoulli|training_dropout(?!.*zero_ratio))")
# Cases that pass, if any are found and run at all.
LEAST = 1000


def values(folder, kind):
    """The arrays of a case."""
    found = []
    for path in sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[-1])):
        tensor = TensorProto()
        tensor.ParseFromString(path.read_bytes())
        found.append(np.asarray(numpy_helper.to_array(tensor), order="C"))
    return found


def carried(array):
    """What holds an array of a type of few bits: integers in whole bytes, floats as their bits."""
    name = array.dtype.name
    if name.startswith(("float8", "float4")):
        return array.view(np.uint8)
    if name in ("int4", "int2", "uint4", "uint2"):
        return array.astype(np.uint8 if name.startswith("u") else np.int8)
    return array


def plain(value):
    """An attribute as keywords have it."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return np.asarray(numpy_helper.to_array(value), order="C") if isinstance(value, TensorProto) else value


def attributes_of(node, version):
    given = {a.name: plain(helper.get_attribute_value(a)) for a in node.attribute}
    for name, known in defs.get_schema(node.op_type, version, node.domain).attributes.items():
        if (node.op_type, name) == OF_TWO:
            continue
        if name not in given and known.default_value.name:
            given[name] = plain(helper.get_attribute_value(known.default_value))
        elif name not in given and name in HARMLESS:
            given[name] = HARMLESS[name]
    return given


class Skipped(Exception):
    pass


def run(context, folder):
    """Runs a case.  Skipped if it is none of one operator on tensors."""
    model = onnx.load(folder / "model.onnx")
    node = model.graph.node[0]
    if len(model.graph.node) != 1 or model.functions or any(a.type in GRAPHS for a in node.attribute):
        raise Skipped
    version = {o.domain: o.version for o in model.opset_import}.get(node.domain, 0)
    try:
        arrays = values(folder / "test_data_set_0", "input")
        if any(carried(array) is not array for array in arrays):
            raise Skipped  # a type of few bits, which a model carries in whole bytes
        feed = {port.name: tiny.tensor(array, context=context) for port, array in zip(model.graph.input, arrays)}
        inputs = [feed[name] if name else None for name in node.input]
        want = [np.asarray(carried(v), "float64") for v in values(folder / "test_data_set_0", "output")]
    except (TypeError, ValueError, KeyError) as unreadable:  # texts, sequences, narrow types
        raise Skipped from unreadable
    said = {"domain": node.domain, "opset": version, "outputs": len(node.output), "context": context,
            **attributes_of(node, version)}
    if feed:
        tiny.realize(list(feed.values()))
    try:
        made = tiny.op(node.op_type, *inputs, **said)
    except tiny.Error as refused:
        if "not supported" in str(refused):
            raise Skipped from refused
        raise
    made = made if isinstance(made, list) else [made]
    for got, wanted in zip((m for m, name in zip(made, node.output) if name), want, strict=True):
        if DRAWS.match(folder.name):
            assert tuple(got.shape) == wanted.shape, (got.shape, wanted.shape)
        else:
            np.testing.assert_allclose(got.cast(tiny.float64).numpy(), wanted, rtol=1e-2, atol=1e-3)
    holes = [None if t is None else context.input(t.dtype, t.shape) for t in inputs]
    try:
        tiny.op(node.op_type, *holes, **said)
    except tiny.Error as refused:
        assert re.search("depends on input data|input data decides", str(refused)), refused


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    options = tiny.Options.create()
    options.set_string("device", "interp")
    options.set_int("cache", 0)
    context = tiny.Context.create(options)
    passed, failed = 0, []
    for folder in sorted(f for f in CASES.iterdir() if re.search(pattern, f.name)):
        try:
            run(context, folder)
            passed += 1
        except Skipped:
            pass
        except Exception as wrong:  # the next case is another one's
            failed.append(f"{folder.name}: {type(wrong).__name__}: {wrong}")
    print(*failed, sep="\n")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or (not pattern and passed < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main())
