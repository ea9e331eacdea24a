"""Writes the man page of `tiny` from what its --help says, of itself and of each command.

Usage: make-man.py TINY OUTPUT
"""

import pathlib
import re
import subprocess
import sys

# An entry of CLI11's help: two spaces, what it is called, and its text after two more or on the next lines.
ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")
CONTINUED = re.compile(r"^ {8,}(\S.*)$")
HEADING = re.compile(r"^([A-Z][A-Za-z ]*):\s*(.*)$")


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def help_of(tiny, *command):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run([tiny, *command, "--help"], check=True, capture_output=True, text=True,
                          env=environment).stdout.splitlines()


def entries(lines):
    """[(name, text)] of a list of flags, positionals or commands."""
    found = []
    for line in lines:
        entry, continued = ENTRY.match(line), CONTINUED.match(line)
        if continued and found:
            name, text = found[-1]
            found[-1] = (name, f"{text} {continued[1]}".strip())
        elif entry:
            found.append((entry[1].strip(), entry[2] or ""))
    return found


def sections(lines):
    """{heading: its lines}; what stands above the first is under ""."""
    found, heading = {"": []}, ""
    for line in lines:
        start = HEADING.match(line)
        if start:
            heading = start[1]
            found[heading] = [start[2]] if start[2] else []
        else:
            found[heading].append(line)
    return found


def listed(lines):
    parts = []
    for name, text in entries(lines):
        parts += [".TP", ".B " + escaped(name), escaped(text) if text else "\\&"]
    return parts


def verbatim(lines):
    return [".nf", *[escaped(line.strip()) for line in lines if line.strip()], ".fi"]


def main(tiny, output):
    whole = sections(help_of(tiny))
    version = subprocess.run([tiny, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    about = next(line for line in whole[""] if line.strip()).split(": ", 1)[-1]
    commands = entries(whole["Subcommands"])
    page = [f'.TH TINY 1 "" "tiny {version}" "User Commands"',
            ".SH NAME", f"tiny \\- {escaped(about)}", ".SH SYNOPSIS", ".B tiny", ".I COMMAND", "[options]",
            ".SH OPTIONS", *listed(whole["Options"]), ".SH COMMANDS"]
    for name, text in commands:
        own = sections(help_of(tiny, name))
        page += [f".SS tiny {escaped(name)}", escaped(text) + "."]
        if own.get("Usage"):
            page += [".PP", ".B " + escaped(own["Usage"][0])]
        for heading, lines in own.items():
            if heading in ("", "Usage", "Examples", "Exit codes"):
                continue
            page += [".PP", f".I {escaped(heading)}", *listed(lines)]
        if own.get("Examples", []) != whole.get("Examples", []):
            page += [".PP", ".I Examples", *verbatim(own.get("Examples", []))]
    page += [".SH EXAMPLES", *verbatim(whole.get("Examples", []))]
    page += [".SH EXIT STATUS", " ".join(escaped(line.strip()) for line in whole.get("Exit codes", []))]
    page += [".SH ENVIRONMENT",
             "Variables that begin with TINY_ set the engine's options: see debugging.md among the documents."]
    pathlib.Path(output).write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
