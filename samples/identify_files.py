"""Tells what files are, by their content, with the Magika network (taken out of its Python wheel).

Usage: identify_files.py [--model FOLDER] FILE..
FOLDER holds model.onnx and config.min.json; by default those of the installed `magika` package.
"""

import argparse
import array
import importlib.util
import json
import pathlib

import tiny


def wheel_folder():
    """Where the pinned wheel keeps its network; the package itself is not imported."""
    package = importlib.util.find_spec("magika")
    if package is None:
        raise SystemExit("identify_files: no package magika here; run scripts/setup.sh")
    return next(pathlib.Path(package.origin).parent.glob("models/*/model.onnx")).parent


def features(content, config):
    """The first and last bytes without surrounding white space, padded to their sizes."""
    padding, block = config["padding_token"], config["block_size"]
    first = content[:block].lstrip()[:config["beg_size"]]
    last = content[-block:].rstrip()[-config["end_size"]:]
    first = list(first) + [padding] * (config["beg_size"] - len(first))
    last = [padding] * (config["end_size"] - len(last)) + list(last)
    return first + last


def identify(model, config, contents):
    """(label, score) of each content, in one run of the network."""
    rows = array.array("i", [value for content in contents for value in features(content, config)])
    inputs = tiny.from_buffer(rows, shape=[len(contents), len(rows) // len(contents)],
                              context=model.context)
    scores = model.run([inputs], 1)[0].tolist()
    labels = config["target_labels_space"]
    return [(labels[row.index(max(row))], max(row)) for row in scores]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, default=None, metavar="FOLDER")
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    folder = arguments.model or wheel_folder()
    config = json.loads((folder / "config.min.json").read_text())
    model = tiny.Model.load(tiny.default_context(), str(folder / "model.onnx"))
    contents = [path.read_bytes() for path in arguments.files]
    small = [str(path) for path, content in zip(arguments.files, contents)
             if len(content) < config["min_file_size_for_dl"]]
    if small:
        raise SystemExit(f"identify_files: too small for the network: {', '.join(small)}")
    width = max(len(str(path)) for path in arguments.files)
    for path, (label, score) in zip(arguments.files, identify(model, config, contents)):
        print(f"{str(path):{width}}  {label:12} {score:.3f}")


if __name__ == "__main__":
    main()
