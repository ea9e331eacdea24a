"""Texts for terminals, and what programs write them of."""

import os
import re
import string

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ESCAPES = re.compile("\x1b\\[(?:K|.*?m)")


def colored(text, color=None, background=False) -> str:
    """The text in a colour for terminals; capital letters are bright.  NO_COLOR=1 leaves it plain."""
    if color is None or os.environ.get("NO_COLOR", "0") not in ("", "0"):
        return str(text)
    code = (10 if background else 0) + (60 if color.isupper() else 0) + 30 + _COLORS.index(color.lower())
    return f"\x1b[{code}m{text}\x1b[0m"


def colorize_float(x) -> str:
    """A ratio of times: green if it is good, red if it is not."""
    return colored(f"{x:7.2f}x", "green" if x < 0.75 else "red" if x > 1.15 else "yellow")


def ansistrip(text) -> str:
    """Without colours."""
    return _ESCAPES.sub("", text)


def ansilen(text) -> int:
    """Its length on a terminal."""
    return len(ansistrip(text))


def ansipad(text, width) -> str:
    """Spaces after it, up to a length on a terminal."""
    return text + " " * (width - ansilen(text))


def time_to_str(seconds, w=8) -> str:
    """In s, ms or us, whichever reads well."""
    for factor, unit in ((1, "s "), (1e3, "ms")):
        if seconds * factor > 10:
            return f"{seconds * factor:{w}.2f}{unit}"
    return f"{seconds * 1e6:{w}.2f}us"


def size_to_str(size) -> str:
    """Bytes in B, KB, MB or GB, of 1,024 each."""
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.2f} {unit}"
    return f"{size} B"


def pluralize(name, count) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def strip_parens(text) -> str:
    """Without parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for letter in text[1:-1]:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:  # the first one is closed before the end
            return text
    return text[1:-1] if depth == 0 else text


def to_function_name(text) -> str:
    """What C takes as a name: other letters by their number."""
    known = string.ascii_letters + string.digits + "_"
    return "".join(letter if letter in known else f"{ord(letter):02X}" for letter in ansistrip(text))


def word_wrap(text, wrap=80) -> str:
    """Lines of so many letters at most, colours not counted."""
    return "\n".join(_wrapped(line, wrap) for line in text.splitlines()) if "\n" in text else _wrapped(text, wrap)


def _wrapped(line, wrap):
    lines, start, seen, at = [], 0, 0, 0
    while at < len(line):
        escape = _ESCAPES.match(line, at)
        if escape:
            at = escape.end()
            continue
        if seen == wrap:
            lines, start, seen = [*lines, line[start:at]], at, 0
        at, seen = at + 1, seen + 1
    return "\n".join([*lines, line[start:]])
