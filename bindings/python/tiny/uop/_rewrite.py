"""graph_rewrite: a graph by rules to a fixed point, on a stack of its own, each node once."""

from .._dimension import Dim
from .._variables import shifted
from ..native import Variable
from ._node import UOp
from ._table import Ops

_MOST = 1 << 16  # rewrites of one node and of what rules made of it, one after the other


def graph_rewrite(sink, pm, ctx=None, bottom_up=False, name=None) -> UOp:
    """`sink` with every node below rewritten by the rules until none matches.  Sources first, then the node on its
    rewritten sources, then what became of it; `bottom_up`: the node first, then the sources of what became of it.
    `ctx` is given to functions with a parameter of that name; `name` is for errors."""
    made = {}
    if bottom_up:
        return _Rewriting(pm, ctx, name, made).outer_first(sink)
    return _Rewriting(pm, ctx, name, made).inner_first(sink)


class _Rewriting:
    def __init__(self, pm, ctx, name, made):
        self.pm, self.ctx, self.name, self.made = pm, ctx, name, made

    def apply(self, node, steps):
        """What a rule makes of the node; None if none matches."""
        result, rule = self.pm.rewrite_by(node, self.ctx)
        if result is None:
            return None
        where = f"graph_rewrite({self.name!r})" if self.name else "graph_rewrite"
        if not isinstance(result, UOp):
            raise TypeError(f"{where}: the rule at {rule} returned {type(result).__name__}; a UOp or None is wanted")
        if steps >= _MOST:
            raise RuntimeError(f"{where}: rules that do not end: {_MOST} steps led to another, by the rule at {rule}")
        return result

    def _round(self, node):
        raise RuntimeError(f"graph_rewrite: rules go round: what was made of {node.op} is made of it again")

    def inner_first(self, root):
        made, stack, open_nodes = self.made, [(root, 0, root, 0)], set()
        while stack:
            node, stage, other, steps = stack.pop()
            if stage == 2:  # what became of it is finished
                made[node] = made[other]
                open_nodes.discard(node)
            elif node in made:
                continue
            elif stage == 0:
                if node in open_nodes:
                    self._round(node)
                open_nodes.add(node)
                stack.append((node, 1, node, steps))
                stack.extend((one, 0, one, 0) for one in reversed(node.src) if one not in made)
            else:
                rebuilt = node.replace(src=tuple(made[one] for one in node.src)) if node.src else node
                result = self.apply(rebuilt, steps)
                if result is None:
                    made[node] = rebuilt
                    open_nodes.discard(node)
                    continue
                stack.append((node, 2, result, steps))
                if result not in made:
                    stack.append((result, 0, result, steps + 1))
        return made[root]

    def outer_first(self, root):
        made, stack = self.made, [(root, None)]
        while stack:
            node, result = stack.pop()
            if node in made:
                continue
            if result is None:
                result, steps = node, 0
                while (further := self.apply(result, steps)) is not None:
                    result, steps = further, steps + 1
                stack.append((node, result))
                stack.extend((one, None) for one in reversed(result.src) if one not in made)
            else:
                made[node] = result.replace(src=tuple(made[one] for one in result.src)) if result.src else result
        return made[root]


def sym_infer(uop, var_vals):
    """The number that an expression, or a size made of variables, is for their values by name; a number is itself."""
    if isinstance(uop, (Dim, Variable)):
        uop = uop.uop
    if not isinstance(uop, UOp):
        return uop
    var_vals = {**var_vals, **{spelt: var_vals[name] + shift for spelt, (name, shift) in shifted.items() if name in var_vals}}
    known = {one: one.const_like(var_vals[one.arg.name]) for one in uop.variables() if one.arg.name in var_vals}
    found = uop.substitute(known).simplify()
    if found.op is not Ops.CONST:
        raise ValueError(f"{uop.render()} depends on {', '.join(one.arg.name for one in found.variables())}, which have "
                         "no value")
    return found.arg
