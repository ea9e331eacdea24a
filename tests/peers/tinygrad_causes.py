"""Why tests of tinygrad's fail on tiny: for the table of run_tinygrad.py.

A row is (what is missing or other, the test's path and name, what it says, the cause), the second and the third as
regular expressions that are searched for; the first row that fits counts.  A failure that no row explains is a defect.
"""

import re

INTERNALS = "internals"  # needs a part of tinygrad that is none of its public surface
DELIBERATE = "deliberate"  # tinygrad documents a wrong result or refuses, and what tiny does is right
MACHINE = "machine"  # wants what this machine has not: the network, several devices
LACKING = "lacking"  # is of the public surface, and not there
UNKNOWN = "unknown"

ROWS = [
    # ---- Internals, by what a test asks for
    (INTERNALS, "", "tiny has no such part|ImportError: cannot import name", "imports an inner module of tinygrad's"),
    (INTERNALS, "", "'?(UOp|Ops|_AllOps|Bound)'? object has no attribute|type object 'UOp' has no|UOp\\.variable\\(\\)",
     "builds or looks at tinygrad's nodes"),
    (INTERNALS, "", "KernelCountException", "counts the kernels of tinygrad's scheduler"),
    (INTERNALS, "", "'NoneType' object has no attribute 'name'|StopIteration|not an instance of <class 'tiny.uop",
     "looks at the nodes that @function makes"),
    (INTERNALS, "", "is not Ops\\.(CONTIGUOUS_BACKWARD|COPY|REDUCE)|tiny_node_make", "looks at tinygrad's nodes"),
    (INTERNALS, "", "is not in memory: realize", "looks at memory that tinygrad has before values are computed"),
    (INTERNALS, "", "has no attribute '(as_param|call|compile)'|Tensor.as_param: tiny has no nodes", "functions of nodes"),
    (INTERNALS, "test_jit.py::.*jitbeam_triggers_beam", "", "counts calls of tinygrad's own search"),
    (INTERNALS, "test_randomness.py::.*(test_rand_is_lazy|test_threefry_tensors_cnt)", "", "looks at the generator's own tensors"),
    (INTERNALS, "test_pickle.py::.*(code_object|pattern_matcher|schedule|buffer)", "", "pickles tinygrad's nodes and code"),
    (INTERNALS, "test_tensor.py::.*(deviceless|max_shape)", "", "builds a tensor of an unbound node"),
    (INTERNALS, "test_jit.py::TestJitFree::test_updated_not_freed", "", "counts bytes of tinygrad's allocator"),
    (INTERNALS, "test_disk_tensor.py::.*device_reuse", "", "looks at the descriptor of tinygrad's DiskDevice and counts its users"),
    (INTERNALS, "", "custom_kernel", "writes kernels in tinygrad's nodes; tiny.custom_op has functions"),
    (INTERNALS, "", "'ScheduleItem' object has no attribute|'_broadcasted'|'_uop'|'target'|'compile_cached'|Buffer.as_memoryview",
     "looks into tinygrad's schedule, tensors and renderers"),
    (INTERNALS, "InvalidTensor", "InvalidType|argument 5 of type", "values of tinygrad's Invalid, which its compiler has"),
    (INTERNALS, "test_tensor.py::TestIdxUpcast", "", "looks at the integers of tinygrad's kernels"),
    (INTERNALS, "test_helpers.py::Test(Prod|CeilDiv)", "'render'|divisor", "arithmetic of tinygrad's nodes; sizes have Dim"),
    (INTERNALS, "test_(schedule|realize_is_realize|const_folding|allreduce|multitensor).py::.*(UOpBecome|empty_never|empty_is_not|"
     "Realized::|zero_size_realize|deviceless|AllreduceCast|test_shard$|shard_beam|MultiBufferView|bn_ast_on|recursive_add_cmp)", "",
     "looks at which of tinygrad's nodes have memory"),
    (INTERNALS, "test_multitensor.py::TestMultiRamUsage", "", "counts bytes of tinygrad's allocators"),
    (INTERNALS, "test_real_world.py::", "GB", "counts bytes of tinygrad's allocators"),
    (INTERNALS, "test_device.py::", "", "chooses tinygrad's devices, renderers and compilers"),
    (INTERNALS, "test_rangeify.py::", "'arg'|'cast'", "arguments and nodes of tinygrad's scheduler"),
    (INTERNALS, "test_const_folding.py::.*contiguous_deviceless", "", "looks at tinygrad's nodes"),
    (INTERNALS, "test_tensor_data.py::.*const_dtype_for_uop", "", "builds a tensor of a list of nodes"),
    # ---- What is right here
    (DELIBERATE, "test_tensor.py::TestTensorDeviceMismatch|_on_multi_raises|multiple_devices_fail|like_arg_device|shrink_bad_args|two_bind",
     "not raised", "what tinygrad refuses of several devices, or of two values of a variable, has the right value"),
    (DELIBERATE, "test_real_world.py::", "group_norm", "more groups than channels are refused, as in PyTorch"),
    (DELIBERATE, "test_multitensor.py::.*simple_train_step", "cross_entropy", "targets of another shape than the logits' are refused"),
    (DELIBERATE, "test_dtype_weak.py::.*(rand_requires|storage_raises)", "not raised", "weak types become strong where tinygrad refuses"),
    (DELIBERATE, "test_jit_footguns.py::", "", "a wrong result that the test documents is right: docs/PYTHON.md, TinyJit"),
    (DELIBERATE, "test_jit.py::.*(buffer_behavior|shape_views_mismatch)", "", "results are each call's own; views are inputs"),
    (DELIBERATE, "test_tiny.py::TestTiny::test_jit", "changes what it was captured with",
     "a number that the function changes is an error, not frozen"),
    (DELIBERATE, "test_assign.py::.*(diamond|crossunder|variable_slice_ordering)", "RuntimeError not raised",
     "what tinygrad refuses as a cycle has the right value"),
    (DELIBERATE, "test_assign.py::.*test_war_reader_already", "", "a value from before a write is kept, where tinygrad has the new"),
    (DELIBERATE, "test_(setitem|gradient).py::", "RuntimeError not raised",
     "what was built before a write keeps the old elements, where tinygrad refuses"),
    (DELIBERATE, "test_function.py::.*test_iadd", "", "one write is made once, where tinygrad makes two"),
    (DELIBERATE, "test_symbolic_ops.py::.*attention_training", "", "dropout of sizes that depend on variables works"),
    (DELIBERATE, "test_disk_tensor.py::.*test_slice_read_cat", "AssertionError not raised", "the values are right"),
    (DELIBERATE, "test_tensor_variable.py::.*chunk_error", "", "is cut by the variable's value, where tinygrad refuses"),
    # ---- What this machine has not
    (MACHINE, "", "URLError|Network is unreachable|Name or service not known|Temporary failure|HTTPError|fetch", "downloads"),
    (MACHINE, "", "ModuleNotFoundError: No module named", "needs a package that is not installed"),
    (MACHINE, "", "'CPU' != \\('CPU:1'", "wants several devices"),
    (MACHINE, "test_mnist.py::TestMNIST", "> 0.9", "wants MNIST; Fashion-MNIST, which is given for it, is harder"),
    (MACHINE, "test_schedule.py::TestLimitBufs", "not less than", "times of a machine that others use"),
    # ---- What is not there
    (LACKING, "test_dtype_weak.py::", "", "steps between weak floats are of the default type"),
    (LACKING, "test_tensor.py::.*const_like_multi", "", "a number has a device"),
    (LACKING, "test_tensor.py::.*rand_large", "", "random numbers are fewer than 2^32 in one draw"),
    (LACKING, "", "grad_fxn", "gradients of one's own for @function; tiny.custom_op has them"),
    (LACKING, "test_tensor_variable.py::.*large_range_variable_jit", "", "variables are at most 2^40"),
    (LACKING, "test_function.py::.*unused_param_backward", "", "an argument that a function does not use has no gradient"),
    (LACKING, "test_setitem.py::.*jit_setitem_variable_offset", "", "writes where the size of the part depends on the variable"),
]


def cause_of(test, text):
    """(kind, cause) of a failure."""
    for kind, where, what, cause in ROWS:
        if re.search(where, test) and re.search(what, text):
            return kind, cause
    return UNKNOWN, "not explained"
