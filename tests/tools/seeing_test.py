"""What `tiny` tells of its work on stderr, and by which names it is asked."""

import json
import os
import pathlib
import subprocess
import unittest

from support import CliTest, TINY


class Seeing(CliTest):
    def told(self, *arguments, **environment):
        """stderr of a run with these variables and no others that speak to the engine."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TINY_")}
        done = subprocess.run(
            [TINY, "run", str(self.arithmetic()), "--synth", "ones", "--dim", "N=4", "--no-cache",
             "-q", *arguments], capture_output=True, text=True, cwd=self.folder, timeout=120,
            env={**clean, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stdout = done.stdout
        return done.stderr

    def test_nothing_unless_asked(self):
        self.assertEqual(self.told(), "")

    def test_the_bare_names_speak_where_tiny_names_do_not(self):
        self.assertIn("avg: ", self.told(DEBUG="2"))
        self.assertIn("  options ", self.told(DEBUG="3"))
        self.assertEqual(self.told(DEBUG="2", TINY_DEBUG="0"), "")
        self.assertEqual(self.told(DEBUG="much"), "")
        self.assertRegex(self.told(DEBUG="3", NOOPT="1"), r"(?m)^  options E_4_3\.[0-9a-f]{8}: none$")

    def test_a_bare_name_out_of_range_is_told(self):
        environment = {**os.environ, "DEBUG": "9"}
        done = subprocess.run([TINY, "run", self.negation(), "--synth", "ones"], capture_output=True,
                              text=True, timeout=60, env=environment)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "^tiny: DEBUG=9 is ignored: .* from 0 to 7; got 9\n$")

    def test_everything_goes_to_stderr(self):
        quiet = self.told("--json") or self.stdout
        self.told("--json", TINY_DEBUG="7")
        self.assertEqual(json.loads(self.stdout).keys(), json.loads(quiet).keys())

    def test_files_are_named(self):
        for name in ("GRAPH", "GRAPHUOPS", "PROFILE"):
            told = self.told(**{name: "1", "TINY_OUT_DIR": str(self.folder)})
            text = pathlib.Path(told.split("tiny: wrote ")[1].split("\n")[0]).read_text()
            if name == "PROFILE":
                self.assertIn("launch", {event["cat"] for event in json.loads(text)["traceEvents"]})
            else:
                self.assertTrue(text.startswith("<svg"), text[:100])

    def test_an_unknown_variable_is_told(self):
        self.assertIn("TINY_DEBUGG", self.told(TINY_DEBUG="1", TINY_DEBUGG="2"))

    def test_bench_says_what_each_pass_took(self):
        one = self.json("bench", self.arithmetic(), "--dim", "N=4", "--runs", "1", "--warmup", "0",
                        "--threads", "1", "--no-cache")["results"][0]
        self.assertLessEqual({"linearize", "options", "load"}, one["compile_passes_ms"].keys())


if __name__ == "__main__":
    unittest.main()
