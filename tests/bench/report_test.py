"""What bench/'s tables say of figures that are known."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import compare  # noqa: E402
import compiling  # noqa: E402
import report  # noqa: E402


def contender(name, kind, best, median):
    return {"name": name, "kind": kind, "best_ms": best, "median_ms": median}


def kernel_row(name, ours):
    return {"name": name, "flops": 2e9, "bytes": 0, "contenders": [
        contender("tiny", "tiny", ours, 2 * ours), contender("slow", "peer", 40.0, 44.0),
        contender("quick", "peer", 20.0, 30.0), contender("ready", "prepared", 5.0, 6.0),
        contender("limit", "limit", 10.0, 10.0)]}  # fmt: skip


class Report(unittest.TestCase):
    def test_a_ratio_is_to_the_best_peer_and_not_to_what_was_prepared(self):
        result = {"rows": [kernel_row("matmul 512^3", 25.0)]}
        text = compare.kernels_text(result)
        row = result["rows"][0]
        self.assertEqual((row["ratio"], row["ratio_median"], row["share_of_limit"]),
                         (0.8, 0.6, 0.4))
        self.assertIn("quick |  0.80 |       0.60 |       0.20 |      40% | reached (>= 0.75)", text)
        self.assertIn("80 GFLOPS", text)

    def test_a_row_below_its_target_is_marked(self):
        text = compare.kernels_text({"rows": [kernel_row("matmul 512^3", 30.0)]})
        self.assertIn("MISSED (>= 0.75)", text)
        self.assertEqual(report.at_most("libtiny.so, stripped", 3.1), "MISSED (<= 3)")
        self.assertEqual(report.at_most("libtiny.so, stripped", 3.0), "reached (<= 3)")
        self.assertEqual(report.at_least("a row without a target", 0.1), "")

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
