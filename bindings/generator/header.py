"""Reads include/tiny.h into plain records: the only source of what the bindings offer.

The header keeps to a small grammar (c-style declarations, one comment above each), so that a few
regular expressions read all of it; what they do not understand is an error, never a silent gap.
"""

import dataclasses
import re


@dataclasses.dataclass
class Parameter:
    type: str  # as C spells it, with one space before the stars: "const int64_t *"
    name: str


@dataclasses.dataclass
class Function:
    name: str
    result: str
    parameters: list
    doc: str


@dataclasses.dataclass
class Enumeration:
    name: str  # of the typedef: "tiny_unary_op"
    values: list  # (name, number, doc)


@dataclasses.dataclass
class Header:
    objects: list  # "tiny_tensor", ..
    enumerations: list
    flags: list  # of Enumeration: bits that are summed
    functions: list


def plain(comment):
    """The words of a comment, without its stars."""
    lines = re.sub(r"^/\*+|\*+/$", "", comment.strip(), flags=re.S).splitlines()
    return " ".join(re.sub(r"^\s*\**", "", line).strip() for line in lines).strip()


def parameter(text):
    text = " ".join(text.split())
    pointer = re.fullmatch(r"(\w+ \*?)\(\*\s*(\w+)\)\((.*)\)", text)
    if pointer:
        return Parameter(f"{pointer[1]}(*)({pointer[3]})", pointer[2])
    found = re.fullmatch(r"(.*?)\s*((?:\*\s*(?:const\s*)?)*)(\w+)", text)
    if not found or not found[1]:
        raise ValueError(f"a parameter that this parser does not know: {text}")
    stars = found[2].replace(" ", "").replace("const", "const ")
    return Parameter(f"{found[1]} {stars}".strip(), found[3])


def split_parameters(text):
    """The parameters of a declaration, split at the commas outside of parentheses."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    parts.append(part)
    return [] if text.strip() in ("", "void") else [parameter(part) for part in parts]


def enumeration(name, body):
    values, number, comment_of_last = [], -1, re.compile(r"/\*.*?\*/", re.S)
    for item in re.finditer(r"(\w+)\s*(?:=\s*(-?\w+))?\s*(,)?\s*(/\*.*?\*/)?",
                            re.sub(r",\s*(/\*)", r", \1", body), re.S):
        number = int(item[2], 0) if item[2] else number + 1
        values.append((item[1], number, plain(item[4]) if item[4] else ""))
    declared = [part for part in comment_of_last.sub("", body).split(",") if part.strip()]
    if len(declared) != len(values):
        raise ValueError(f"the enumeration of {name} is not understood")
    return Enumeration(name, values)


def parse(text):
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)  # the preprocessor's lines
    objects = re.findall(r"^typedef struct (\w+) \1;", text, re.M)
    families = re.findall(r"^typedef int32_t (\w+);\s*enum\s*\{(.*?)\};", text, re.M | re.S)
    flags = re.findall(r"^typedef uint32_t (\w+);\s*enum\s*\{(.*?)\};", text, re.M | re.S)
    functions = []
    for found in re.finditer(r"(/\*(?:[^*]|\*(?!/))*\*/)?\s*^TINY_API\s+([^;]*?)\b(tiny_\w+)\s*\(([^;]*)\);",
                             text, re.M):
        comment, result, name, parameters = found.groups()
        comment = "" if comment is None or comment.startswith("/* ----") else plain(comment)
        functions.append(Function(name, " ".join(result.replace("*", " *").split()),
                                  split_parameters(parameters), comment))
    if len(functions) != len(re.findall(r"^TINY_API\b", text, re.M)):
        raise ValueError("a declaration of tiny.h is not understood")
    return Header(objects, [enumeration(*family) for family in families],
                  [enumeration(*bits) for bits in flags], functions)
