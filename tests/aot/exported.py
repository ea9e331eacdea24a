"""A program that was exported as C: compiled by a compiler, loaded into this process, called with NumPy arrays."""

import ctypes
import itertools
import os
import pathlib
import re
import subprocess
import threading

import numpy as np

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
DTYPES = {"float": "float32", "double": "float64", **{f"{u}int{b}_t": f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)}}
NUMBERS = itertools.count()
PIECE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, PIECE, ctypes.c_void_p)


class Threads(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("run", RUN), ("pool", ctypes.c_void_p)]

    @classmethod
    def of(cls, count):
        """Each piece by another of so many threads than the one before; `calls` counts the kernels shared."""
        def run(_, pieces, piece, work):
            threads.calls += 1
            def of_worker(worker):
                for i in range(worker, pieces, count):
                    piece(work, i, worker)
            others = [threading.Thread(target=of_worker, args=(w,)) for w in range(1, count)]
            for other in others:
                other.start()
            of_worker(0)
            for other in others:
                other.join()
        threads = cls(count, RUN(run), None)
        threads.calls = 0
        return threads


def compile_unit(folder, name, compiler, *flags):
    """A library of its own: one that is loaded must not be written over."""
    output = pathlib.Path(folder) / f"{name}_{next(NUMBERS)}.so"
    subprocess.run([compiler, *WARNINGS, "-shared", "-fPIC", *flags, "-o", output,
                    pathlib.Path(folder) / f"{name}.c", "-lm"], check=True)
    return output


class Exported:
    def __init__(self, folder, name, compiler="gcc", *flags):
        self.folder, self.name = pathlib.Path(folder), name
        self.header = (self.folder / f"{name}.h").read_text()
        self.weights = np.fromfile(self.folder / f"{name}.weights", "uint8")
        self.library = ctypes.CDLL(os.fspath(compile_unit(folder, name, compiler, *flags)))
        members = re.search(rf"struct {name}_arguments {{\n(.*?)}};", self.header, re.S)[1]
        self.fields, self.ports = [], {}
        for line in members.splitlines():
            type_, star, member = re.match(r"  (?:const )?((?:struct )?\w+) (\*?)(\w+);", line).groups()
            self.fields.append((member, ctypes.c_void_p if star else
                                ctypes.c_size_t if type_ == "size_t" else ctypes.c_int64))
            port = re.search(r"/\* (input|output) \"(.*)\"( \w+)?, (.*) \*/", line)
            if port:
                self.ports[member] = (port[1], DTYPES[type_], re.findall(r"\[(.*?)\]", port[4]))
        self.Arguments = type("Arguments", (ctypes.Structure,), {"_fields_": self.fields})
        self.memory_bytes = self.library[f"{name}_memory_bytes"]
        self.memory_bytes.restype = ctypes.c_size_t
        state = re.search(rf"#define {name}_STATE_BYTES (\d+)", self.header)
        self.state_bytes = int(state[1]) if state else 0

    def begin(self):
        state = np.zeros(self.state_bytes, "uint8")
        self.library[f"{self.name}_begin"](ctypes.c_void_p(state.ctypes.data), ctypes.c_void_p(self.weights.ctypes.data))
        return state

    def offset(self, member):
        return int(re.search(rf"#define {self.name}_STATE_{member} (\d+)", self.header)[1])

    def call(self, inputs, state=None, threads=None, **variables):
        """(what it returns, {output: array}); inputs by member."""
        keep = {m: np.ascontiguousarray(a) for m, a in inputs.items()}
        outputs = {}
        for member, (kind, dtype, dims) in self.ports.items():
            if kind == "output":
                shape = [eval(d.replace("/", "//"), {}, variables) for d in dims]
                outputs[member] = np.zeros(shape, dtype)
        arguments = self.Arguments(**variables)
        for member, array in {**keep, **outputs}.items():
            setattr(arguments, member, array.ctypes.data)
        arguments.weights = self.weights.ctypes.data
        if self.state_bytes:
            arguments.state = state.ctypes.data
        if threads:
            arguments.threads = ctypes.cast(ctypes.pointer(threads), ctypes.c_void_p)
        needed = self.memory_bytes(ctypes.byref(arguments))
        memory = np.zeros(max(needed, 1), "uint8")
        arguments.memory, arguments.memory_bytes = memory.ctypes.data, needed
        self.arguments = (arguments, keep, outputs, memory)  # for who times it
        return self.library[f"{self.name}_run"](ctypes.byref(arguments)), outputs


DRIVER = """/* Reads the file of arguments, runs, writes outputs and state. */
#include <stdio.h>
#include <stdlib.h>
#include "@.h"
static char *get(FILE *file, size_t bytes) {
  char *to = malloc(bytes + 1);
  if (!to || fread(to, 1, bytes, file) != bytes) exit(9);
  return to;
}
int main(int count, char **names) {
  struct @_arguments a = {0};
  FILE *weights = fopen(names[1], "rb"), *in = fopen(names[2], "rb"), *out = fopen(names[3], "wb");
  if (count != 4 || !weights || !in || !out) return 8;
  a.weights = get(weights, @_WEIGHT_BYTES);
  $READ
  a.memory_bytes = @_memory_bytes(&a);
  a.memory = malloc(a.memory_bytes);
  int result = @_run(&a);
  $WRITE
  return result || fclose(out) ? 7 : 0;
}
"""


def run_elsewhere(folder, unit, compile_with, run_with, inputs, state=None):
    """What a program of its own gives: (outputs, state); `unit` knows the members."""
    folder, name = pathlib.Path(folder), unit.name
    unit.call(inputs, state=None if state is None else state.copy())
    arrays = unit.arguments[2]
    read = [f"a.{m} = (void *)get(in, {a.nbytes});" for m, a in unit.arguments[1].items()]
    read += [f"a.{m} = malloc({a.nbytes});" for m, a in arrays.items()]
    write = [f"fwrite(a.{m}, 1, {a.nbytes}, out);" for m, a in arrays.items()]
    if state is not None:
        read.append(f"a.state = get(in, {state.nbytes});")
        write.append(f"fwrite(a.state, 1, {state.nbytes}, out);")
    (folder / "driver.c").write_text(DRIVER.replace("@", name).replace("$READ", "\n  ".join(read))
                                     .replace("$WRITE", "\n  ".join(write)))
    given = list(unit.arguments[1].values()) + ([] if state is None else [state])
    (folder / "in").write_bytes(b"".join(a.tobytes() for a in given))
    subprocess.run([*compile_with, *WARNINGS, "-o", folder / "driver", folder / "driver.c", folder / f"{name}.c", "-lm"],
                   check=True)
    subprocess.run([*run_with, folder / "driver", folder / f"{name}.weights", folder / "in", folder / "out"], check=True)
    data, outputs, at = (folder / "out").read_bytes(), {}, 0
    for member, array in arrays.items():
        outputs[member] = np.frombuffer(data, array.dtype, array.size, at).reshape(array.shape)
        at += array.nbytes
    return outputs, np.frombuffer(data, "uint8", -1, at)
