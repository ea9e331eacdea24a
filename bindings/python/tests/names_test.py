"""Names of tensors in profiles and traces."""

import json
import unittest

import tiny


class Names(unittest.TestCase):
    def setUp(self):
        self.context = tiny.Context(device="interp", cache=0)

    def test_name_is_a_property(self):
        x = self.context.arange(tiny.float32, 3)
        self.assertEqual(x.name, "")
        x.name = "numbers"
        self.assertEqual(x.name, "numbers")

    def test_programs_and_traces_tell_it(self):
        x = self.context.input(tiny.float32, [4])
        y = (x * 3).exp()
        y.name = "layer"
        program = tiny.Program.compile([x], [y])
        self.assertEqual([k["computes"] for k in json.loads(program.kernels().text())], [["layer"]])
        run = tiny.Run.create(program)
        run.set_input(0, self.context.arange(tiny.float32, 4))
        run.set_timed(True)
        run.execute()
        event, = json.loads(run.trace().text())["traceEvents"]
        self.assertEqual(event["args"]["computes"], ["layer"])


if __name__ == "__main__":
    unittest.main()
