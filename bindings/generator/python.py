"""The Python methods: one function for each call, attached to the classes of handles.inc."""

import keyword

from model import Argument, camel, context_given, list_with_context, strip, value_name

HEAD = '''"""Made from include/tiny.h by bindings/generate.py: every call of the header as a method."""

import enum

from . import native
from ._dimension import number
from ._dtype import numbered
from ._operands import dtype as dtype_, first, whole
from .native import made, operand
'''

# What no gradient goes through, and gradients themselves.
UNTRACED = ("tiny_allgather", "tiny_allreduce", "tiny_detach", "tiny_gradient", "tiny_tensor_to")
# Of tensors of several contexts: each result lives where its tensor does.
TOGETHER = ("tiny_allgather", "tiny_allreduce")


def identifier(name):
    return name + "_" if keyword.iskeyword(name) else name


def enumeration(e):
    lines = [f"class {camel(e.name)}(enum.IntEnum):"]
    for name, number, doc in e.values:
        lines.append(f"    {identifier(value_name(e, name))} = {number}" +
                     (f"  # {doc}" if doc else ""))
    return "\n".join(lines)


def passed(call, item):
    """How an argument reaches the raw function."""
    if item == "receiver":
        return "self"
    if item == "constant":
        return str(call.constant)
    if not isinstance(item, Argument):
        return item.count or (f"len({item.count_of})" if item.count_of else "capacity")
    name = identifier(item.name)
    if item.kind == "object" and item.type == "tiny_tensor" and call.has_receiver:
        return f"operand(self, {name})"
    if item.kind == "int64_t":
        return f"number({name})"
    if item.type == "tiny_dtype":
        return f"dtype_({name})"
    if item.kind == "lists":
        return f"({', '.join(identifier(name) for name in item.names)},)"
    if item.kind == "flags":
        return " | ".join(f"{bit} * bool({identifier(name)})" for name, bit in zip(item.names, item.bits))
    return name


def source(call):
    """The argument whose context the result lives in, or None."""
    given = context_given(call)
    if given:
        return identifier(given.name)
    if call.has_receiver:
        return "self"
    for argument in call.arguments:
        if argument.kind == "object" and not argument.nullable[0]:
            return identifier(argument.name)
        if argument is list_with_context(call):
            return f"first({identifier(argument.name)})"
    return None


def traced(call):
    """The tensors that a tensor is made of, by the names of the arguments: gradients reach them."""
    if call.function in UNTRACED or any(result.type != "tiny_tensor" for result in call.results):
        return []
    names = ["self"] if call.has_receiver and call.owner == "tiny_tensor" else []
    return names + [identifier(argument.name) for argument in call.arguments if argument.type == "tiny_tensor"]


def signature(call):
    """Parameters, those with a default last: what may be NULL is None, a flag is False."""
    required, optional = [], []
    for index, argument in enumerate(call.arguments):
        default = argument.default
        if argument.kind == "flag":
            default = "False" if index > 0 or default else ""
        if argument.kind == "flags":
            default = "False"
        names = argument.names or (argument.name,)
        for name, nullable in zip(names, argument.nullable or (False,) * len(names)):
            value = ("()" if argument.kind == "objects" else "None") if nullable else default
            (optional if value else required).append(identifier(name) + (f"={value}" if value else ""))
    return required + optional


def function(call):
    """A function of the module, and the line that attaches it."""
    owner = strip(call.owner)
    method = identifier(call.method)
    local = f"_{owner}_{call.method}" if owner else method
    parts = (["self"] if call.has_receiver else []) + signature(call)
    inputs = [item for item in call.order if item in ("receiver", "constant") or
              isinstance(item, Argument) or item.kind in ("objects", "list")]
    raw = f"native.{call.function}({', '.join(passed(call, item) for item in inputs)})"
    kinds = [result.kind for result in call.results]
    if kinds == ["enum"] and call.results[0].type == "tiny_dtype":
        raw = f"numbered({raw})"
    elif kinds == ["enum"]:
        raw = f"_known({camel(call.results[0].type)}, {raw})"
    if kinds == ["list"]:
        raw = f"whole(lambda capacity: {raw})"
    if len(kinds) > 1:
        raw = f"tuple({raw})"
    tensors = "".join(f", {operand}" for operand in traced(call))
    if kinds == ["object"] and source(call):
        raw = f"made({source(call)}, {raw}{tensors})"
    if call.function in TOGETHER:
        raw = f"[made(one, result) for one, result in zip(tensors, {raw})]"
    elif kinds == ["objects"] and source(call):
        raw = f"[made({source(call)}, result{tensors}) for result in {raw}]"
    doc = (call.doc or call.function).replace("\\", "\\\\").replace('"""', "'''")
    lines = [f"def {local}({', '.join(parts)}):", f'    """{doc}"""', f"    return {raw}"]
    if not owner:
        return "\n".join(lines)
    kind = "{}"
    if not call.has_receiver:
        kind = "staticmethod({})"
    elif call.is_getter:
        kind = "property({})"
    lines += ["", "", f"native.{camel(call.owner)}.{method} = {kind.format(local)}"]
    return "\n".join(lines)


KNOWN = '''def _known(kind, number):
    """The member of the enumeration; the bare number if this package is older than the library."""
    try:
        return kind(number)
    except ValueError:
        return number'''


NAMES = '''def _name_methods():
    """Errors of calls speak of Tensor.mean, not of _tensor_mean."""
    for kind in list(vars(native).values()):
        for name, member in list(vars(kind).items()) if isinstance(kind, type) else []:
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if getattr(function, "__module__", None) == __name__:
                function.__name__, function.__qualname__ = name, f"{kind.__name__}.{name}"


_name_methods()'''


def emit(model):
    parts = [HEAD.rstrip(), KNOWN]
    parts += [enumeration(e) for e in model.enumerations.values()]
    parts.append("\n".join(f"{camel(name)} = native.{camel(name)}" for name in model.objects))
    parts += [function(call) for call in model.calls]
    parts.append(NAMES)
    public = [camel(name) for name in (*model.enumerations, *model.objects)]
    public += [identifier(call.method) for call in model.calls if not call.owner]
    parts.append("__all__ = [" + ",\n           ".join(f'"{name}"' for name in public) + "]")
    return "\n\n\n".join(parts) + "\n"
