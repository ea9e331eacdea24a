#!/usr/bin/env python3
"""Names the type of files with Magika's network.

    identify.py MODEL_DIR FILE...

MODEL_DIR holds model.onnx and config.min.json, as the Python package `magika` ships them.  Prints one
line `PATH: LABEL` per file, the label of the package's default mode.  Exit status: 0 done, 1 the
model or its configuration cannot be used, 2 wrong usage.
"""

import array
import json
import os
import pathlib
import sys

import tiny

# The labels that mean text: what is left of them when the network is not sure is "txt".
TEXT_LABELS = frozenset("""
    aidl appleplist asm asp autohotkey autoit awk batch bazel bib c clojure cmake cobol coffeescript
    cpp cs csproj css csv dart diff dm dockerfile dxf elixir eml erb erlang fortran gemfile gemspec
    gitattributes gitmodules go gradle groovy handlebars haskell hcl htaccess html ics ignorefile ini
    internetshortcut ipynb java javascript jinja json jsonl julia kotlin latex lisp lua m3u m4
    makefile markdown matlab mht mum objectivec ocaml pascal pem perl php po powershell prolog
    proteindb proto python r randomtxt rdf rst rtf ruby rust scala scss sgml shell smali solidity sql
    srt stltext sum svg swift tcl textproto toml tsv twig txt typescript vba vcxproj verilog vhdl vtt
    vue winregistry xml yaml yara zig""".split())


def label_of_few(content):
    """The label of what is too little for the network."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "unknown"
    return "txt"


class Identifier:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.min.json").read_text())
        if self.config["mid_size"] or self.config["use_inputs_at_offsets"]:
            raise ValueError("features that this program does not make")
        self.model = tiny.Model.load(tiny.default_context(), str(folder / "model.onnx"))

    def features(self, head, tail):
        """The first bytes after leading white space, the last before trailing one, padded."""
        padding = self.config["padding_token"]
        begin = head.lstrip()[:self.config["beg_size"]]
        end = tail.rstrip()[-self.config["end_size"]:]
        return (list(begin) + [padding] * (self.config["beg_size"] - len(begin)) +
                [padding] * (self.config["end_size"] - len(end)) + list(end))

    def ask_network(self, features):
        row = tiny.from_buffer(array.array("i", features), shape=[1, len(features)],
                               context=self.model.context)
        scores = self.model.run([row])[0].tolist()[0]
        best = scores.index(max(scores))
        label = self.config["target_labels_space"][best]
        output = self.config["overwrite_map"].get(label, label)
        threshold = self.config["thresholds"].get(label, self.config["medium_confidence_threshold"])
        if scores[best] >= threshold:
            return output
        return "txt" if output in TEXT_LABELS else "unknown"

    def label_of_content(self, file):
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return "empty"
        block = min(size, self.config["block_size"])
        file.seek(0)
        head = file.read(block)
        if size < self.config["min_file_size_for_dl"]:
            return label_of_few(head)
        file.seek(size - block)
        features = self.features(head, file.read(block))
        # Too little but white space is too little as well.
        if features[self.config["min_file_size_for_dl"] - 1] == self.config["padding_token"]:
            return label_of_few(head)
        return self.ask_network(features)

    def label(self, path):
        """The label of what is at `path`, links followed."""
        try:
            if os.path.isdir(path):
                return "directory"
            if os.path.exists(path) and not os.path.isfile(path):
                return "unknown"
            with open(path, "rb") as file:
                return self.label_of_content(file)
        except PermissionError:
            return "permission_error"
        except OSError:
            return "file_not_found_error"


def main(arguments):
    if len(arguments) < 2:
        print("usage: identify.py MODEL_DIR FILE...", file=sys.stderr)
        return 2
    try:
        identifier = Identifier(pathlib.Path(arguments[0]))
        for path in arguments[1:]:
            print(f"{path}: {identifier.label(path)}")
    except (tiny.Error, OSError, ValueError, KeyError) as error:
        print(f"identify: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
