"""Functions of Python's that the engine calls: the log, what it asks, the allocator, the pool of threads."""

import concurrent.futures
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import unittest
import weakref

import tiny


class Unraisable:
    """What nobody could catch, while it is entered."""

    def __enter__(self):
        self.seen, self.before = [], sys.unraisablehook
        # Not the exception itself, whose frames hold the context.
        sys.unraisablehook = lambda it: self.seen.append((it.exc_type, str(it.exc_value)))
        return self.seen

    def __exit__(self, *_):
        sys.unraisablehook = self.before


def total(context, count=100000):
    return context.arange(tiny.float32, count).sum().item()


class Log(unittest.TestCase):
    def test_it_gets_whole_lines_until_the_context_goes(self):
        lines = []
        context = tiny.Context(debug=2, log=lines.append)
        total(context)
        told = len(lines)
        self.assertGreater(told, 0)
        del context
        gc.collect()
        self.assertGreater(len(lines), told)  # what a context tells at its end
        self.assertTrue(all(line.endswith("\n") for line in lines))

    def test_an_exception_in_it_harms_nothing(self):
        def log(text):
            raise ValueError("in the log")

        with Unraisable() as seen:
            context = tiny.Context(debug=2, log=log)
            self.assertEqual(total(context, 10), 45)
            del context
            gc.collect()
        self.assertEqual(set(seen), {(ValueError, "in the log")})

    def test_a_call_that_fails_keeps_its_own_error(self):
        context = tiny.Context(debug=4, log=lambda text: None)
        with self.assertRaises(tiny.Error) as caught:
            context.arange(tiny.float32, 4).reshape([3]).tolist()
        self.assertEqual(caught.exception.name, "SHAPE")

    def test_it_lives_as_long_as_the_context_and_no_longer(self):
        class Log:
            def __call__(self, text):
                pass

        log = Log()
        alive = weakref.ref(log)
        context = tiny.Context(debug=1, log=log)
        tensor = context.arange(tiny.float32, 3)
        del log, context
        gc.collect()
        self.assertIsNotNone(alive())
        del tensor
        gc.collect()
        self.assertIsNone(alive())

    def test_only_functions_are_taken(self):
        for wrong in ({"log": 1}, {"progress": 1}, {"poll": 1}, {"thread_pool": "no"}, {"allocator": (len, None)}, {"allocator": (1, 2)}):
            with self.assertRaises(TypeError):
                tiny.Context(**wrong)
        self.assertEqual(total(tiny.Context(log=None, thread_pool=None, allocator=None), 10), 45)


class Progress(unittest.TestCase):
    def test_it_is_told_of_kernels(self):
        told = []
        context = tiny.Context(cache=0, progress=lambda *step: told.append(step))
        self.assertEqual(total(context, 10), 45)
        self.assertEqual([step[1:] for step in told], [(i, len(told) - 1) for i in range(len(told))])
        self.assertTrue(told and all(what.startswith("compile ") for what, _, _ in told))

    def test_true_and_exceptions_end_the_call(self):
        for progress, exceptions in ((lambda *step: True, 0), (lambda: None, 1)):
            with Unraisable() as seen, self.assertRaises(tiny.Error) as caught:
                total(tiny.Context(cache=0, progress=progress), 10)
            self.assertEqual(caught.exception.name, "CANCELLED")
            self.assertEqual(len(seen), exceptions)


# What a call may take after it was told to end, where this process has a core.
SOON = 0.05
TRIES = 10


def long_sum(context):
    """Seconds of one kernel."""
    a = context.full(tiny.float32, (1 << 16, 1), 0.5).contiguous()
    b = context.full(tiny.float32, (1, 1 << 22), 0.5).contiguous()
    tiny.realize([a, b])
    return (a * b).sum()


