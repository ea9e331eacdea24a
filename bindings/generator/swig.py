"""What SWIG must be told about tiny.h beside the typemaps: which parameters each typemap is for."""

import re

from model import camel, filled_list, lists_group, number_result

def declare(p):
    return p.type + ("" if p.type.endswith("*") else " ") + p.name


def lists_typemap(group, count):
    """Python's typemap of lists that share a count: a tuple of sequences, None for NULL."""
    names = ", ".join(declare(p) for p in (*group, count))
    wanted = len(group)
    given = " ".join(f"${i + 1} = arrays[{i}];" for i in range(wanted))
    return [f"%typemap(in) ({names})",
            f"    (int64_t *arrays[{wanted}] = {{NULL}}, size_t count = 0) {{",
            f"  if (fill_lists($input, {wanted}, arrays, &count, \"$symname\") != 0) SWIG_fail;",
            f"  {given} ${wanted + 1} = count;", "}",
            f"%typemap(freearg) ({names}) {{",
            f"  for (int i = 0; i < {wanted}; ++i) PyMem_Free(arrays$argnum[i]);", "}"]


def applied(model):
    """The %apply lines for Python, whose typemaps take whole groups, and for C#, where arrays and
    their counts stay apart and only what comes back needs one."""
    python, csharp = [], []
    for function in model.header.functions:
        parameters, at = function.parameters, 0
        while at < len(parameters):
            p, following = parameters[at], parameters[at + 1:at + 3]
            group, used, canonical = lists_group(parameters, at), 1, None
            counted = following and following[0].type == "size_t"
            several = re.fullmatch(r"(?:const )?(\w+) \*const \*", p.type)
            made = re.fullmatch(r"(\w+) \*\*", p.type)
            if group:
                used = len(group[0]) + 1
                typemap = lists_typemap(group[0], parameters[at + used - 1])
                python += [] if typemap[0] in python else typemap
            elif p.type in ("const void *", "void *") and counted and following[0].name == "bytes":
                used, canonical = 2, f"({p.type}BUFFER, size_t BYTES)"
            elif filled_list(parameters, at):
                used, canonical = 3, f"({p.type}RESULTS, size_t CAPACITY, size_t *FILLED)"
                csharp += [f"%apply {p.type}RESULTS {{{declare(p)}}};",
                           f"%apply size_t *RESULT {{{declare(following[1])}}};"]
            elif made and counted and made[1] in model.objects:
                used, canonical = 2, f"({p.type}MADE, size_t COUNT)"
                csharp.append(f"%apply {p.type}MADE {{{declare(p)}}};")
            elif several and counted and several[1] in model.objects:
                used, canonical = 2, f"({several[1]} *const *HANDLES, size_t COUNT)"
            elif number_result(parameters, at, model.enumerations):
                base = "int32_t" if p.type[:-2] in model.enumerations else p.type[:-2]
                canonical = f"{base} *RESULT"
                csharp.append(f"%apply {canonical} {{{declare(p)}}};")
            if canonical:
                names = ", ".join(declare(member) for member in parameters[at:at + used])
                line = f"%apply {canonical} {{{f'({names})' if used > 1 else names}}};"
                python += [] if line in python else [line]
            at += used
    return python, list(dict.fromkeys(csharp))


def kinds(model):
    """C's table of the objects, for Python's types: KIND(type, class, what adds an owner, or NULL)."""
    functions = {function.name for function in model.header.functions}
    rows = [f'  KIND({name}, "{camel(name)}", {name + "_retain" if name + "_retain" in functions else "NULL"})'
            for name in model.objects]
    return ["%{", "#define HANDLE_KINDS(KIND) \\", " \\\n".join(rows), "%}"]


def interface(model):
    """The generated part of both languages' interface files."""
    python, csharp = applied(model)
    return "\n".join(["/* Made from include/tiny.h by bindings/generate.py. */",
                      *(f"TINY_OBJECT({name}, {camel(name)}, {camel(name)}Handle)"
                        for name in model.objects),
                      "#ifdef SWIGPYTHON", *kinds(model), *python, "#endif", "#ifdef SWIGCSHARP", *csharp,
                      "#endif", ""])
