"""Writes the corpus: models as exporters make them, random weights, DIR/FAMILY/NAME.onnx; tests/peers/make_corpus starts it.

    make.py DIR [--part N/M] [--only TEXT]

A model that is there already stays.  What this interpreter lacks is told and left out; an exporter that fails is told and
counted, and is no failure of ours.
"""

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import pathlib
import sys
import time

# Modules that have a table MODELS of {"family/name": maker(path)}, and the package that each cannot do without.
MODULES = {"torch_models": "torch", "sklearn_models": "skl2onnx", "quantised": "onnxruntime", "hub_models": "transformers",
           "boosted": "onnxmltools", "keras_models": "keras", "rewritten": "onnxruntime",
           "architectures": "timm"}  # fmt: skip
LONGEST_S = 300  # that one exporter may take


def tables():
    """{name: module} of all models that can be made here."""
    models = {}
    for module, package in MODULES.items():
        if importlib.util.find_spec(package) is None:
            print(f"left out: {module}, for want of {package}", flush=True)
            continue
        models |= {name: module for name in importlib.import_module(module).MODELS}
    return models


def made(module, name, path):
    """Runs in a process of its own: exporters keep what they have done, and some end the process."""
    temporary = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    importlib.import_module(module).MODELS[name](temporary)
    temporary.rename(path)


def attempt(module, name, path):
    """ "" or why there is no model."""
    if path.exists():
        return ""
    reader, writer = multiprocessing.Pipe(False)

    def child():
        # What exporters say of graphs that they cannot write is long.
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            made(module, name, path)
            writer.send("")
        except BaseException as error:
            writer.send(f"{type(error).__name__}: {str(error)[:300]}".replace("\n", " "))

    process = multiprocessing.Process(target=child)
    process.start()
    writer.close()
    process.join(LONGEST_S)
    if process.is_alive():
        process.kill()
        return f"more than {LONGEST_S} s"
    return reader.recv() if reader.poll() else f"the exporter ended the process ({process.exitcode})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--part", default="1/1", metavar="N/M", help="every Mth model, from the Nth on")
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose name has TEXT")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    models = {name: module for name, module in sorted(tables().items()) if arguments.only in name}
    chosen = list(models.items())[part - 1 :: parts]
    failed = 0
    start = time.monotonic()
    for name, module in chosen:
        why = attempt(module, name, arguments.folder / f"{name}.onnx")
        failed += bool(why)
        if why:
            print(f"{name}: {why}", flush=True)
    print(f"{len(chosen) - failed} models in {arguments.folder}, {failed} not made, {time.monotonic() - start:.0f} s")
    return 0 if len(chosen) > failed else 1


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
