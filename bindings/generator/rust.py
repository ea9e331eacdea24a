"""The safe Rust layer: a struct with Drop for each object, its methods, newtypes of enumerations."""

from model import Argument, camel, context_given, list_with_context, strip, value_name

NUMBERS = {"int32_t": "i32", "int64_t": "i64", "uint32_t": "u32", "uint64_t": "u64",
           "size_t": "usize", "double": "f64", "float": "f32"}
RESERVED = {"where", "move", "type", "ref", "match", "in", "loop", "box", "fn", "use", "mod", "as",
            "self", "static", "const", "yield", "final", "abstract", "virtual", "dyn", "async"}

HEAD = """// Made from include/tiny.h by bindings/generate.py: every call of the header.
#![allow(clippy::too_many_arguments, clippy::should_implement_trait)]

use crate::ffi;
use crate::support::{c_text, check, count, flags, mut_pointer, pointer, text, GUESS};
use crate::Result;
use std::ptr;
"""


def identifier(name):
    return name + "_" if name in RESERVED else name


def docs(doc, indent=""):
    escaped = doc.replace("[", "\\[").replace("]", "\\]").replace("<", "\\<")
    return [f"{indent}/// {escaped}"] if doc else []


def type_of(item):
    return {"object": camel(item.type), "objects": f"Vec<{camel(item.type)}>",
            "list": f"Vec<{NUMBERS.get(item.type)}>", "enum": camel(item.type),
            "text": "Option<String>", "pointer": "*const std::ffi::c_void"}.get(item.kind) or NUMBERS[item.kind]


def result_type(call):
    types = [type_of(item) for item in call.results]
    plain = types[0] if len(types) == 1 else f"({', '.join(types)})"
    return f"Result<{plain}>" if can_fail(call) else plain


def can_fail(call):
    """Statuses, and what Rust itself must refuse: lists of two lengths, text with a NUL."""
    return call.checked or any(a.kind == "text" or (a.kind == "lists" and len(a.names) > 1)
                               for a in call.arguments)


def parameters(argument):
    name = identifier(argument.name)
    if argument.kind == "lists":
        return [f"{identifier(n)}: " + ("Option<&[i64]>" if may else "&[i64]")
                for n, may in zip(argument.names, argument.nullable)]
    if argument.kind == "flags":
        return [f"{identifier(n)}: bool" for n in argument.names]
    if argument.kind == "object":
        plain = f"&{camel(argument.type)}"
        return [f"{name}: " + (f"Option<{plain}>" if argument.nullable[0] else plain)]
    if argument.kind == "text":
        return [f"{name}: " + ("Option<&str>" if argument.nullable[0] else "&str")]
    element = f"Option<&{camel(argument.type)}>" if argument.holes else f"&{camel(argument.type)}"
    kinds = {"objects": f"&[{element}]", "data": "&[u8]", "into": "&mut [u8]",
             "flag": "bool", "enum": camel(argument.type)}
    return [f"{name}: {kinds.get(argument.kind) or NUMBERS[argument.kind]}"]


def some(name, may):
    return name if may else f"Some({name})"


def passed(call, item):
    """(statements before the call, what goes to the C function) for an argument."""
    if item == "receiver":
        return [], ["self.raw.as_ptr()"]
    if item == "constant":
        return [], [str(call.constant)]
    name = identifier(item.name)
    if item.kind == "lists":
        pairs = [some(identifier(n), may) for n, may in zip(item.names, item.nullable)]
        return ([f"let {name}_count = count(&[{', '.join(pairs)}])?;"],
                [f"pointer({pair})" for pair in pairs] + [f"{name}_count"])
    if item.kind == "flags":
        pairs = ", ".join(f"({identifier(n)}, {bit})" for n, bit in zip(item.names, item.bits))
        return [], [f"flags(&[{pairs}])"]
    if item.kind == "object":
        null = f"{name}.map_or(ptr::null_mut(), |o| o.raw.as_ptr())"
        return [], [null if item.nullable[0] else f"{name}.raw.as_ptr()"]
    if item.kind == "objects":
        pointer = ("o.map_or(ptr::null(), |o| o.raw.as_ptr() as *const _)" if item.holes else
                   "o.raw.as_ptr() as *const _")
        collect = f"let {name}_raw: Vec<_> = {name}.iter().map(|o| {pointer})"
        return [collect + ".collect();"], [f"{name}_raw.as_ptr() as *const _", f"{name}_raw.len()"]
    if item.kind == "text":
        return ([f"let {name} = c_text({some(name, item.nullable[0])})?;"],
                [f"{name}.as_ref().map_or(ptr::null(), |t| t.as_ptr())"])
    if item.kind == "data":
        return [], [f"{name}.as_ptr() as *const _", f"{name}.len()"]
    if item.kind == "into":
        return [], [f"mut_pointer({name})", f"{name}.len()"]
    return [], [{"flag": f"{name} as i32", "enum": f"{name}.0"}.get(item.kind, name)]


