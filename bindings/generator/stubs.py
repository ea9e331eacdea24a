"""The Python package's types, for editors and type checkers: tiny/__init__.pyi.

Written of the built package, which is imported: what a class has is what its stub has.  A method that takes
what its call in the header takes is typed from the header; one that is written by hand has the types that its
source says.
"""

import ast
import builtins
import inspect
import types

from model import camel, value_name
from python import identifier

HEAD = '''"""Made from include/tiny.h and the package's modules by bindings/generate.py."""

import builtins
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator
from pathlib import Path
from typing import Any

from . import dtypes as dtypes, helpers as helpers, nn as nn, state as state, uop as uop
from ._bound import Bound
from ._counters import _Counters
from ._devices import _Devices
from ._functions import Count
from .uop import (
    GroupOp as GroupOp, Ops as Ops, PatternMatcher as PatternMatcher, UOp as UOp, UPat as UPat,
    graph_rewrite as graph_rewrite)

Buffer = Any  # an object of the buffer protocol
DTypeLike = Any  # an element type, its name, or NumPy's or PyTorch's
Whole = int | Dim | Variable  # a number, or a dimension that each run has a value of

class Mode(ContextDecorator):  # `with Tensor.train():`, or a decorator
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
'''
C_MEMBERS = (types.WrapperDescriptorType, types.BuiltinFunctionType, types.GetSetDescriptorType)  # of the handle
FLOATS = ("double", "float")
# What the package makes dimensions of that are numbers in the header.
DIMENSIONS = {"Tensor": {"shape": "@property\ndef shape(self) -> tuple[int | Dim, ...]: ...",
                         "uop": "@property\ndef uop(self) -> UOp: ..."},
              "TinyJit": {"captured": "@property\ndef captured(self) -> Any: ..."},
              "Variable": {"dim": "@property\ndef dim(self) -> Dim: ...", "uop": "@property\ndef uop(self) -> UOp: ..."},
              "DType": {"__new__": "def __new__(cls, name: DTypeLike) -> DType: ...\nname: str\nitemsize: int\nbitsize: int\n"
                                   "fmt: str | None\npriority: int"},
              "Dim": {"number": "number: int"}}


def argument_types(call, argument):
    """[(name, type, default or "")] of what an argument is in Python."""
    kind, name = argument.kind, identifier(argument.name)
    nullable = argument.nullable or (False,)
    if kind == "lists":
        return [(identifier(one), "Sequence[Whole] | Whole" + (" | None" if may else ""), "None" if may else "")
                for one, may in zip(argument.names, argument.nullable)]
    if kind == "flags":
        return [(identifier(one), "bool", "False") for one in argument.names]
    if kind == "object":
        wanted = camel(argument.type)
        if argument.type == "tiny_tensor" and call.has_receiver:
            wanted += " | Whole | float"
    elif kind == "objects":
        wanted = f"Sequence[{camel(argument.type)}]"
    else:
        wanted = {"int64_t": "Whole", "data": "Buffer", "into": "Buffer", "flag": "bool", "text": "str", "enum": "int"}.get(
            kind, "float" if kind in FLOATS else "int")
    if argument.type == "tiny_dtype":
        wanted = "DTypeLike"
    default = argument.default
    if kind == "flag":
        default = "False" if default or call.arguments.index(argument) > 0 else ""
    if nullable[0] and kind == "objects":
        return [(name, wanted, "()")]
    if nullable[0]:
        return [(name, wanted + " | None", "None")]
    return [(name, wanted, default)]


def result_type(result):
    if result.kind == "object":
        return camel(result.type)
    if result.kind == "objects":
        return f"list[{camel(result.type)}]"
    if result.kind == "list":
        return "tuple[float, ...]" if result.type in FLOATS else "tuple[int, ...]"
    if result.kind == "enum":
        return "DType" if result.type == "tiny_dtype" else camel(result.type)
    return {"text": "str", "pointer": "int"}.get(result.kind, "float" if result.kind in FLOATS else "int")


def call_stub(call):
    typed = [row for argument in call.arguments for row in argument_types(call, argument)]
    typed = [row for row in typed if not row[2]] + [row for row in typed if row[2]]
    parameters = [f"{name}: {kind}" + (f" = {default}" if default else "") for name, kind, default in typed]
    kinds = [result_type(result) for result in call.results]
    result = {0: "None", 1: kinds[0] if kinds else ""}.get(len(kinds), f"tuple[{', '.join(kinds)}]")
    if call.has_receiver:
        parameters.insert(0, "self")
    mark = "@property\n" if call.is_getter else "" if call.has_receiver or not call.owner else "@staticmethod\n"
    name = identifier(call.method)
    return f"{mark}def {name}({', '.join(parameters)}) -> {result}: ..."


def text_of(annotation):
    if annotation is inspect.Parameter.empty:
        return "Any"
    if isinstance(annotation, str):
        return annotation
    name = "None" if annotation is None else getattr(annotation, "__name__", None)
    return name if not hasattr(annotation, "__args__") else str(annotation).replace("tiny.native.", "")


def parameter_text(parameter):
    text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
    return text if parameter.default is parameter.empty else f"{text}={parameter.default!r}"


def signature(name, function):
    """The stub of a function that is written by hand."""
    parameters = []
    found = inspect.signature(function)
    for parameter in found.parameters.values():
        if parameter.kind == parameter.KEYWORD_ONLY and "*" not in parameters and not any(
                text.startswith("*") for text in parameters):
            parameters.append("*")
        parameters.append(parameter_text(parameter))
    returns = "None" if name == "__init__" else text_of(found.return_annotation)
    return f"def {name}({', '.join(parameters)}) -> {returns}: ..."


