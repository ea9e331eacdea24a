"""What programs show of their work: the lines of DEBUG, files of GRAPH and GRAPHUOPS, GlobalCounters."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tiny
from tiny import GlobalCounters, Tensor

# Of the design's sources, word by word.
CONVOLUTION = "from tinygrad import Tensor; Tensor.rand(16,3,64,64).conv2d(Tensor.rand(16,3,3,3)).numpy()"
LAUNCH = (r"(?m)^\*\*\* cpu +\d+ (\w+) +arg +(\d+) mem +[\d.]+ MB tm +[\d.]+ us/ +[\d.]+ ms "
          r"\( *[\d.]+ GFLOPS +[\d.]+ GB/s\)")


def told(text, alias=True, **environment):
    """stderr of a program with these variables and no others that speak to the engine."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TINY_")}
    done = subprocess.run([sys.executable, "-B", *(["-m", "tiny.compat"] if alias else []), "-c", text],
                          capture_output=True, text=True, timeout=100, env={**clean, "TINY_CACHE": "0", **environment})
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stderr


class Screens(unittest.TestCase):
    def test_nothing_unless_asked(self):
        self.assertEqual(told(CONVOLUTION), "")

    def test_the_design_sources_command(self):
        screen = told(CONVOLUTION, NOOPT="1", DEBUG="4")
        self.assertIn("chosen: cpu", screen)
        self.assertRegex(screen, r"(?m)^  options r_16_16_62_62_3_3_3\.[0-9a-f]{8}: none$")
        self.assertIn("void r_16_16_62_62_3_3_3(const struct KernelArgs *args) {", screen)
        self.assertRegex(screen, LAUNCH)
        self.assertRegex(screen.splitlines()[-1], r"^avg: +[\d.]+ GFLOPS +[\d.]+ GB/s   total: \d+ kernels")

    def test_a_line_for_each_launch(self):
        screen = told("import tiny; (tiny.Tensor.zeros(64, 64).contiguous() @ tiny.Tensor.eye(64)).numpy()", False,
                      DEBUG="2")
        self.assertNotIn("  options ", screen)
        self.assertRegex(screen, LAUNCH)

    def test_how_many_kernels_a_jit_runs(self):
        program = ("from tinygrad import Tensor, TinyJit\njit = TinyJit(lambda x: (x + 1).contiguous().sum())\n"
                   "for _ in range(4): jit(Tensor.ones(4).realize())")
        self.assertRegex(told(program, DEBUG="1"), r"(?m)^jit execs \d+ kernels$")
        self.assertEqual(told(program), "")

    def test_a_part_of_a_program(self):
        program = ("from tinygrad import Tensor, Context, GlobalCounters\nx = Tensor.ones(8).contiguous().realize()\n"
                   "(x + 1).realize()\nGlobalCounters.reset()\nwith Context(DEBUG=2): (x + 2).realize()\n"
                   "assert GlobalCounters.time_sum_s > 0\n(x * 3).realize()")
        self.assertEqual(len(told(program).splitlines()), 1)
        self.assertRegex(told(program), LAUNCH)

    def test_a_search_is_told(self):
        screen = told("import tiny; (tiny.Tensor.rand(32, 32) @ tiny.Tensor.rand(32, 32)).numpy()", False, BEAM="1",
                      DEBUG="1")
        self.assertIn("search for the optimisations of r_32_32_32, width 1", screen)

    def test_graphs_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            told("import tiny; (tiny.Tensor([1.0, 2.0]) + 1).numpy()", False, GRAPH="1", GRAPHUOPS="1",
                 TINY_OUT_DIR=folder)
            names = sorted(path.name.split("-")[2] for path in pathlib.Path(folder).iterdir())
            self.assertEqual(names, ["graph", "uops"])
            for path in pathlib.Path(folder).iterdir():
                self.assertTrue(path.read_text().startswith("<svg"))


class Settings(unittest.TestCase):
    """Of a context that is in use."""

    def test_debug(self):
        lines = []
        context = tiny.Context(log=lines.append, cache=0, debug=0)
        x = context.full(tiny.float32, [8, 8], 1.5)
        (x + 1).numpy()
        self.assertEqual(lines, [])
        context.set_int("debug", 2)
        (x * 3).numpy()
        self.assertRegex("".join(lines), LAUNCH)
        context.set_int("debug", 0)
        before = len(lines)
        (x * 5).numpy()
        self.assertEqual(len(lines), before)

    def test_what_decides_code_is_compiled_anew(self):
        lines = []
        context = tiny.Context(log=lines.append, cache=0, debug=3)
        for noopt in (0, 1, 0):
            context.set_int("noopt", noopt)
            lines.clear()
            x = context.arange(tiny.float32, 4096)
            self.assertEqual((x * 2 + 1).numpy().sum(), 4096 * 4096)
            self.assertEqual(": none\n" in "".join(lines), noopt == 1, lines)

    def test_others_are_fixed(self):
        context = tiny.Context()
        with self.assertRaisesRegex(tiny.Error, "threads is fixed once a context is made.*debug, graph"):
            context.set_int("threads", 2)
        with self.assertRaisesRegex(tiny.Error, "from 0 to 7; got 9"):
            context.set_int("debug", 9)


class Counters(unittest.TestCase):
    def test_true_numbers(self):
        a, b = (Tensor.rand(64, 64).realize() for _ in range(2))
        GlobalCounters.reset()
        self.assertEqual((GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem), (0, 0, 0))
        (a @ b).realize()
        self.assertEqual(GlobalCounters.kernel_count, 1)
        self.assertEqual(GlobalCounters.global_ops, 2 * 64 ** 3)
        self.assertEqual(GlobalCounters.global_mem, 3 * 64 * 64 * 4)
        self.assertGreaterEqual(GlobalCounters.mem_used, 2 * 64 * 64 * 4)
        self.assertEqual(GlobalCounters.mem_used_per_device["CPU"], GlobalCounters.mem_used)
        self.assertEqual(GlobalCounters.mem_used_per_device["GPU"], 0)
        (a @ b + 1).realize()
        self.assertEqual(GlobalCounters.global_ops, 4 * 64 ** 3 + 64 ** 2)

    def test_runs_of_programs_count(self):
        jit = tiny.TinyJit(lambda x: (x * 3 + 1).sum())
        x = Tensor.rand(1000).realize()
        for _ in range(3):
            jit(x)
        GlobalCounters.reset()
        jit(x)
        self.assertEqual(GlobalCounters.kernel_count, 1)
        self.assertAlmostEqual(GlobalCounters.global_ops, 3000, delta=1000)

    def test_time_is_that_of_timed_launches(self):
        context = tiny.default_context()
        a = Tensor.rand(256, 256).realize()
        GlobalCounters.reset()
        (a @ a).realize()
        self.assertEqual(GlobalCounters.time_sum_s, 0)
        lines = []
        timed = tiny.Context(log=lines.append, debug=2)
        x = timed.full(tiny.float32, [256, 256], 1.0)
        x.matmul(x).numpy()
        self.assertGreater(timed.totals()[3], 0)

    def test_memory_goes_back(self):
        before = GlobalCounters.mem_used
        big = Tensor.rand(1 << 20).realize()
        self.assertGreaterEqual(GlobalCounters.mem_used - before, 4 << 20)
        del big
        self.assertLess(GlobalCounters.mem_used - before, 4 << 20)


if __name__ == "__main__":
    unittest.main()
