"""Counts what every class of the library and of `tiny` has: at most 60 functions and 15 fields.  A class
beyond that does several things; its parts get headers of their own that say what each reads and makes."""

import re
import sys

from repository import ROOT, files, finish

FUNCTIONS_MAX = 60
FIELDS_MAX = 15
FOLDERS = ("src/", "onnx/", "tools/")

# Classes that may have more, each with the reason why no part of it can stand alone.
ALLOWED = {}

# In this order: what is no code, then what may hide brackets and commas.
NO_CODE = ((re.compile(r"//[^\n]*|/\*.*?\*/", re.S), " "),
           (re.compile(r'R"(\w*)\(.*?\)\1"', re.S), '""'),
           (re.compile(r'"(?:\\.|[^"\\\n])*"'), '""'),
           (re.compile(r"(?<!\d)'(?:\\.|[^'\\\n])'"), "0"),
           (re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.M), ""))
CLASS = re.compile(r"\b(enum\s+)?(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{")
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
TYPE = re.compile(r"(?:class|struct|union|enum)\b")
NO_MEMBER = re.compile(r"(?:using|friend|static_assert|typedef)\b")
STATIC = re.compile(r"(?:inline\s+)?(?:static|constexpr)\b")
ARGUMENTS = re.compile(r"<[^<>]*>")
PARENTHESES = re.compile(r"\([^()]*\)")
POINTER = re.compile(r"[^()]*\(\s*\*\s*\w+\s*\)")  # to a function: a field


def end_of(text, start):
    """Behind the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def is_function(text):
    """Whether a member, up to a brace, is a function whose body the brace opens."""
    text = re.sub(r"operator\W*", "operator", text)
    return "(" in text and "=" not in re.sub(r"\(.*\)", "", text, flags=re.S)


def members(body):
    """The declarations of a class; what stands in braces is left out."""
    found, current, place, depth = [], "", 0, 0
    while place < len(body):
        char = body[place]
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "{":
            place = end_of(body, place)
            follows = body[place:].lstrip()
            if depth == 0 and is_function(current) and not follows.startswith((";", ",", "{")):
                found.append(current)
                current = ""
            else:
                current += "{}"
            continue
        if char == ";" and depth == 0:
            found.append(current)
            current = ""
        else:
            current += char
        place += 1
    return [" ".join(ACCESS.sub(" ", member).split()) for member in found]


def count(body):
    """(functions, fields) of a class: those that it declares itself."""
    functions = fields = 0
    for member in members(body):
        if TYPE.match(member):  # a type of its own, and perhaps a field of that type
            fields += 1 if re.search(r"\{\}\s*\w", member) else 0
            continue
        if not member or NO_MEMBER.match(member):
            continue
        head = member
        while ARGUMENTS.search(head) and "operator" not in head:
            head = ARGUMENTS.sub("", head)
        declared = head if "operator" in head else head.split("=")[0].split("{}")[0]
        if "(" in declared and not POINTER.match(declared):
            functions += 1
        elif not STATIC.match(head):
            while PARENTHESES.search(head):
                head = PARENTHESES.sub("", head)
            fields += 1 + head.count(",")
    return functions, fields


def classes(text):
    """(name, functions, fields) of every class that is defined in the text."""
    for pattern, instead in NO_CODE:
        text = pattern.sub(instead, text)
    for found in CLASS.finditer(text):
        if not found.group(1):
            yield found.group(2), *count(text[found.end():end_of(text, found.end() - 1) - 1])


def check(root, allowed=None):
    allowed = ALLOWED if allowed is None else allowed
    failures, checked, beyond = [], 0, set()
    for path in files(root, (".h", ".cpp")):
        if not path.startswith(FOLDERS):
            continue
        for name, functions, fields in classes((root / path).read_text()):
            checked += 1
            if functions <= FUNCTIONS_MAX and fields <= FIELDS_MAX:
                continue
            beyond.add(name)
            if name not in allowed:
                failures.append(f"{path}: {name} has {functions} functions and {fields} fields; "
                                f"{FUNCTIONS_MAX} and {FIELDS_MAX} are the most")
    failures += [f"classes.py: {name} needs no exception any more" for name in allowed if name not in beyond]
    return failures, checked


if __name__ == "__main__":
    sys.exit(finish("classes", *check(ROOT)))
