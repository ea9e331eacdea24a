"""The C# classes: a handle and its methods for each object, the enumerations, the free functions."""

from model import Argument, camel, context_given, list_with_context, strip, value_name

NUMBERS = {"int32_t": "int", "int64_t": "long", "uint32_t": "uint", "uint64_t": "ulong",
           "size_t": "ulong", "double": "double", "float": "float"}
# Words of C# that a parameter might be named after.
RESERVED = {"in", "out", "ref", "params", "base", "object", "string", "bool", "is", "as", "this",
            "new", "fixed", "lock", "checked", "default", "event", "operator", "explicit"}


def identifier(name):
    return "@" + name if name in RESERVED else name


def small_camel(name):
    first, *rest = name.split("_")
    return identifier(first + "".join(part.capitalize() for part in rest))


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def type_of(item):
    """The C# type of a result."""
    return {"object": camel(item.type), "objects": camel(item.type) + "[]", "text": "string",
            "pointer": "System.IntPtr", "enum": camel(item.type), "list": NUMBERS.get(item.type, "") + "[]"}.get(
                item.kind) or NUMBERS[item.kind]


def returned_type(call):
    """void, the type of the one result, or a tuple of several."""
    types = [type_of(item) for item in call.results]
    if len(types) < 2:
        return types[0] if types else "void"
    return "(" + ", ".join(f"{t} {small_camel(item.name)}"
                           for t, item in zip(types, call.results)) + ")"


def parameter(argument):
    """The C# parameters of an argument, those that may be left out with their default."""
    name = small_camel(argument.name)
    if argument.kind == "lists":
        return [f"long[] {small_camel(n)}" + (" = null" if may else "")
                for n, may in zip(argument.names, argument.nullable)]
    if argument.kind == "flag":
        return [f"bool {name} = false"]
    if argument.kind == "flags":
        return [f"bool {small_camel(n)} = false" for n in argument.names]
    kinds = {"object": camel(argument.type), "enum": camel(argument.type), "text": "string",
             "objects": f"{camel(argument.type)}[]", "data": "System.Array", "into": "System.Array"}
    default = f" = {argument.default}" if argument.default else ""
    default = " = null" if argument.nullable and argument.nullable[0] else default
    return [f"{kinds.get(argument.kind) or NUMBERS[argument.kind]} {name}{default}"]


def passed(call, item):
    """What goes to the raw function for one item of its order."""
    if item == "receiver":
        return ["handle"]
    if item == "constant":
        return [str(call.constant)]
    name = small_camel(item.name)
    if item.kind == "lists":
        names = [small_camel(n) for n in item.names]
        return names + [f"Memory.Count({', '.join(names)})"]
    if item.kind == "flags":
        return [" | ".join(f"({small_camel(n)} ? {bit}u : 0)" for n, bit in zip(item.names, item.bits))]
    return {"object": [f"global::Tiny.{camel(item.type)}.HandleOf({name})"], "enum": [f"(int){name}"],
            "flag": [f"{name} ? 1 : 0"], "data": [f"{name}Pin.Address", f"{name}Pin.Bytes"],
            "into": [f"{name}Pin.Address", f"{name}Pin.Bytes"],
            "objects": [f"{name}Handles.Pointers", f"{name}Handles.Count"]}.get(item.kind, [name])


def result(item):
    """(declarations before, arguments of the raw call, expression after) of an out-parameter."""
    name = small_camel("result_" + item.name)
    if item.kind == "list":
        kind = NUMBERS[item.type]
        return ([f"ulong {name}Count;", f"var {name} = new {kind}[Memory.Guess];"],
                [name, f"(ulong){name}.Length", f"out {name}Count"],
                f"Memory.Cut({name}, {name}Count)")
    if item.kind == "object":
        made = f"new {camel(item.type)}({name}, {{context}})"
        return [f"{camel(item.type)}Handle {name};"], [f"out {name}"], made
    if item.kind == "objects":
        kind = camel(item.type)
        count = small_camel(item.count) if item.count else f"(ulong){item.count_of}.LongLength"
        made = (f"System.Array.ConvertAll({name}, made => new {kind}(new {kind}Handle(made), "
                "{context}))")
        return [f"var {name} = new System.IntPtr[{count}];"], [name, count], made
    if item.kind == "enum":
        return [f"int {name};"], [f"out {name}"], f"({camel(item.type)}){name}"
    if item.kind == "text":
        return ([f"System.IntPtr {name};"], [f"out {name}"],
                f"System.Runtime.InteropServices.Marshal.PtrToStringAnsi({name})")
    return [f"{type_of(item)} {name};"], [f"out {name}"], name


def context_of(call):
    """The expression for the context that a made object remembers."""
    given = context_given(call)
    if given:
        return small_camel(given.name)
    if call.has_receiver:
        return "this" if call.owner == "tiny_context" else "Context"
    for argument in call.arguments:
        if argument.kind == "object" and not argument.nullable[0]:
            return f"{small_camel(argument.name)}?.Context"
        if argument is list_with_context(call):
            return f"global::Tiny.Memory.First({small_camel(argument.name)})?.Context"
    return "null"


