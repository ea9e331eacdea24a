"""Calls of the C API as nobody would make them.

Every process makes some hundred calls of functions drawn from include/tiny.h, with arguments drawn by their types:
what calls before have made, NULL, numbers at the ends of their ranges, texts that name nothing.  Every call has to
return, and one that fails has to say why in words that do not come from inside the library.

    any_calls_test.py LIBRARY [SEED [PROCESSES]]
"""

import ctypes
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import threading

HEADER = pathlib.Path(__file__).parents[2] / "include" / "tiny.h"
PROCESSES = 150
CALLS = 300
FIRST_CALLS = 60  # of functions that make objects
LATE_S = 5  # until what is still computing is cancelled
HUNG_S = 30
BYTES = 65536  # of memory that a call may fill
ROOM = 64  # entries of each array, of a type that any number in COUNTS fits
COUNTS = (0, 1, 2, 3, 4, 5, 6, 8, 24, 40)
SMALL = (0, 1, 2, 3, 4, 5, 6, 8, -1, -2, -3)
ENDS = (16, 64, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-5, 1e300, float("inf"), float("nan"))
TEXTS = (b"", b"x", b"y", b"w", b"lr", b"count", b"relu", b"cpu", b"interp", b"threads", b"float32", b"ij,jk->ik", b"Add",
         b"i...j", b"%s%n", b"\xff\xfe", b"a" * 300, b"/no/folder/x", b"out.bin")  # fmt: skip
SHAPES = ((), (2,), (3,), (2, 2), (2, 3), (0, 3), (4, 5, 6), (1, 2, 6, 6), (3, 2, 3, 3))
FLOAT32 = 12
# Types of what is no object.
NUMBERS = {"void", "double", "float", "size_t", "int64_t", "int32_t", "uint64_t", "uint8_t", "tiny_dtype", "tiny_kind",
           "tiny_flags", "tiny_status"}  # fmt: skip
# What the library says of a mistake of its own.
INSIDE = re.compile(rb"internal|invariant|std::|basic_string|bad_alloc|vector::", re.IGNORECASE)
# Functions that take functions or other libraries' objects, give objects back, or concern other processes.
LEFT_OUT = re.compile(r"release|retain|last_error|processes|custom_call|allocator|thread_pool|cancel")

Pointer = ctypes.c_void_p


class Function:
    def __init__(self, result, name, arguments):
        self.name = name
        self.has_status = result == "tiny_status"
        self.arguments = []
        for argument in [] if arguments == "void" else arguments.split(","):
            words, _, array = re.fullmatch(r"\s*(.*?)(\w+)(\[\w*\])?", argument, re.DOTALL).groups()
            self.arguments.append(" ".join(words.split()) + ("*" if array else ""))

    def makes_objects(self):
        return any(re.fullmatch(r"tiny_(?!tensor)\w+ ?\*\*", a) for a in self.arguments)


def functions_of(header):
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    found = re.findall(r"TINY_API\s+([\w\s*]+?)\b(tiny_\w+)\(([^;]*)\);", code, flags=re.DOTALL)
    return [Function(" ".join(result.split()), name, arguments) for result, name, arguments in found
            if "(*" not in arguments and "DLManaged" not in arguments and not LEFT_OUT.search(name)]  # fmt: skip


