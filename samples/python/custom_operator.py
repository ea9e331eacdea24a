"""An operator that the engine has not: the median of rows, in NumPy, in the middle of a graph that the engine
compiles.

Usage: custom_operator.py
"""

import numpy
import tiny


@tiny.custom_op("com.example", "RowMedian", infer=lambda x: tiny.Spec(x.dtype, x.shape[:-1]))
def row_median(x):
    return numpy.median(x, axis=-1).astype(x.dtype)


def main():
    context = tiny.default_context()
    rows = tiny.Variable.create(context, "rows", 1, 1000)
    x = context.input(tiny.float32, [rows, 5])
    spread = (x - row_median(x).unsqueeze([-1])).abs()
    run = tiny.Run.create(tiny.Program.compile([x], [row_median(spread)]))
    run.set_input(0, tiny.tensor(numpy.array([[1, 2, 3, 4, 100], [5, 5, 5, 5, 5]], "float32")))
    run.execute()
    print("median absolute deviation of each row:", *run.output_tensor(0).tolist())


if __name__ == "__main__":
    main()