def names_of(stub):
    """The names of the parameters of a stub."""
    arguments = ast.parse(stub).body[0].args
    return [argument.arg for argument in arguments.args]


def member_stub(name, member, typed):
    """The stub of a class's member; None for what is no method or property of ours."""
    mark, function, setter = "", member, ""
    if isinstance(member, property):
        mark, function = "@property\n", member.fget
        if member.fset and inspect.isfunction(function):
            setter = f"\n@{name}.setter\ndef {name}(self, value: Any) -> None: ..."
    elif isinstance(member, staticmethod):
        mark, function = "@staticmethod\n", member.__func__
    if not inspect.isfunction(function):
        return None
    if typed and names_of(typed) == list(inspect.signature(function).parameters) and (
            inspect.signature(function).return_annotation is inspect.Parameter.empty):
        return typed + setter
    return mark + signature(name, function) + setter


def unshadowed(stub, members):
    """The stub with builtins.int for int where the class has a member of that name, and builtins.bool: `bool` is the
    package's element type."""
    tree = ast.parse(stub)
    kinds = (ast.FunctionDef, ast.arg, ast.AnnAssign)
    shadowed = [node for definition in ast.walk(tree) if isinstance(definition, kinds)
                for annotation in (getattr(definition, "returns", None), getattr(definition, "annotation", None))
                if annotation for node in ast.walk(annotation)
                if isinstance(node, ast.Name) and node.id in (*members, "bool") and hasattr(builtins, node.id)]
    if not shadowed:
        return stub
    for node in shadowed:
        node.id = f"builtins.{node.id}"
    comment = stub.partition("  #")[2]
    text = ast.unparse(tree).replace(":\n    ...", ": ...")
    return text + (f"  #{comment}" if comment else "")


def operators(tables):
    """{name: stub} of the operators, which take numbers too."""
    rows = {f"__{name}__": "self, other: Tensor | Whole | float" for name in tables.OPERATORS}
    rows.update({f"__r{name}__": "self, other: Whole | float" for name in tables.OPERATORS})
    rows.update({f"__i{name}__": rows[f"__{name}__"] for name in tables.OPERATORS})
    rows.update({f"__{name}__": "self" for name in ("neg", "abs", "invert")})
    stubs = {name: f"def {name}({parameters}) -> Tensor: ..." for name, parameters in rows.items()}
    # Types say that == gives a bool; here it gives a tensor, as the others do.
    compared = "(self, other: Tensor | Whole | float) -> Tensor: ...  # type: ignore"
    return {**stubs, **{f"__{name}__": f"def __{name}__{compared}" for name in tables.COMPARISONS}}


def class_stub(kind, typed, special):
    name = kind.__name__
    rows = {} if name == "Context" or not kind.__module__.endswith("native") else {"context": "context: Context"}
    if name == "Tensor":
        rows["training"] = "training: bool"
        rows["no_grad"] = "no_grad: Any  # a bool, and `with Tensor.no_grad():`"
    for member, value in vars(kind).items():
        if member in special:
            rows[member] = special[member]
        elif member != "__repr__" and not isinstance(value, C_MEMBERS) and (
                not member.startswith("_") or member.startswith("__")):
            stub = member_stub(member, value, typed.get(member))
            if stub:
                rows[member] = stub
    rows = {member: unshadowed(stub, rows) for member, stub in rows.items()}
    body = "\n".join("    " + line for stub in rows.values() for line in stub.splitlines())
    base = f"({kind.__base__.__name__})" if issubclass(kind, (Exception, int)) else ""
    return f"class {name}{base}:\n{body or '    ...'}"


def emit(model):
    import tiny
    from tiny import _operands

    calls = {}
    for call in model.calls:
        calls.setdefault(camel(call.owner) if call.owner else "", {})[identifier(call.method)] = call_stub(call)
    parts = [HEAD.rstrip(), "__version__: str",
             "class Error(RuntimeError):\n    status: int\n    name: str\n"
             "    def __init__(self, status: int, message: str) -> None: ..."]
    for e in model.enumerations.values():
        values = "\n".join(f"    {identifier(value_name(e, name))} = {number}" for name, number, _ in e.values)
        parts.append(f"class {camel(e.name)}(enum.IntEnum):\n{values}")
    for name in map(camel, model.objects):
        special = {**(operators(_operands) if name == "Tensor" else {}), **DIMENSIONS.get(name, {})}
        parts.append(class_stub(getattr(tiny, name), calls.get(name, {}), special))
    told = {"Error", *map(camel, (*model.enumerations, *model.objects))}
    for name in dir(tiny):
        value = inspect.unwrap(getattr(tiny, name))
        if name.startswith("_") or name in told or inspect.ismodule(value):
            continue
        if inspect.isfunction(value):
            parts.append(unshadowed(member_stub(name, value, calls[""].get(name)), ()))
        elif inspect.isclass(value):
            parts.append(class_stub(value, {}, DIMENSIONS.get(name, {})))
        else:
            module = type(value).__module__.partition("tiny.")[2]
            inside = module + "." if module in ("helpers", "nn") else ""
            parts.append(f"{name}: {inside}{type(value).__name__}")
    return "\n\n".join(parts) + "\n"
