"""What bench/'s tables say of figures that are known."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import compare  # noqa: E402
import compiling  # noqa: E402
import report  # noqa: E402
import timing  # noqa: E402


def contender(name, kind, best, median):
    return {"name": name, "kind": kind, "best_ms": best, "median_ms": median}


def row_of(name, ours, **extra):
    return {"name": name, "flops": 2e9, "bytes": 0, "interpreted": 0, "kernels": [{}, {}],
            "contenders": [
                contender("tiny", "tiny", ours, 2 * ours), contender("slow", "peer", 40.0, 44.0),
                contender("quick", "peer", 20.0, 30.0), contender("ready", "other", 5.0, 6.0),
                contender("limit", "limit", 10.0, 10.0)], **extra}  # fmt: skip


class Report(unittest.TestCase):
    def test_a_ratio_is_to_the_best_peer_and_not_to_what_does_less_work(self):
        row = row_of("matmul 512^3", 20.0)
        text = report.rows_text([row])
        self.assertEqual((row["ratio"], row["ratio_median"], row["share"], row["kernel_count"]),
                         (1.0, 0.75, 0.5, 2))
        self.assertIn("quick |  1.00 |       0.75 |               |      50% |                 2 / 0 | reached",
                      text)
        self.assertIn("100 GFLOPS", text)

    def test_a_row_below_its_target_is_marked(self):
        row = row_of("matmul 512^3", 25.0)
        self.assertIn("MISSED (0.8, wanted >= 0.97)", report.rows_text([row]))
        self.assertEqual(report.missed({"rows": [row]}),
                         ["matmul 512^3: MISSED (0.8, wanted >= 0.97)"])
        self.assertEqual(report.at_most("libtiny.so, stripped", 5.1), "MISSED (5.1, wanted <= 5)")
        self.assertEqual(report.at_most("libtiny.so, stripped", 5.0), "reached (<= 5)")
        self.assertEqual(report.at_least("a figure without a target", 0.1), "")

    def test_a_row_of_two_threads_is_judged_by_one(self):
        row = row_of("matmul 512^3, 2 threads", 20.0)
        row["contenders"].append(contender("tiny, one thread", "single", 36.0, 36.0))
        report.evaluate(row)
        self.assertEqual((row["scaling"], row["target"]),
                         (1.8, "MISSED (of one thread 1.8, wanted >= 1.9)"))

    def test_a_bound_that_threads_do_not_raise_is_told(self):
        row = row_of("matmul 1x8x8, 2 threads", 12.5)
        row["contenders"] += [contender("tiny, one thread", "single", 15.0, 15.0),
                              contender("read, one thread", "one limit", 12.0, 12.0)]  # fmt: skip
        report.evaluate(row)
        self.assertEqual(row["target"], "MISSED (of one thread 1.2, wanted >= 1.9), "
                                        "the bound is at 1.20 of one thread, 80% of it reached")
        row["contenders"][-1]["best_ms"] = 19.5
        report.evaluate(row)
        self.assertEqual(row["target"], "MISSED (of one thread 1.2, wanted >= 1.9)")

    def test_of_reading_and_arithmetic_the_longer_is_the_bound(self):
        row = row_of("matmul 7x8x8, 2 threads", 12.0, threads=2)
        row["contenders"] += [contender("tiny, one thread", "single", 21.0, 21.0),
                              contender("read, one thread", "one limit", 18.0, 18.0),
                              contender("FMA limit", "work limit", 11.4, 11.4)]  # fmt: skip
        report.evaluate(row)
        self.assertEqual((round(row["share"], 3), row["limit_scaling"]), (0.95, 2.0))
        row["contenders"][-1]["best_ms"] = 9.0
        report.evaluate(row)
        self.assertEqual((round(row["share"], 3), row["limit_scaling"]), (0.833, 1.8))

    def test_an_interpreted_kernel_and_a_row_that_failed_are_misses(self):
        row = row_of("no target", 10.0, interpreted=1)
        report.evaluate(row)
        self.assertEqual(row["target"], "MISSED (1 kernels interpreted)")
        broken = {"name": "conv", "failed": "tiny is wrong by 1"}
        self.assertIn("tiny is wrong by 1", report.rows_text([broken]))
        self.assertEqual(report.missed({"rows": [broken]}), ["conv: MISSED (failed)"])

    def test_of_two_processes_the_one_where_tiny_stands_worse_counts(self):
        joined = report.join_rows(
            [row_of("softmax", 10.0), row_of("first", 1.0), {"name": "half", "failed": "why"}],
            [row_of("softmax", 25.0), row_of("second", 1.0), row_of("half", 5.0)])  # fmt: skip
        self.assertEqual([row["name"] for row in joined], ["softmax", "first", "half", "second"])
        self.assertEqual(joined[0]["ratio"], 0.8)
        self.assertEqual(joined[0]["elsewhere"][0]["best_ms"], 10.0)
        self.assertNotIn("failed", joined[2])

    def test_new_figures_keep_what_stands_before_them(self):
        old = "# Title\n\nText.\n\n## Figures\n\nold\n"
        self.assertEqual(compare.written(old, "new\n"), "# Title\n\nText.\n\n## Figures\n\nnew\n")
        with self.assertRaises(SystemExit):
            compare.written("no such heading", "new")

    def test_a_contender_that_is_wrong_is_no_peer_and_stops_tiny(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy")
        made = lambda name, kind, value: timing.Contender(
            name, kind, lambda: None, result=lambda: [numpy.array([value])])  # fmt: skip
        right, wrong = made("right", "peer", 1.0), made("wrong", "peer", 1.1)
        kept, _, dropped = timing.check([made("tiny", "tiny", 1.0), right, wrong])
        self.assertEqual([c.name for c in kept], ["tiny", "right"])
        self.assertIn("wrong is wrong by 1.0e-01", dropped[0])
        with self.assertRaisesRegex(RuntimeError, "tiny is wrong"):
            timing.check([made("tiny", "tiny", 1.1), right])

    def test_medians_and_means(self):
        self.assertEqual(report.median([3, 1, 2]), 2)
        self.assertEqual(report.median([4, 1, 2, 3]), 2.5)
        self.assertAlmostEqual(report.geometric_mean([0.5, 2.0, 8.0]), 2.0)

    def test_columns_are_aligned(self):
        lines = report.table(["name", "n"], [["a", 1], ["longer", 1000]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertEqual(lines[2], "| a      |    1 |")

    def test_spans_of_kernels_leave_out_loading(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            trace.write_text('{"traceEvents":[{"name":"E_4","cat":"compile","dur":1500},'
                             '{"name":"load 1 kernels","cat":"compile","dur":9},'
                             '{"name":"schedule","cat":"schedule","dur":8}]}')
            self.assertEqual(compiling.kernel_spans(pathlib.Path(folder)), [1.5])

    def test_a_program_that_fails_is_no_figure(self):
        with self.assertRaisesRegex(RuntimeError, "ended with 3"):
            report.json_of([sys.executable, "-c", "raise SystemExit(3)"])


if __name__ == "__main__":
    unittest.main()