class Ending(unittest.TestCase):
    """A long call is ended by a signal's handler and by a function that is asked."""

    def interrupted(self, call):
        """Seconds from a Ctrl-C to its exception."""
        sent = []

        def send():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.1, send)
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            call()
        ended = time.monotonic()
        timer.join()
        return ended - sent[0]

    def soon(self, call):
        seconds = 9
        for _ in range(TRIES):
            seconds = min(seconds, self.interrupted(call))
            if seconds < SOON:
                return
        self.fail(f"{seconds} seconds after Ctrl-C")

    def test_ctrl_c_ends_a_kernel(self):
        handler = signal.getsignal(signal.SIGINT)
        for threads in (1, 2):
            long = long_sum(tiny.Context(threads=threads))
            self.soon(long.item)
            run = tiny.Run.create(tiny.Program.compile([], [long]))
            self.soon(run.execute)
        self.assertIs(signal.getsignal(signal.SIGINT), handler)
        with self.assertRaises(KeyboardInterrupt):  # as before
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)

    def test_ctrl_c_in_a_function_that_is_called(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        for functions in ({"poll": interrupt}, {"progress": interrupt}, {"log": interrupt, "debug": 2}):
            with Unraisable() as seen, self.assertRaises(KeyboardInterrupt):
                long_sum(tiny.Context(cache=0, **functions)).item()
            self.assertEqual(seen, [], functions)
        self.assertEqual(total(tiny.Context(), 10), 45)

    def test_ctrl_c_ends_waiting_for_another_thread(self):
        for own_poll in (False, True):
            context = tiny.Context(poll=lambda: False) if own_poll else tiny.Context()
            cancel = tiny.Cancel.create()
            context.set_cancel(cancel)
            long, asked = long_sum(context), []

            def compute():
                try:
                    asked.append(True)
                    long.item()
                except tiny.Error as error:
                    asked.append(error.name)

            other = threading.Thread(target=compute)
            other.start()
            while not asked:
                time.sleep(0.001)
            time.sleep(0.05)
            self.soon(lambda: context.full(tiny.float32, (2,), 1))
            self.assertTrue(other.is_alive())
            cancel.set()
            other.join()
            self.assertEqual(asked, [True, "CANCELLED"])
            cancel.clear()
            self.assertEqual(context.full(tiny.float32, (2,), 1).sum().item(), 2)

    def test_a_handler_that_does_not_raise_ends_nothing(self):
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
        try:
            timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            a = tiny.default_context().full(tiny.int32, (1 << 12, 1), 1).contiguous()
            b = tiny.default_context().full(tiny.int32, (1, 1 << 20), 1).contiguous()
            tiny.realize([a, b])
            timer.start()
            value = (a * b).sum().item()
            ended = time.monotonic()
            timer.join()
            self.assertEqual(value, 1 << 32)
            self.assertEqual(len(seen), 1)
            self.assertLessEqual(seen[0], ended)
        finally:
            signal.signal(signal.SIGINT, before)

    def test_a_function_ends_the_call(self):
        for answer, exceptions in ((True, 0), (None, 1)):
            asked = []

            def poll():
                asked.append(threading.get_ident())
                if len(asked) < 5:
                    return False
                return answer if answer else int("nothing")

            long = long_sum(tiny.Context(poll=poll))
            with Unraisable() as seen, self.assertRaises(tiny.Error) as caught:
                asked.clear()
                long.item()
            self.assertEqual(caught.exception.name, "CANCELLED")
            self.assertEqual(len(seen), exceptions)
            self.assertEqual(asked, [threading.get_ident()] * 5)


class Allocator(unittest.TestCase):
    def setUp(self):
        self.live = {}

    def allocate(self, size, alignment):
        memory = (ctypes.c_char * (size + alignment))()
        address = (ctypes.addressof(memory) + alignment - 1) // alignment * alignment
        self.live[address] = memory, size, alignment
        return address

    def release(self, address, size, alignment):
        self.assertEqual(self.live.pop(address)[1:], (size, alignment))

    def test_memory_comes_from_it_and_goes_back(self):
        context = tiny.Context(allocator=(self.allocate, self.release))
        tensor = context.arange(tiny.float32, 1000) * 2
        whole = tensor.sum()
        self.assertEqual(whole.item(), 999000)
        self.assertTrue(self.live)
        thread = threading.Thread(target=lambda made: None, args=(context.arange(tiny.int32, 5),))
        thread.start()
        thread.join()
        del context, tensor, whole, thread
        gc.collect()
        self.assertEqual(self.live, {})

    def test_without_memory_it_is_an_error(self):
        for allocate in (lambda size, alignment: None, lambda size, alignment: 0):
            context = tiny.Context(allocator=(allocate, self.release))
            with self.assertRaises(tiny.Error) as caught:
                total(context)
            self.assertEqual(caught.exception.name, "OUT_OF_MEMORY")
        with Unraisable() as seen, self.assertRaises(tiny.Error):
            total(tiny.Context(allocator=(lambda: 1, self.release)))
        self.assertIs(seen[0][0], TypeError)


class ThreadPool(unittest.TestCase):
    def run_with(self, run):
        context = tiny.Context(threads=3, thread_pool=run)
        a = context.arange(tiny.float32, 512 * 512).reshape([512, 512]) % 8
        product = a.matmul(context.full(tiny.float32, [512, 512], 1.0))
        for row in (0, 511):
            self.assertEqual(product[row, 7].item(), 64 * sum(range(8)))

    def test_an_executor_does_the_work(self):
        counts = []
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            def run(task, count):
                counts.append(count)
                list(executor.map(task, range(count)))

            self.run_with(run)
        self.assertTrue(counts and max(counts) <= 3 and min(counts) > 1)

    def test_what_it_leaves_out_is_done(self):
        tasks = []
        self.run_with(lambda task, count: tasks.append(task))
        with self.assertRaisesRegex(RuntimeError, "has returned"):
            tasks[0](0)
        with Unraisable() as seen:
            self.run_with(lambda task, count: task("no number"))
        self.assertIs(seen[0][0], TypeError)


if __name__ == "__main__":
    unittest.main()