def body(call):
    """The statements of a method and the expression that it returns, or None."""
    before, arguments, values, lists = [], [], [], []
    for item in call.order:
        if item in ("receiver", "constant") or isinstance(item, Argument):
            arguments += passed(call, item)
            continue
        declared, out, value = result(item)
        before += declared
        arguments += out
        values.append(value.replace("{context}", context_of(call)))
        lists += [(out[0], NUMBERS[item.type])] if item.kind == "list" else []
    raw = f"Raw.{call.function}({', '.join(arguments)})"
    if values:
        again = []
        for name, kind in lists:  # the call said how many there are: once more with room for all
            again = [f"if ({name}Count > Memory.Guess) {{ {name} = new {kind}[{name}Count]; "
                     f"{raw}; }}"]
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        return before + [raw + ";"] + again, value
    if call.results:
        kind = call.results[0]
        return before, f"({camel(kind.type)}){raw}" if kind.kind == "enum" else raw
    return before + [raw + ";"], None


def method(call):
    parameters = [p for argument in call.arguments for p in parameter(argument)]
    if call.arguments and call.arguments[0].kind == "flag" and not call.arguments[0].default:
        parameters[0] = parameters[0].removesuffix(" = false")
    parameters = [p for p in parameters if "=" not in p] + [p for p in parameters if "=" in p]
    returned = returned_type(call)
    statements, value = body(call)
    if value is not None:
        statements.append(f"return {value};")
    guards = []
    for argument in call.arguments:
        name = small_camel(argument.name)
        if argument.kind in ("data", "into"):
            guards.append(f"using (var {name}Pin = new Pinned({name}))")
        if argument.kind == "objects":
            given = f"{name} ?? new {camel(argument.type)}[0]" if argument.nullable[0] else name
            guards.append(f'using (var {name}Handles = Handles.Of("{name}", {given}, one => one.handle))')
    static = "" if call.has_receiver else "static "
    name = "".join(part.capitalize() for part in call.method.split("_"))
    lines = [f"  /// <summary>{escape(call.doc)}</summary>"] if call.doc else []
    if call.is_getter:
        lines.append(f"  public {returned} {name} {{ get {{ {' '.join(statements)} }} }}")
    else:
        lines.append(f"  public {static}{returned} {name}({', '.join(parameters)}) {{")
        lines += [f"    {guard}" for guard in guards]
        if guards:
            lines.append("    {")
        lines += [f"    {statement}" for statement in statements]
        lines += ["    }"] if guards else []
        lines.append("  }")
    return "\n".join(lines)


def handle(name):
    """The handle of an object, released once, by Dispose or by the finaliser's thread."""
    kind = camel(name)
    return f"""public sealed class {kind}Handle : System.Runtime.InteropServices.SafeHandle {{
  public {kind}Handle() : base(System.IntPtr.Zero, true) {{}}
  internal {kind}Handle(System.IntPtr made) : base(System.IntPtr.Zero, true) {{ SetHandle(made); }}
  public override bool IsInvalid {{ get {{ return handle == System.IntPtr.Zero; }} }}
  protected override bool ReleaseHandle() {{
    Raw.release_{name}(handle);
    return true;
  }}
}}"""


def klass(name, calls):
    kind = camel(name)
    context = "this" if name == "tiny_context" else "context"
    return "\n".join([
        f"public sealed partial class {kind} : System.IDisposable {{",
        f"  internal readonly {kind}Handle handle;",
        *(["  public readonly Context Context;"] if context == "context" else []),
        f"  internal {kind}({kind}Handle handle, Context context) {{",
        "    this.handle = handle;",
        *(["    Context = context;"] if context == "context" else []),
        "  }",
        f"  internal static {kind}Handle HandleOf({kind} value) {{",
        f"    return value == null ? {kind}None.Handle : value.handle;",
        "  }",
        "  public void Dispose() { handle.Dispose(); }",
        *[method(call) for call in calls if call.owner == name],
        "}",
        f"internal static class {kind}None {{",
        f"  internal static readonly {kind}Handle Handle = new {kind}Handle();",
        "}"])


def enumeration(e):
    lines = [f"public enum {camel(e.name)} : int {{"]
    for name, number, doc in e.values:
        if doc:
            lines.append(f"  /// <summary>{escape(doc)}</summary>")
        lines.append(f"  {camel(value_name(e, name))} = {number},")
    return "\n".join(lines + ["}"])


def emit(model):
    parts = ["// Made from include/tiny.h by bindings/generate.py: every call of the header.",
             "namespace Tiny {"]
    parts += [enumeration(e) for e in model.enumerations.values()]
    parts += [handle(name) for name in model.objects]
    parts += [klass(name, model.calls) for name in model.objects]
    free = [method(call) for call in model.calls if not call.owner]
    parts += ["\n".join(["public static partial class Library {", *free, "}"]), "}"]
    return "\n\n".join(parts) + "\n"
