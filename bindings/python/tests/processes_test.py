"""Processes that compute together: four that mpirun starts combine and gather tensors, and differ as one."""

import os
import subprocess
import sys
import unittest

import numpy

import tiny
from tiny import ReduceOp, Tensor

MPIRUN = os.environ.get("TINY_MPIRUN", "")
PROCESSES = 4


class Together(unittest.TestCase):
    """In each of the processes."""

    ring = None

    @classmethod
    def setUpClass(cls):
        cls.ring = tiny.Processes.open()
        cls.contexts = [tiny.Context(device=device, threads=1) for device in ("cpu", "far")]

    def setUp(self):
        self.assertEqual(self.ring.count, PROCESSES)
        self.assertIn(self.ring.rank, range(PROCESSES))

    def mine(self, array):
        """A tensor for each device of the process, all of them different."""
        return [Tensor(array + (10 * (self.ring.rank * 2 + i)), context=one) for i, one in enumerate(self.contexts)]

    def test_sums_and_extremes(self):
        for count in (0, 1, 63, 64, 1000, 4097):
            array = numpy.arange(count, dtype=numpy.int64)
            for made in tiny.allreduce(self.mine(array), ReduceOp.SUM, self.ring):
                self.assertEqual(made.tolist(), (8 * array + 280).tolist())
            for made in tiny.allreduce(self.mine(array), ReduceOp.REDUCE_MAX, self.ring):
                self.assertEqual(made.tolist(), (array + 70).tolist())

    def test_every_process_has_the_same_bits(self):
        rng = numpy.random.default_rng(self.ring.rank)
        tensors = [Tensor(rng.standard_normal(777).astype(numpy.float32), context=one) for one in self.contexts]
        sums = tiny.allreduce(tensors, ReduceOp.MEAN, self.ring)
        bits = [one.bitcast("int32") for one in sums]
        for wanted in (ReduceOp.REDUCE_MIN, ReduceOp.REDUCE_MAX):
            for one, all_of_them in zip(bits, tiny.allreduce(bits, wanted, self.ring)):
                self.assertEqual(one.tolist(), all_of_them.tolist())

    def test_halves_are_rounded_once(self):
        small = [Tensor(numpy.full(100, 1 if self.ring.rank + i == 0 else 2.0**-11, numpy.float16), context=one)
                 for i, one in enumerate(self.contexts)]
        wanted = numpy.float16(1 + 7 * 2.0**-11)
        for one in tiny.allreduce(small, ReduceOp.SUM, self.ring):
            self.assertEqual(one.tolist(), [wanted] * 100)

    def test_gathering(self):
        array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        for axis in (0, 1):
            wanted = numpy.concatenate([array + 10 * i for i in range(2 * PROCESSES)], axis)
            for one in tiny.allgather(self.mine(array), axis, self.ring):
                self.assertEqual(one.tolist(), wanted.tolist())

    def test_all_are_told_that_they_differ(self):
        here = Tensor(numpy.zeros(3 + (self.ring.rank == 2), numpy.float32), context=self.contexts[0])
        with self.assertRaisesRegex(ValueError, "ask for different things"):
            tiny.allreduce([here], ReduceOp.SUM, self.ring)
        # And go on.
        alike = Tensor(numpy.ones(3, numpy.float32), context=self.contexts[0])
        self.assertEqual(tiny.allreduce([alike], ReduceOp.SUM, self.ring)[0].tolist(), [4] * 3)

    def test_a_process_joins_once(self):
        with self.assertRaisesRegex(RuntimeError, "joined the others already"):
            tiny.Processes.open()


class Start(unittest.TestCase):
    def test_four(self):
        if not MPIRUN:
            missing = "no MPI when tiny was configured (Debian's libopenmpi-dev and openmpi-bin)"
            self.assertNotIn(os.environ.get("CI", "").lower(), ("true", "1"), missing)
            self.skipTest(missing)
        told = subprocess.run([MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(PROCESSES), sys.executable, "-B",
                               __file__, "Together"], capture_output=True, text=True, timeout=100)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertEqual(told.stderr.count("OK"), PROCESSES, told.stderr)

    def test_what_is_missing_is_told(self):
        with self.assertRaisesRegex(RuntimeError, "no transport between processes"):
            tiny.Processes.open("libno_such_transport.so")


if __name__ == "__main__":
    unittest.main(defaultTest=None if len(sys.argv) > 1 else "Start")
