"""Writes what the bindings take from include/tiny.h.

Usage: generate.py swig|python|stubs|csharp|rust HEADER OUTPUT
The defaults of arguments are those of src/api/functions.def and defaults.def.
"""

import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "generator"))

import header  # noqa: E402
import model  # noqa: E402

# What each language does by hand, in its own idiom of memory and of functions.
BY_HAND = {"tiny_tensor_wrap", "tiny_tensor_to_dlpack", "tiny_tensor_from_dlpack",
           "tiny_options_set_log", "tiny_options_set_allocator", "tiny_options_set_thread_pool",
           "tiny_options_set_progress", "tiny_options_set_poll", "tiny_options_add_deleter",
           "tiny_custom_op_create", "tiny_custom_op_set_infer", "tiny_custom_op_set_run",
           "tiny_custom_op_set_gradient",
           "tiny_context_add_custom_op", "tiny_run_bind_input", "tiny_run_bind_output"}
# What only functions in C are given.
ONLY_C = "tiny_custom_call_"


def main(language, source, output):
    source = pathlib.Path(source)
    tables = [source.parents[1] / "src/api" / name for name in ("functions.def", "defaults.def")]
    defaults = model.read_defaults("".join(table.read_text() for table in tables if table.exists()))
    read = model.Model(header.parse(source.read_text()), defaults)
    emitter = importlib.import_module(language)
    text = (emitter.interface if language == "swig" else emitter.emit)(read)
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    for name, reason in read.unwrapped:
        if name not in BY_HAND and not name.startswith(ONLY_C):
            print(f"generate: no language offers {name}, its parameters are not understood: {reason}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
