"""Operators without a kernel here that PyTorch itself writes in terms of others: its decompositions are their kernels."""

import re

import torch
from torch._decomp import decomposition_table

# Of these PyTorch's decomposition is the operator itself again (a reference whose primitive calls it), is written for
# tracing alone, or is wrong (multilabel_margin_loss_forward where a row has no class).  They are listed in src/fallback.cpp or have a composite kernel.
LEFT_OUT = re.compile(
    r"aten::(copy_?|detach|empty_like|lift_fresh|_to_copy|native_dropout|nonzero_static|_unsafe_index"
    r"|adaptive_max_pool\w*|cbrt|_?conj_physical_?|frexp|gcd_?|igammac?_?|lcm_?|mvlgamma_?|cumprod_?"
    r"|multilabel_margin_loss_forward"
    r"|special_(airy_ai|bessel_\w+|modified_\w+|scaled_\w+|spherical_\w+|zeta))")

CHECKED_FIRST = {torch.ops.aten.nll_loss2d_forward.default}  # by kernels of _composites.py, which call the decomposition

has = torch._C._dispatch_has_kernel_for_dispatch_key
KEYS_THAT_COMPUTE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "PrivateUse1")


def _name(op):
    return op._schema.name + ("." + op._schema.overload_name if op._schema.overload_name else "")


def _arguments(op):
    return [(a.name, str(a.type)) for a in op._schema.arguments if not (a.kwarg_only and a.alias_info)]


def _has_kernel(op):
    name = _name(op)
    if any(has(name, key) for key in KEYS_THAT_COMPUTE):
        return True
    # A structured operator is computed by its form with out=, which has a kernel here or not.
    if not has(name, "CompositeExplicitAutogradNonFunctional"):
        return False
    packet = getattr(torch.ops.aten, op._schema.name.split("::")[1].removesuffix("_"))
    forms = (getattr(packet, overload) for overload in packet.overloads())
    return any(form._schema.is_mutable and _arguments(form) == _arguments(op) and
               (has(_name(form), "PrivateUse1") or has(_name(form), "CompositeExplicitAutograd"))
               for form in forms if form is not op)


def register():
    """Keeps the library alive that it returns: without it the kernels are gone."""
    library = torch.library.Library("aten", "IMPL")
    for op, decomposition in decomposition_table.items():
        if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
            continue
        if op in CHECKED_FIRST or LEFT_OUT.fullmatch(op._schema.name) or _has_kernel(op):
            continue
        library.impl(op, decomposition, "PrivateUse1")
    return library
