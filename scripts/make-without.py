"""Writes src/api/without_*.cpp, or checks that they are what it would write: what a build that leaves a part out
answers for each function of tiny.h that the part's files define.

Usage: make-without.py write|check
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bindings" / "generator"))
import header  # noqa: E402

# What a build can leave out: the files of src/api that go with it, and what is answered then.
PARTS = {
    "onnx": (("model.cpp", "value.cpp", "export.cpp"), "has no ONNX importer (TINY_ONNX was OFF)"),
    "export_c": (("export_c.cpp",), "does not export C (TINY_C was OFF)"),
    "strides": (("strides.cpp",), "has no functions of strides (TINY_NODES was OFF)"),
    "devices": (("device_contexts.cpp", "collective.cpp"), "has one device a context (TINY_CUDA and TINY_OPENCL were OFF)"),
    "nodes": (("node.cpp",), "shows no nodes of the graph (TINY_NODES was OFF)"),
}
HEAD = """// A build without {sources}: each of its functions answers that.  No handle of what they make
// exists, so calls that take one can only have got NULL.  Made by scripts/make-without.py.
#include "api/boundary.h"

namespace {{

tiny_status refuse(const char* call) noexcept {{
  return tiny::fail(call, tiny::Status::Unsupported,
                    "this build of the library {answer}");
}}

"""
SINGLE = """template <class T>
tiny_status refuse(const char* call, T* out) noexcept {
  if (out) *out = {};
  return refuse(call);
}

"""
LIST = """template <class T>
tiny_status refuse(const char* call, T** outs, size_t count) noexcept {
  for (size_t i = 0; outs && i < count; ++i) outs[i] = nullptr;
  return refuse(call);
}

"""


def defined(sources):
    """The functions of the header that the files define."""
    text = "".join((ROOT / "src/api" / name).read_text() for name in sources)
    return set(re.findall(r"^\w[\w ]*[ *]+(tiny_\w+)\(", text, re.M))


def is_result(parameter):
    return parameter.type.endswith("*") and not re.match(r"const \w+ \*$", parameter.type)


def definition(function):
    """The function; only the parameters that it writes have names."""
    parameters = function.parameters
    used = []
    if function.result == "tiny_status":
        if len(parameters) > 1 and parameters[-1].type == "size_t" and parameters[-2].type.endswith(" **"):
            used = parameters[-2:]
        elif parameters and is_result(parameters[-1]):
            used = parameters[-1:]
    listed = ", ".join(p.type + (f" {p.name}" if p in used else "") for p in parameters)
    names = "".join(f", {p.name}" for p in used)
    body = {"tiny_status": f"\n  return refuse(__func__{names});\n", "void": ""}.get(function.result, "\n  return 0;\n")
    return f"{function.result} {function.name}({listed or 'void'}) {{{body}}}\n"


def make(target, sources, answer):
    names = defined(sources)
    functions = [f for f in header.parse((ROOT / "include/tiny.h").read_text()).functions if f.name in names]
    definitions = [definition(function) for function in functions]
    text = HEAD.format(sources=" and ".join(sources), answer=answer)
    if any(re.search(r"refuse\(__func__, \w+\)", body) for body in definitions):
        text += SINGLE
    if any(re.search(r"refuse\(__func__, \w+, \w+\)", body) for body in definitions):
        text += LIST
    text += '}  // namespace\n\nextern "C" {\n\n' + "\n".join(definitions) + '\n}  // extern "C"\n'
    return subprocess.run(["clang-format-19", f"--assume-filename={target}"], input=text, check=True,
                          capture_output=True, text=True).stdout


def main(mode):
    old = 0
    for part, (sources, answer) in PARTS.items():
        target = ROOT / f"src/api/without_{part}.cpp"
        text = make(target, sources, answer)
        if mode == "write":
            target.write_text(text)
        elif text != target.read_text():
            print(f"without: {target.relative_to(ROOT)} is not what tiny.h and {', '.join(sources)} make; "
                  "scripts/generate-bindings.sh writes it")
            old = 1
    return old


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
