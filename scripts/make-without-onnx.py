"""Writes src/api/without_onnx.cpp, or checks that it is what it would write: what a build without onnx/ answers
for each function of tiny.h that src/api/model.cpp and src/api/export.cpp define.

Usage: make-without-onnx.py write|check
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bindings" / "generator"))
import header  # noqa: E402

TARGET = ROOT / "src/api/without_onnx.cpp"
HEAD = """// A build without onnx/: what is about models answers that it is not there.  No handle of a model
// exists, so calls that take one can only have got NULL.  Made by scripts/make-without-onnx.py.
#include "api/boundary.h"

namespace {

tiny_status refuse(const char* call) noexcept {
  return tiny::fail(call, tiny::Status::Unsupported,
                    "this build of the library has no ONNX importer (TINY_ONNX was OFF)");
}

template <class T>
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


def defined():
    """The functions of the header that the files have which need onnx/."""
    text = "".join((ROOT / "src/api" / name).read_text() for name in ("model.cpp", "export.cpp"))
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


def make():
    names = defined()
    functions = [f for f in header.parse((ROOT / "include/tiny.h").read_text()).functions if f.name in names]
    definitions = [definition(function) for function in functions]
    lists = LIST if any(re.search(r"refuse\(__func__, \w+, \w+\)", text) for text in definitions) else ""
    text = HEAD + lists + '}  // namespace\n\nextern "C" {\n\n' + "\n".join(definitions) + '\n}  // extern "C"\n'
    return subprocess.run(["clang-format-19", f"--assume-filename={TARGET}"], input=text, check=True,
                          capture_output=True, text=True).stdout


def main(mode):
    text = make()
    if mode == "write":
        TARGET.write_text(text)
        return 0
    if text != TARGET.read_text():
        print("without_onnx: src/api/without_onnx.cpp is not what tiny.h, src/api/model.cpp and src/api/export.cpp make; "
              "scripts/generate-bindings.sh writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
