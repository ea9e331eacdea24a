"""PyTorch's own database of operators on device "tiny": each sample forward and its gradients, equal to the CPU's.

    tests/peers/run_opinfo [-k NAME] [--dtype float32] [--samples N] [--seconds S] [--gradients] [--jobs J] [--errors]

Prints a line for each operator that fails somewhere, with the first reason, and the rates of all.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import re
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = os.environ.get("TINY_BUILD", str(ROOT / "build/release"))
sys.path.insert(0, BUILT + "/bindings/python")

# By name: what no device that computes in another order, or draws other numbers, can be compared in.
SKIPPED = {
    "random numbers": r"^(bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal|rand|randint|randn|uniform|"
                      r"nn\.functional\.(alpha_)?dropout\w*|nn\.functional\.feature_alpha_dropout\w*|nn\.functional\.rrelu|"
                      r"rand_like|randn_like|randint_like|svd_lowrank|pca_lowrank|nn\.functional\.fractional_max_pool\w*)",
    "memory that nobody wrote": r"^(empty|new_empty)",
    "dropout within": r"^(nn\.functional\.(scaled_dot_product_attention|multi_head_attention_forward)|"
                      r"torch\.ops\.aten\._(efficient|flash)\w*)",
    "sparse tensors": r"^(to_sparse|sparse)",
    "eigenvectors, of which any multiple is one": r"^linalg\.eig$",
    "CUDA's compiler": r"^jiterator",
    "indices that PyTorch wants on the CPU": r"^tensor_split",
    "a view that copying to the device makes another": r"^as_strided$",
}


def reason_to_skip(op):
    for reason, pattern in SKIPPED.items():
        if re.match(pattern, op.name):
            return reason
    return None


class TooLong(Exception):
    pass


def _late(signum, frame):
    raise TooLong("took too long")


def compare(torch, got, want):
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3, equal_nan=True, check_stride=False)


def moved(torch, value, device):
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, (list, tuple)):
        made = [moved(torch, item, device) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {key: moved(torch, item, device) for key, item in value.items()}
    return value


def flat(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(torch, item)]
    return []


def run_sample(torch, op, sample, wants_gradients):
    results, gradients = [], []
    for device in ("cpu", "tiny"):
        given = [moved(torch, part, device) for part in (sample.input, sample.args, sample.kwargs)]
        if "device" in given[2]:
            given[2]["device"] = device
        made = op(given[0], *given[1], **given[2])
        made = sample.output_process_fn_grad(made) if wants_gradients else made
        tensors = flat(torch, made)
        results.append([tensor.detach().cpu() for tensor in tensors])
        if wants_gradients:
            leaves = [leaf for leaf in flat(torch, given[:2]) + flat(torch, list(given[2].values())) if leaf.requires_grad]
            outputs = [tensor for tensor in tensors if tensor.requires_grad]
            found = torch.autograd.grad(outputs, leaves, [torch.ones_like(tensor) for tensor in outputs], allow_unused=True)
            gradients.append([None if grad is None else grad.cpu() for grad in found])
    compare(torch, results[1], results[0])
    for want, got in zip(*gradients):
        if (want is None) != (got is None):
            raise AssertionError("one gradient is None")
        if want is not None:
            compare(torch, got, want)


def run_op(arguments):
    name, variant, options = arguments
    import torch
    import tiny.torch  # noqa: F401
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _late)
    op = next(op for op in op_db if op.name == name and op.variant_test_name == variant)
    passed, first = 0, ""
    torch.manual_seed(0)
    try:
        samples = list(op.sample_inputs("cpu", options.torch_dtype, requires_grad=options.gradients))[:options.samples]
    except Exception as error:  # the database's own
        return name, variant, 0, 0, str(error)
    total = 0
    signal.alarm(options.seconds)
    try:
        for sample in samples:
            total += 1
            try:
                run_sample(torch, op, sample, options.gradients)
                passed += 1
            except TooLong:
                raise
            except Exception as error:
                first = first or f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    except TooLong as error:
        first = first or str(error)
    finally:
        signal.alarm(0)
    return name, variant, passed, len(samples), first


def operators(options):
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    options.torch_dtype = getattr(torch, options.dtype)
    skipped = collections.Counter()
    for op in op_db:
        if not re.search(options.k, op.name):
            continue
        takes = op.supports_autograd and options.torch_dtype in op.supported_backward_dtypes("cpu") if options.gradients \
            else options.torch_dtype in op.supported_dtypes("cpu")
        reason = "no such dtype or gradient" if not takes else reason_to_skip(op)
        if reason:
            skipped[reason] += 1
        else:
            yield op.name, op.variant_test_name, options
    for reason, count in skipped.items():
        print(f"{count} operators left out: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="operators whose name this expression finds")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=1 << 30, help="of each operator at most so many")
    parser.add_argument("--seconds", type=int, default=60, help="for each operator")
    parser.add_argument("--total", type=int, default=1 << 30, help="seconds for all; what is left by then is not run, and told")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--errors", action="store_true", help="list the operators that fail, with the first reason")
    parser.add_argument("--least", type=float, default=0, help="exit with 1 below this percentage of samples")
    options = parser.parse_args()
    all_passed = all_samples = whole = count = 0
    end = time.monotonic() + options.total
    every = list(operators(options))
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=100) as pool:
        for name, variant, passed, samples, first in pool.imap(run_op, every):
            all_passed, all_samples = all_passed + passed, all_samples + samples
            count += 1
            whole += passed == samples
            if passed < samples and options.errors:
                print(f"{name}{'.' + variant if variant else '':<40} {passed}/{samples} {first}", flush=True)
            if time.monotonic() > end:
                print(f"{len(every) - count} operators were not run: {options.total} s are over")
                break
    rate = 100 * all_passed / max(all_samples, 1)
    kind = "gradients" if options.gradients else "forward"
    print(f"{kind}, {options.dtype}: {all_passed} of {all_samples} samples ({rate:.1f} %), {whole} of {count} operators whole")
    return 0 if rate >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