def result(item, context):
    """(statements before, arguments, the value after) of an out-parameter."""
    name = identifier(item.name)
    if item.kind == "list":
        zero = "0.0" if item.type == "double" else "0"
        return ([f"let mut {name}_count = 0usize;",
                 f"let mut {name}: Vec<{NUMBERS[item.type]}> = vec![{zero}; GUESS];"],
                [f"{name}.as_mut_ptr()", f"{name}.len()", f"&mut {name}_count"], name)
    given = ", " + context if context else ""
    if item.kind == "object":
        made = f"{camel(item.type)}::from_raw({name}{given})"
        return [f"let mut {name} = ptr::null_mut();"], [f"&mut {name}"], made
    if item.kind == "objects":
        made = f"{name}.into_iter().map(|o| {camel(item.type)}::from_raw(o{given})).collect()"
        count = item.count or f"{identifier(item.count_of)}.len()"
        return ([f"let mut {name} = vec![ptr::null_mut(); {count}];"],
                [f"{name}.as_mut_ptr()", f"{name}.len()"], made)
    if item.kind == "enum":
        return [f"let mut {name} = 0i32;"], [f"&mut {name}"], f"{camel(item.type)}({name})"
    if item.kind == "text":
        return ([f"let mut {name} = ptr::null();"], [f"&mut {name}"],
                f"unsafe {{ text({name}) }}")
    if item.kind == "pointer":
        return [f"let mut {name} = ptr::null();"], [f"&mut {name}"], name
    zero = "0.0" if item.kind in ("double", "float") else "0"
    return [f"let mut {name}: {NUMBERS[item.kind]} = {zero};"], [f"&mut {name}"], name


def source(call, bound):
    """The expression for the context that what is made lives in; "" if it has none."""
    made = call.results[-1].type if call.results else None
    if made not in bound:
        return ""
    given = context_given(call)
    if given:
        return f"{identifier(given.name)}.clone()"
    if call.has_receiver:
        return "self.clone()" if call.owner == "tiny_context" else "self.context.clone()"
    for argument in call.arguments:
        name = identifier(argument.name)
        if argument.kind == "object" and not argument.nullable[0]:
            return f"{name}.context.clone()"
        if argument is list_with_context(call):
            return f"{name}[0].context.clone()"
    return ""


def bound_objects(model):
    """The objects that remember their context: those that are always made of something in one."""
    makers = {}
    for call in model.calls:
        for made in call.results:
            if made.kind in ("object", "objects"):
                of = [a for a in call.arguments if a.kind == "objects" or
                      (a.kind == "object" and not a.nullable[0])]
                makers.setdefault(made.type, []).append(call.has_receiver or bool(of))
    return {name for name, found in makers.items() if all(found) and name != "tiny_context"}


