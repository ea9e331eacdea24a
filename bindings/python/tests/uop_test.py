"""The engine's nodes in Python: what they say of themselves, expressions and their bounds, rules of one's own."""

import copy
import gc
import math
import pickle
import unittest

import tiny
from tiny import GroupOp, Ops, PatternMatcher, Tensor, UOp, UPat, graph_rewrite
from tiny.uop import sym_infer
from hypothesis import given, settings, strategies

X, Y, N = UOp.variable("x", 0, 9), UOp.variable("y", -5, 20), UOp.variable("n", 1, 64)


class Nodes(unittest.TestCase):
    def test_equal_fields_are_one_object(self):
        self.assertIs(X * 4 + 1, X * 4 + 1)
        self.assertIsNot(X + Y, Y + X)  # as they stand
        self.assertIs(UOp.variable("x", 0, 9), X)
        self.assertIsNot(UOp.variable("x", 0, 8), X)
        self.assertEqual(len({X + 1, X + 1, X + 2}), 2)
        self.assertIs(copy.deepcopy(X + 1), X + 1)

    def test_fields(self):
        node = X * 4
        self.assertEqual((node.op, node.dtype, node.src[0], node.arg), (Ops.MUL, tiny.int64, X, None))
        self.assertEqual((node.src[1].op, node.src[1].arg, node.src[1].val), (Ops.CONST, 4, 4))
        self.assertEqual((X.arg.name, X.arg.min, X.arg.max), ("x", 0, 9))
        self.assertEqual(UOp.const(2.5).dtype, tiny.float32)
        self.assertIs(UOp.const(True).val, True)
        self.assertTrue(math.isnan(UOp.const(float("nan")).val))
        self.assertEqual(UOp.const(255, tiny.uint8).val, 255)
        self.assertIsNone((UOp.variable("z", 0, 1) < X).shape or None)

    def test_a_tensor_s_node(self):
        a = Tensor([[1.0, 2.0], [3.0, 4.0]])
        node = (a.sum(axis=1) * 2).uop
        self.assertEqual((node.op, node.shape, node.dtype), (Ops.MUL, (2,), tiny.float32))
        reduced = next(one for one in node.toposort() if one.op is Ops.REDUCEAXIS)
        self.assertEqual(reduced.arg, (Ops.ADD, (1,)))
        self.assertTrue(a.uop.is_realized)
        self.assertFalse(node.is_realized)
        self.assertIs((a.sum(axis=1) * 2).uop, node)
        order = list(node.toposort())
        self.assertTrue(all(order.index(one) < order.index(user) for user in order for one in user.src))
        self.assertIs(order[-1], node)

    def test_the_memory_of_a_node(self):
        a = Tensor([[1.0, 2.0], [3.0, 4.0]])
        memory = a.uop.base.buffer
        self.assertEqual((memory.size, memory.dtype, memory.nbytes), (4, tiny.float32, 16))
        self.assertIs(a[1:].uop.buffer, memory)
        a += 1
        self.assertIs(a.realize().uop.base.realized, memory)
        self.assertEqual(memory.as_memoryview().cast("f").tolist(), [2, 3, 4, 5])
        other = a * 2
        self.assertIsNone(other.uop.realized)
        with self.assertRaisesRegex(RuntimeError, "is not in memory"):
            other.uop.buffer
        self.assertIsNot(other.realize().uop.base.buffer, memory)
        self.assertEqual((a * 3).callify()._buffer().numpy().tolist(), [6, 9, 12, 15])

    def test_a_tensor_of_a_node(self):
        a = Tensor([1.0, 2.0, 3.0])
        node = (a + 1).uop
        self.assertEqual(Tensor(node).tolist(), [2, 3, 4])
        self.assertEqual(Tensor(UOp.const(2.5)).item(), 2.5)
        self.assertEqual((node * node + 0.5).tensor().tolist(), [4.5, 9.5, 16.5])
        self.assertEqual((node > 2.5).tensor().tolist(), [False, True, True])
        with self.assertRaisesRegex(tiny.Error, "wants operands of one shape"):
            node + Tensor([1.0]).uop

    def test_made_by_hand(self):
        self.assertIs(UOp(Ops.ADD, src=(X, Y)), X + Y)
        self.assertIs(UOp(Ops.CAST, tiny.float32, (X,)), X.cast("float32"))
        self.assertIs(UOp(Ops.CONST, tiny.int64, arg=3), UOp.const(3))
        with self.assertRaisesRegex(ValueError, "REDUCEAXIS.*comes from the engine alone"):
            UOp(Ops.REDUCEAXIS, src=(X,))
        with self.assertRaisesRegex(tiny.Error, "op Add has 2 sources, not 1"):
            UOp(Ops.ADD, src=(X,))
        with self.assertRaisesRegex(TypeError, "a whole number is wanted"):
            X + 1.5

    def test_other_sources(self):
        self.assertIs((X + 1).replace(src=(Y, UOp.const(2))), Y + 2)
        self.assertIs((X + 1).replace(op=Ops.MUL), X * 1)
        self.assertIs((X + Y * X).substitute({X: N}), N + Y * N)
        a = Tensor([[1.0, 2.0]])
        node = (a * 2).sum().uop
        doubled = node.substitute({(a * 2).uop: (a * 3).uop})
        self.assertEqual(doubled.tensor().item(), 9)
        with self.assertRaisesRegex(tiny.Error, "has the shape"):
            node.substitute({(a * 2).uop: (Tensor([1.0, 2.0, 3.0]) * 3).uop})

    def test_pickle(self):
        expression = (X * 4 + Y) // 3 < N
        self.assertIs(pickle.loads(pickle.dumps(expression)), expression)
        with self.assertRaisesRegex(TypeError, "depends on this process"):
            pickle.dumps(Tensor([1.0, 2.0]).uop)

    def test_text(self):
        self.assertEqual((X * 2 // 2).render(), "x")
        for node, text in ((X * 4 + 2, "(x*4+2)"), (X * 2 // 2, "(x*2//2)"), ((X * 4 + 2 + Y) // 16, "((x*4+2+y)//16)"),
                           (X + (Y + N), "(x+(y+n))"), ((X + Y) * (N + 1), "((x+y)*(n+1))"), ((X < 4) & (Y < X), "((x<4)&(y<x))"),
                           ((X < 4).where(X, Y), "(x if (x<4) else y)"), (X.maximum(Y * 2), "max(x, (y*2))"),
                           ((X * 2).cast("float32"), "(float32)((x*2))"), (UOp(Ops.CDIV, src=(X, N)), "cdiv(x, n)")):
            self.assertEqual(node.render(simplify=False), text)
        text = str((X + 1) * (X + 1))
        self.assertIn("x0 := UOp(Ops.ADD, dtypes.int64)", text)
        self.assertEqual(text.splitlines()[-1].strip(), "x0")

    def test_the_table(self):
        self.assertEqual((Ops.ADD.symbol, Ops.ADD.arity, Ops.FLOORDIV.engine_name), ("+", 2, "FloorDiv"))
        self.assertIs(Ops.CMPLT, Ops.LESS)
        self.assertEqual(str(Ops.ADD), "Ops.ADD")
        self.assertIn(Ops.ADD, GroupOp.Commutative)
        self.assertEqual(GroupOp.Ternary, {Ops.WHERE, Ops.FMA})
        self.assertIn(Ops.RESHAPE, GroupOp.Movement)
        self.assertEqual(Ops.LOAD.stages, {"kernel", "linear"})

    def test_they_go(self):
        for i in range(2000):
            (X * i + Y).simplify()
        gc.collect()
        from tiny.uop._node import _live
        self.assertLess(len(_live), 200)


class Schedule(unittest.TestCase):
    def test_kernels_and_what_they_compute(self):
        a = Tensor.rand(64, 32).realize()
        total = ((a @ a.T).relu() + 1).sum(axis=0)
        items = total.schedule()
        self.assertEqual([item.name[0] for item in items], ["r"] * len(items))
        self.assertTrue(items[0].ranges and items[0].buffers and items[0].operations > 0)
        self.assertEqual(items[-1].ast.op, Ops.STORE)
        ops = {node.op for item in items for store in item.stores for node in store.toposort()}
        self.assertLessEqual({Ops.LOAD, Ops.REDUCE, Ops.RANGE, Ops.MAX}, ops)
        self.assertEqual([item.name for item in total.schedule()], [item.name for item in items])
        total.realize()
        self.assertEqual(total.schedule(), [])

    def test_what_runs_later(self):
        a = Tensor.rand(8, 4).realize()
        b, c = (a * 2).sum(0), a.max(axis=1)
        linear = b.schedule_linear(c)
        self.assertEqual([call.src[0].name for call in linear.src], [item.name for item in b.schedule(c)])
        self.assertFalse(b.uop.is_realized)
        linear.run()
        self.assertTrue(b.uop.is_realized and c.uop.is_realized)
        self.assertEqual(len(b.schedule_linear()), 0)
        n = tiny.Variable("n", 1, 8).bind(3)
        self.assertEqual((a[:n] + 1).linear_with_vars()[1], {"n": 3})

    def test_several_tensors(self):
        a = Tensor.ones(4, 4).contiguous().realize()
        b, c = a + 1, a * 2
        self.assertEqual(len(b.schedule(c)), len((a + 3).schedule(a * 4)))
        self.assertIn("operations", repr(b.schedule()[0]))


class Simplified(unittest.TestCase):
    def test_known_forms(self):
        for expression, simple in (
                (X + 0, X), (X * 1, X), (X * 0, UOp.const(0)), ((X * 4 + 2) // 4, X), (X % 10, X), (X // 10, UOp.const(0)),
                (X < 10, UOp.const(True)), (X < 0, UOp.const(False)), (X - X, UOp.const(0)), (X + X, X * 2),
                ((X * 12) % 4, UOp.const(0)), ((X * 8 + Y * 4) // 4, X * 2 + Y), ((X < 5).where(X, X), X),
                (X.maximum(-1), X), (X.minimum(20), X)):
            self.assertIs(expression.simplify(), simple, expression.render(simplify=False))

    def test_bounds(self):
        for expression, low, high in (
                (X, 0, 9), (X + 5, 5, 14), (-X, -9, 0), (X * -2 + 1, -17, 1), (Y // 4, -2, 5), (Y % 7, 0, 6),
                (X.minimum(3), 0, 3), (X < 20, True, True), (X < 5, False, True), (UOp.const(4), 4, 4),
                (UOp.const(2.5), 2.5, 2.5), (X.cast("float32"), -math.inf, math.inf)):
            self.assertEqual((expression.vmin, expression.vmax), (low, high), str(expression))

    def test_truth(self):
        self.assertTrue(X < 10)
        self.assertFalse(X < 0)
        with self.assertRaisesRegex(TypeError, "neither true nor false"):
            bool(X < 5)

    def test_of_numbers_alone(self):
        with self.assertRaisesRegex(tiny.Error, "a node of the tensor graph"):
            (Tensor([1, 2]) + 1).uop.simplify()

    def test_values(self):
        self.assertEqual(sym_infer(X * 4 + Y, {"x": 3, "y": -2}), 10)
        self.assertEqual(sym_infer(7, {}), 7)
        self.assertEqual([one.arg.name for one in (Y * X + N).variables()], ["n", "x", "y"])
        with self.assertRaisesRegex(ValueError, "depends on y"):
            sym_infer(X + Y, {"x": 1})

    def test_sizes_are_expressions(self):
        i, j = tiny.Variable("i", 0, 10), tiny.Variable("j", -4, 5)
        size = (i * 4 + 2) // 2
        self.assertEqual((size.vmin, size.vmax, size.expr, size.simplify()), (1, 21, "2*i + 1", size))
        self.assertEqual(size.render(), size.uop.render())
        self.assertEqual((i.render(), i.bind(3).render(), (i.bind(3) * 2).render()), ("i", "i", (i * 2).render()))
        self.assertEqual([sym_infer(one, {"i": 3}) for one in (size, i, (i + 3) // 4, (i * i) % 5, i.bind(2) + 1)],
                         [7, 3, 1, 4, 3])
        self.assertEqual([sym_infer(i + j * 2, {"i": 1, "j": value}) for value in (-4, 0, 5)], [-7, 1, 11])
        with self.assertRaisesRegex(ValueError, "depends on i"):
            sym_infer(size, {"j": 1})


def _expressions():
    leaves = strategies.sampled_from([X, Y, N]) | strategies.integers(-20, 20).map(UOp.const)
    divisor = strategies.integers(1, 12)
    return strategies.recursive(leaves, lambda below: strategies.one_of(
        strategies.tuples(below, below).map(lambda two: two[0] + two[1]),
        strategies.tuples(below, below).map(lambda two: two[0] - two[1]),
        strategies.tuples(below, strategies.integers(-9, 9)).map(lambda two: two[0] * two[1]),
        strategies.tuples(below, divisor).map(lambda two: two[0] // two[1]),
        strategies.tuples(below, divisor).map(lambda two: two[0] % two[1]),
        strategies.tuples(below, below).map(lambda two: two[0].minimum(two[1])),
        strategies.tuples(below, below, below).map(lambda three: (three[0] < three[1]).where(three[1], three[2]))),
        max_leaves=8)


def _value(node, values):
    """What the expression is, by Python."""
    made = {}
    for one in node.toposort():
        src = [made[below] for below in one.src]
        made[one] = {
            Ops.CONST: lambda one=one: one.arg, Ops.VARIABLE: lambda one=one: values[one.arg.name],
            Ops.ADD: lambda src=src: src[0] + src[1], Ops.MUL: lambda src=src: src[0] * src[1],
            Ops.NEG: lambda src=src: -src[0], Ops.FLOORDIV: lambda src=src: src[0] // src[1],
            Ops.FLOORMOD: lambda src=src: src[0] % src[1], Ops.MIN: lambda src=src: min(src),
            Ops.MAX: lambda src=src: max(src), Ops.LESS: lambda src=src: src[0] < src[1],
            Ops.LESSEQUAL: lambda src=src: src[0] <= src[1], Ops.EQUAL: lambda src=src: src[0] == src[1],
            Ops.NOTEQUAL: lambda src=src: src[0] != src[1], Ops.NOT: lambda src=src: not src[0],
            Ops.AND: lambda src=src: src[0] & src[1], Ops.OR: lambda src=src: src[0] | src[1],
            Ops.WHERE: lambda src=src: src[1] if src[0] else src[2],
            Ops.CAST: lambda src=src: int(src[0])}[one.op]()
    return made[node]


class Space(unittest.TestCase):
    @given(_expressions(), strategies.integers(0, 9), strategies.integers(-5, 20), strategies.integers(1, 64))
    @settings(max_examples=300, deadline=None)
    def test_simplify_keeps_values_and_bounds_hold(self, node, x, y, n):
        values = {"x": x, "y": y, "n": n}
        value = _value(node, values)
        simple = node.simplify()
        self.assertEqual(_value(simple, values), value)
        for one in (node, simple):
            self.assertLessEqual(one.vmin, value)
            self.assertGreaterEqual(one.vmax, value)
        self.assertEqual(sym_infer(node, values), value)


class Rules(unittest.TestCase):
    def test_constants_of_a_value(self):
        rules = PatternMatcher([(UPat(Ops.ADD, src=(UPat.var("x"), UPat.cvar("c", 0))), lambda x, c: x)])
        self.assertIs(graph_rewrite((X + 0) * (Y + 0), rules), X * Y)
        self.assertIs(graph_rewrite(0 + X, rules), 0 + X)  # a tuple has an order
        either = PatternMatcher([(UPat(Ops.ADD, src=[UPat.var("x"), UPat.cvar("c", 0)]), lambda x, c: x)])
        self.assertIs(graph_rewrite(0 + X, either), X)
        self.assertIsNone(rules.rewrite(X))

    def test_patterns_by_operators(self):
        a, b, c = UPat.var("a"), UPat.var("b"), UPat.cvar("c")
        rules = PatternMatcher([(a * c + b * c, lambda a, b, c: (a + b) * c),
                                ((a < b).where(a, b), lambda a, b: a.minimum(b)),
                                (-(-a), lambda a: a),
                                (a - a, lambda a: a.const_like(0))])
        self.assertIs(graph_rewrite(X * 3 + 3 * Y, rules), (X + Y) * 3)
        self.assertIs(graph_rewrite((X < Y).where(X, Y), rules), X.minimum(Y))
        self.assertIs(graph_rewrite((X < Y).where(Y, X), rules), (X < Y).where(Y, X))
        self.assertIs(graph_rewrite(-(-(X + Y)), rules), X + Y)
        self.assertIs(graph_rewrite(X - X + Y, rules), UOp.const(0) + Y)

    def test_a_name_that_occurs_twice_is_one_node(self):
        rules = PatternMatcher([(UPat(GroupOp.Binary, src=(UPat.var("a"), UPat.var("a")), name="x"), lambda a, x: a)])
        self.assertIs(rules.rewrite(X + X), X)
        self.assertIsNone(rules.rewrite(X + Y))

    def test_what_patterns_say(self):
        def matches(pattern, node):
            return PatternMatcher([(pattern.named("x"), lambda **found: found["x"] + 0)]).rewrite(node) is not None
        self.assertTrue(matches(UPat((Ops.ADD, Ops.MUL)), X + 1))
        self.assertTrue(matches(UPat({Ops.ADD, Ops.MUL}), X * 1))
        self.assertFalse(matches(UPat((Ops.ADD, Ops.MUL)), X // 2))
        self.assertTrue(matches(UPat(Ops.CONST, tiny.int64), UOp.const(1)))
        self.assertFalse(matches(UPat(Ops.CONST, (tiny.float32, tiny.float64)), UOp.const(1)))
        self.assertTrue(matches(UPat(GroupOp.All, src=UPat.var()), X + Y))
        self.assertFalse(matches(UPat(GroupOp.All, src=UPat(Ops.VARIABLE)), X + 1))
        self.assertTrue(matches(UPat(Ops.WHERE, src=(UPat(Ops.LESS),), allow_any_len=True), (X < Y).where(X, Y)))
        self.assertFalse(matches(UPat(Ops.WHERE, src=(UPat(Ops.LESS),)), (X < Y).where(X, Y)))
        self.assertTrue(matches(UPat.any(UPat(Ops.MUL), UPat(Ops.ADD)), X + 1))
        self.assertFalse(matches(UPat.cvar(arg=True), UOp.const(1)))
        with self.assertRaisesRegex(ValueError, "ctx"):
            UPat(name="ctx")

    def test_several_ways_until_one_serves(self):
        def evens(a, c):
            return a if c.val % 2 == 0 else None
        rules = PatternMatcher([(UPat(Ops.ADD, src=[UPat.var("a"), UPat.cvar("c")]), evens)])
        self.assertIs(rules.rewrite(UOp.const(3) + UOp.const(4)), UOp.const(3))
        self.assertIsNone(rules.rewrite(X + 3))

    def test_the_first_rule_is_taken_and_rules_add_up(self):
        one = PatternMatcher([(UPat(Ops.ADD, name="x"), lambda x: x.src[0])])
        two = PatternMatcher([(UPat(Ops.ADD, name="x"), lambda x: x.src[1])])
        self.assertIs((one + two).rewrite(X + Y), X)
        self.assertIs((two + one).rewrite(X + Y), Y)

    def test_context(self):
        seen = []
        rules = PatternMatcher([(UPat(Ops.VARIABLE, name="v"), lambda ctx, v: ctx.append(v.arg.name))])
        graph_rewrite(X + Y * X, rules, seen)
        self.assertEqual(sorted(seen), ["x", "y"])  # each node once

    def test_to_a_fixed_point(self):
        down = PatternMatcher([(UPat.cvar("c"), lambda c: c.const_like(c.val - 1) if c.val > 0 else None)])
        self.assertIs(graph_rewrite(X + 100, down), X + 0)
        self.assertIs(graph_rewrite(X + 100, down, bottom_up=True), X + 0)

    def test_the_node_before_its_sources(self):
        rules = PatternMatcher([(UPat(Ops.MUL, src=(UPat(Ops.ADD, name="a"), UPat.cvar("c"))),
                                 lambda a, c: a.src[0] * c + a.src[1] * c),
                                (UPat(Ops.ADD, name="a"), lambda a: None)])
        self.assertIs(graph_rewrite((X + Y) * 2, rules, bottom_up=True), X * 2 + Y * 2)

    def test_deep_graphs(self):
        node = X
        for i in range(5000):
            node = node + 1
        rules = PatternMatcher([(UPat.var("a") + UPat.cvar("c") + UPat.cvar("d"),
                                 lambda a, c, d: a + (c.val + d.val))])
        self.assertIs(graph_rewrite(node, rules), X + 5000)

    def test_rules_that_do_not_end(self):
        swap = PatternMatcher([(UPat(Ops.ADD, src=(UPat.var("a"), UPat.var("b"))), lambda a, b: b + a)])
        for bottom_up in (False, True):
            with self.assertRaisesRegex(RuntimeError, "rules (go round|that do not end)"):
                graph_rewrite(X + Y, swap, bottom_up=bottom_up)

    def test_what_a_rule_returns(self):
        wrong = PatternMatcher([(UPat(Ops.ADD), lambda: 3)])
        with self.assertRaisesRegex(TypeError, r"the rule at .*uop_test.py:\d+ returned int; a UOp or None is wanted"):
            graph_rewrite(X + Y, wrong)
        with self.assertRaisesRegex(TypeError, "a rule is a UPat and a function"):
            PatternMatcher([(Ops.ADD, lambda: None)])

    def test_of_the_graph_of_tensors(self):
        a = Tensor([1.0, 2.0, 3.0])
        cheaper = PatternMatcher([(UPat(Ops.EXP, src=(UPat.var("x"),)), lambda x: x + 1)])
        rewritten = graph_rewrite((a.exp() * 2).sum().uop, cheaper)
        self.assertEqual(rewritten.tensor().item(), 18)


if __name__ == "__main__":
    unittest.main()