class Caller:
    def __init__(self, library, seed, note):
        self.library = ctypes.CDLL(library)
        self.library.tiny_last_error.restype = ctypes.c_char_p
        self.random = random.Random(seed)
        self.note = note
        self.objects = {}  # by type, each with one reference
        self.common = []  # tensors that most operations take; they are never released
        self.last = None  # the tensor that was taken before, in this call
        self.kept = []  # memory that calls were given
        self.context = self.made_context()
        for dtype, size in ((1, 1), (2, 1), (4, 4), (5, 8), (7, 2), (8, 4), (10, 2), (FLOAT32, 4), (13, 8)):
            for shape in SHAPES:
                self.make_tensor(dtype, size, shape)

    def made(self, name, *arguments):
        out = Pointer()
        status = getattr(self.library, name)(*arguments, ctypes.byref(out))
        assert status == 0, (name, self.library.tiny_last_error())
        self.objects.setdefault(name.rsplit("_", 1)[0], []).append(out.value)
        return out

    def made_context(self):
        options = self.made("tiny_options_create")
        device = self.random.choice((b"interp", b"cpu"))
        assert self.library.tiny_options_set_string(options, b"device", device) == 0
        for key, value in ((b"threads", 1), (b"memory_limit", 2**28)):
            assert self.library.tiny_options_set_int(options, key, ctypes.c_int64(value)) == 0
        context = self.made("tiny_context_create", options)
        cancel = self.made("tiny_cancel_create")
        assert self.library.tiny_context_set_cancel(context, cancel) == 0
        late = threading.Timer(LATE_S, self.library.tiny_cancel_set, (cancel,))
        late.daemon = True
        late.start()
        return context

    def make_tensor(self, dtype, size, shape):
        dims = (ctypes.c_int64 * 8)(*shape)
        count = 1
        for n in shape:
            count *= n
        data = (ctypes.c_uint8 * (count * size + 8))(*(self.random.randrange(2) for _ in range(count * size)))
        out = Pointer()
        status = self.library.tiny_tensor_from_data(self.context, dtype, dims, ctypes.c_size_t(len(shape)), data,
                                                    ctypes.c_size_t(count * size), ctypes.byref(out))  # fmt: skip
        assert status == 0, self.library.tiny_last_error()
        tensors = self.common if dtype == FLOAT32 else self.objects.setdefault("tiny_tensor", [])
        tensors.append(out.value)

    def one_of(self, kind):
        found = self.objects.get(kind)
        if kind == "tiny_tensor" and self.random.random() < 0.8:
            # Often the same one twice: what takes several wants them of the same shape.
            found = self.common if not self.last or self.random.random() < 0.5 else [self.last]
        if not found:
            return None
        chosen = self.random.choice(found[-12:] if self.random.random() < 0.6 else found)
        self.last = chosen if kind == "tiny_tensor" else self.last
        return chosen

    def integer(self):
        return self.random.choice(SMALL if self.random.random() < 0.85 else ENDS)

    def room(self, of, values=None):
        memory = (of * ROOM)() if values is None else (of * ROOM)(*(values() for _ in range(ROOM)))
        self.kept.append(memory)
        return memory

    def text(self):
        memory = ctypes.create_string_buffer(self.random.choice(TEXTS))
        self.kept.append(memory)
        return memory

    def number(self, kind):
        draw = self.random
        if kind == "double":
            return ctypes.c_double(draw.choice(REALS))
        if kind == "size_t":
            return ctypes.c_size_t(draw.choice(COUNTS))
        if kind == "int64_t":
            return ctypes.c_int64(self.integer())
        return ctypes.c_int32(draw.choice((0, 0, draw.randrange(14), draw.randrange(-1, 100), 2**30)))

    def array(self, kind):
        draw = self.random
        if kind == "void":
            self.kept.append((ctypes.c_uint8 * BYTES)())
            return self.kept[-1]
        if kind == "double":
            return self.room(ctypes.c_double, lambda: draw.choice(REALS[:5]))
        if kind in ("int64_t", "size_t"):
            return self.room(ctypes.c_int64, self.integer)
        return self.room(ctypes.c_int32, lambda: draw.randrange(14))

    # An argument of the type, and what the call may leave in it.
    def argument(self, kind):
        bare = re.sub(r"\bconst\b|[\s*]", "", kind)
        stars = kind.count("*")
        if stars == 0:
            return self.number(bare), None
        if self.random.random() < 0.04:
            return Pointer(), None
        if bare == "char":
            if stars == 1:
                return self.text(), None
            return self.room(Pointer, lambda: ctypes.addressof(self.text())), None
        if stars == 2:
            if "*const" in kind:
                return self.room(Pointer, lambda: self.one_of(bare)), None
            out = self.room(Pointer)
            return out, (bare, out)
        if bare not in NUMBERS:
            return Pointer(self.one_of(bare)), None
        return self.array(bare), None

    def call(self, function):
        self.last = None
        drawn = [self.argument(kind) for kind in function.arguments]
        called = getattr(self.library, function.name)
        called.restype = ctypes.c_int32 if function.has_status else Pointer
        self.note(function.name)
        status = called(*(value for value, _ in drawn))
        if not function.has_status:
            return
        if status == 0:
            for kind, out in (left for _, left in drawn if left):
                if out[0] and kind.startswith("tiny_"):
                    self.objects.setdefault(kind, []).append(out[0])
            return
        message = self.library.tiny_last_error()
        assert message and not INSIDE.search(message), (function.name, status, message)

    def compute(self):
        tensor = self.random.choice(self.objects["tiny_tensor"] or [None])
        if tensor:
            self.note("tiny_realize")
            self.library.tiny_realize((Pointer * 1)(tensor), ctypes.c_size_t(1))

    # Any object, the context too: what was made in it keeps what it needs.
    def release(self):
        kind = self.random.choice(sorted(k for k, found in self.objects.items() if found and k != "tiny_cancel"))
        release = getattr(self.library, kind + "_release")
        release.restype = None
        self.note(kind + "_release")
        release(Pointer(self.objects[kind].pop(self.random.randrange(len(self.objects[kind])))))

    def run(self, functions):
        makers = [f for f in functions if f.makes_objects()]
        for number in range(CALLS):
            self.call(self.random.choice(makers if number < FIRST_CALLS else functions))
            if self.random.random() < 0.15:
                self.compute()
            if number > FIRST_CALLS and self.random.random() < 0.08:
                self.release()


# What is wrong with the calls of a seed, made in a process of their own; none if nothing is.
def mistake_of(library, seed, functions):
    with tempfile.TemporaryDirectory() as folder:
        last = pathlib.Path(folder) / "last call"
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            signal.alarm(HUNG_S)
            try:
                with open(last, "w") as file:
                    Caller(library, seed, lambda name: os.pwrite(file.fileno(), name.encode().ljust(80), 0)).run(functions)
            except BaseException as wrong:
                last.write_text(repr(wrong))
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return None
        told = last.read_text(errors="replace").strip()
        return f"signal {os.WTERMSIG(status)} in {told}" if os.WIFSIGNALED(status) else told


def main(library, first=1, processes=PROCESSES):
    library, functions = os.path.abspath(library), functions_of(HEADER)
    assert len(functions) > 300, len(functions)
    found = {seed: mistake_of(library, seed, functions) for seed in range(int(first), int(first) + int(processes))}
    for seed, mistake in found.items():
        if mistake:
            print(f"seed {seed}: {mistake}")
    return any(found.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