def method(call, bound, indent):
    names = [p for argument in call.arguments for p in parameters(argument)]
    receiver = ["&self"] if call.has_receiver else []
    returned = result_type(call)
    arrow = "" if returned == "()" else f" -> {returned}"
    name = identifier(call.method)
    lines = docs(call.doc) + [f"pub fn {name}({', '.join(receiver + names)}){arrow} {{"]
    before, arguments, values, again = [], [], [], []
    for item in call.order:
        if item in ("receiver", "constant") or isinstance(item, Argument):
            statements, passing = passed(call, item)
        else:
            statements, passing, value = result(item, source(call, bound))
            values.append(value)
            again += [value] if item.kind == "list" else []
        before += statements
        arguments += passing
    value = values[0] if len(values) == 1 else f"({', '.join(values)})"
    listed = list_with_context(call)
    if listed and not call.has_receiver and values:
        before.insert(0, f"crate::support::at_least_one({identifier(listed.name)}.len())?;")
    raw = f"unsafe {{ ffi::{call.function}({', '.join(arguments)}) }}"
    lines += [f"    {statement}" for statement in before]
    if call.checked:
        lines.append(f"    check({raw})?;")
        for name in again:  # the call said how many there are: once more with room for all
            lines += [f"    if {name}_count > {name}.len() {{",
                      f"        {name}.resize({name}_count, Default::default());",
                      f"        check({raw})?;", "    }", f"    {name}.truncate({name}_count);"]
        lines.append(f"    Ok({value})")
    else:
        if call.results:
            kind = call.results[0]
            raw = {"text": f"unsafe {{ text({raw[9:-2]}) }}",
                   "enum": f"{camel(kind.type)}({raw})"}.get(kind.kind, raw)
        lines.append(f"    Ok({raw})" if can_fail(call) else f"    {raw}")
    return "\n".join(indent + line if line else "" for line in lines + ["}"])


# Of these the library wants one thread at a time, which may be any.
OF_ONE_THREAD = {"tiny_options", "tiny_run"}


def threads(name, kind):
    if name in OF_ONE_THREAD:
        return ["// Used by one thread at a time, which may be any.",
                f"unsafe impl Send for {kind} {{}}"]
    return ["// The library's calls wait for each other where they must.",
            f"unsafe impl Send for {kind} {{}}", f"unsafe impl Sync for {kind} {{}}"]


def struct(name, model, bound):
    kind = camel(name)
    retained = any(f.name == f"{name}_retain" for f in model.header.functions)
    has = name in bound
    field = ["    pub(crate) context: Context,"] if has else []
    taken = ", context: Context" if has else ""
    given = ", context" if has else ""
    context = ["    /// The context that this lives in.", "    pub fn context(&self) -> &Context {",
               "        &self.context", "    }"] if has else []
    lines = [f"pub struct {kind} {{", f"    pub(crate) raw: ptr::NonNull<ffi::{name}>,", *field, "}",
             "", *threads(name, kind), "",
             f"impl {kind} {{",
             f"    pub(crate) fn from_raw(raw: *mut ffi::{name}{taken}) -> {kind} {{",
             "        let raw = ptr::NonNull::new(raw).expect(\"the library gave no handle\");",
             f"        {kind} {{ raw{given} }}", "    }", *context]
    for call in model.calls:
        if call.owner == name:
            lines += ["", method(call, bound, "    ")]
    lines += ["}", "", f"impl Drop for {kind} {{", "    fn drop(&mut self) {",
              f"        unsafe {{ ffi::{name}_release(self.raw.as_ptr()) }}", "    }", "}"]
    if retained:
        given = ", self.context.clone()" if has else ""
        lines += ["", f"impl Clone for {kind} {{", "    /// Another reference to the same object.",
                  f"    fn clone(&self) -> {kind} {{",
                  f"        unsafe {{ ffi::{name}_retain(self.raw.as_ptr()) }}",
                  f"        {kind}::from_raw(self.raw.as_ptr(){given})", "    }", "}"]
    return "\n".join(lines)


def enumeration(e):
    kind = camel(e.name)
    lines = ["/// Any number is a valid value: a newer library may have more of them.",
             "#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]", f"pub struct {kind}(pub i32);", "",
             f"impl {kind} {{"]
    for name, _, doc in e.values:
        lines += docs(doc, "    ")
        constant = value_name(e, name)
        lines.append(f"    pub const {constant}: {kind} = {kind}(ffi::{name} as i32);")
    return "\n".join(lines + ["}"])


def emit(model):
    bound = bound_objects(model)
    parts = [HEAD.rstrip()]
    parts += [enumeration(e) for e in model.enumerations.values()]
    parts += [struct(name, model, bound) for name in model.objects]
    parts += [method(call, bound, "") for call in model.calls if not call.owner]
    return "\n\n".join(parts) + "\n"
