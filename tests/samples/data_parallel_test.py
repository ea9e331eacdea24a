"""The sample that learns on several devices and in several processes: all have the same bits, and one device's losses.

Usage: data_parallel_test.py PROGRAM FOLDER MPIRUN EMULATION, with the folders of libtiny_mpi.so and libcuda.so.1; MPIRUN
may be empty: there is none."""

import os
import re
import subprocess
import sys

TOLERANCE = 1e-5  # of losses of about 1, whose sums of 64 rows are in another order


def run(*command, **variables):
    told = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=100)
    assert told.returncode == 0, (command, told.stdout, told.stderr)
    losses = [float(one) for one in re.findall(r"^step \d+ loss ([\d.]+)$", told.stdout, re.M)]
    bits = re.findall(r"process \d+ device \d+ parameters ([0-9a-f]{8})", told.stdout)
    assert len(losses) == 20, told.stdout
    return losses, bits


def main(program, folder, mpirun, emulation):
    alone, bits = run(program, "cpu")
    assert len(bits) == 1 and alone[-1] < 0.5 * alone[0], alone

    def equals_alone(count, found):
        losses, bits = found
        assert len(bits) == count and len(set(bits)) == 1, bits
        assert all(abs(a - b) < TOLERANCE for a, b in zip(losses, alone)), (losses, alone)
        return losses, bits[0]

    four = equals_alone(4, run(program, *["cpu"] * 4))
    # Of any kind: the sums over devices are the same, those on each in the order of its kind.
    equals_alone(2, run(program, "cpu", "far"))
    equals_alone(4, run(program, "cuda", "cuda:1", "cuda:2", "cpu", FAKE_CUDA_DEVICES="3", LD_LIBRARY_PATH=emulation))
    assert equals_alone(4, run(program, *["cpu"] * 4)) == four
    # Two parts of one device of OpenCL's, where there is one that has them.
    parts = ["opencl:0.0/2", "opencl:0.1/2"]
    told = subprocess.run([program, parts[1]], capture_output=True, text=True, timeout=100)
    if told.returncode == 0:
        equals_alone(2, run(program, *parts))
    else:
        assert re.search("cannot be opened|no driver has a device|too few for 2 parts|no devices of OpenCL", told.stderr), told
        print("not run on parts of an OpenCL device:", told.stderr)
    missing = subprocess.run([program, "--mpi", "cpu"], capture_output=True, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": "/nowhere"})
    assert missing.returncode == 1 and "no transport between processes: libtiny_mpi.so" in missing.stderr, missing
    if not mpirun:
        print("skipped: no MPI when tiny was configured (Debian's libopenmpi-dev and openmpi-bin)")
        sys.exit(1 if os.environ.get("CI", "").lower() in ("true", "1") else 77)
    start = [mpirun, "--allow-run-as-root", "--oversubscribe"]
    for processes, devices in ((4, 1), (2, 2)):
        equals_alone(4, run(*start, "-n", str(processes), program, "--mpi", *["cpu"] * devices, LD_LIBRARY_PATH=folder))
    wrong = subprocess.run([*start, "-n", "3", program, "--mpi", "cpu"], capture_output=True, text=True,
                           env={**os.environ, "LD_LIBRARY_PATH": folder})
    assert wrong.returncode and "64 rows are not shared evenly by 3 devices" in wrong.stderr, wrong


if __name__ == "__main__":
    main(*sys.argv[1:])
