"""Turns the functions of tiny.h into calls that a language can offer as methods.

A C function's parameters are grouped into arguments: a run of `const int64_t *` and the size_t that
counts them, a pointer and its `bytes`, a list of handles and its `count`; what is written through
becomes a result.  A family (`tiny_unary(op, a)`) becomes one call per value of its enumeration.
"""

import dataclasses
import re

NUMBERS = {"int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "double", "float"}
# Ownership, an object's context, errors: every language does these by itself.
AUTOMATIC = re.compile(r"tiny_\w+_(?:retain|release|context)$|tiny_last_error(?:_json)?$")


@dataclasses.dataclass
class Argument:
    kind: str  # object, objects, lists, data, into, flag, flags, enum, text, or a C number type
    name: str
    type: str = ""  # the object or enumeration
    names: tuple = ()  # of lists that share one count, and of each whether it may be left out; of flags
    bits: tuple = ()  # of flags: the number of each
    nullable: tuple = ()
    holes: bool = False  # of objects: whether elements may be left out
    default: str = ""  # of functions.def: a number, or "" if the argument must be given


@dataclasses.dataclass
class Result:
    kind: str  # object, objects, list, enum, text, pointer, or a C number type
    name: str = ""
    type: str = ""  # the object, the enumeration, or the number type of a list
    count: str = ""  # of objects: the argument that says how many
    count_of: str = ""  # of objects: the list that there is one for each of, instead


@dataclasses.dataclass
class Call:
    function: str
    method: str
    owner: str  # the object that it is a method or a constructor of; "" for a free function
    has_receiver: bool
    constant: int  # the value of a family's enumeration that comes first, or None
    arguments: list  # the receiver is not among them
    results: list
    checked: bool  # returns a status
    order: list  # what the C function takes: Arguments, Results, or "receiver", "constant"
    doc: str
    looks: bool = True  # takes its receiver as const: it changes nothing

    @property
    def is_getter(self):
        """Whether languages with properties have it as one."""
        return bool(self.has_receiver and self.looks and not self.arguments and self.results and self.checked and
                    all(item.kind not in ("object", "objects") for item in self.results) and
                    self.function.startswith(self.owner + "_"))


def list_with_context(call):
    """The list of objects that says the context of what is made: the one that has a result for each element, or the
    last, earlier ones may be empty."""
    lists = [argument for argument in call.arguments if argument.kind == "objects"]
    counted = {result.count_of for result in call.results if result.kind == "objects"}
    return next((l for l in lists if l.name in counted), lists[-1] if lists else None)


def context_given(call):
    """The context that is an argument: what is made lives there, whatever else the call takes."""
    return next((argument for argument in call.arguments if argument.kind == "object" and
                 argument.type == "tiny_context" and not argument.nullable[0]), None)


class Unknown(Exception):
    """A parameter that the languages' safe layer has no form for: the raw function is all there is."""


def strip(name):
    """tiny_binary_op -> binary_op, TINY_ADD -> ADD."""
    return re.sub(r"^tiny_", "", name, flags=re.I)


def flag_name(name):
    """TINY_FLAG_KEEPDIMS -> keepdims."""
    return strip(name).removeprefix("FLAG_").lower()


def camel(name):
    return "".join(part.capitalize() for part in strip(name).lower().split("_"))


def value_name(enumeration, name):
    """TINY_ADD -> ADD, and TINY_PADDING_VALID -> VALID where all values of tiny_padding are TINY_PADDING_.."""
    prefix = enumeration.name.upper() + "_"
    common = all(value.startswith(prefix) for value, _, _ in enumeration.values)
    return name.removeprefix(prefix if common else "TINY_")


def may_be_null(name, doc):
    return bool(re.search(rf"`?\b{name}\b`? (?:\(?may be )?NULL|NULL `?{name}\b", doc))


def lists_group(parameters, at):
    """The run of `const int64_t *` at `at` that a size_t closes, or None."""
    end = at
    while end < len(parameters) and parameters[end].type == "const int64_t *":
        end += 1
    closed = end > at and end < len(parameters) and parameters[end].type == "size_t"
    return (parameters[at:end], end + 1) if closed else None


def read_defaults(text):
    """{(function, parameter): default} of src/api/functions.def and defaults.def, numbers only."""
    found = {(f"tiny_{function}", parameter): value for function, parameter, value in
             re.findall(r"^DEFAULT\((\w+), (\w+), (-?[\d.e-]+)\)", text, re.M)}
    for name, parameters in re.findall(r'^FUNCTION\((\w+), "([^"]*)"', text, re.M):
        for parameter, default in re.findall(r"(\w+): \w+ = (-?[\d.e-]+)", parameters):
            found[f"tiny_{name}", parameter] = default
    return found


def filled_list(parameters, at):
    """Whether (numbers, capacity, how many there are) begins at `at`."""
    types = [p.type for p in parameters[at:at + 3]]
    return types[1:] == ["size_t", "size_t *"] and types[0] in ("int64_t *", "double *")


def number_result(parameters, at, enumerations):
    """Whether a number is written through parameter `at`: only such pointers follow it."""
    return all(p.type.endswith(" *") and (p.type[:-2] in NUMBERS or p.type[:-2] in enumerations)
               for p in parameters[at:])


class Model:
    def __init__(self, header, defaults=None):
        self.header = header
        self.defaults = defaults or {}
        # What only functions with callbacks make, each language makes by hand.
        makers = {name: [f for f in header.functions if any(p.type == f"{name} **" for p in f.parameters)]
                  for name in header.objects}
        by_hand = {name for name, found in makers.items() if found and
                   all(any("(*)" in p.type for p in f.parameters) for f in found)}
        self.objects = [name for name in header.objects if name not in by_hand and
                        any(f.name == f"{name}_release" for f in header.functions)]
        self.enumerations = {e.name: e for e in header.enumerations}
        self.flags = {e.name: e for e in header.flags}
        self.families = {name: e for name, e in self.enumerations.items() if name.endswith("_op")}
        self.calls, self.unwrapped = [], []
        for function in header.functions:
            if AUTOMATIC.search(function.name):
                continue
            try:
                self.calls += self.calls_of(function)
            except Unknown as unknown:
                self.unwrapped.append((function.name, str(unknown)))

    def object_of(self, type_text):
        """The object behind `tiny_x *` or `const tiny_x *`, or None."""
        found = re.fullmatch(r"(?:const )?(\w+) \*", type_text)
        return found[1] if found and found[1] in self.objects else None

    def argument(self, parameters, at, doc):
        """The argument or result that begins at parameter `at`, and where the next begins."""
        p, rest = parameters[at], parameters[at + 1:]
        following = rest[0].type if rest else ""
        group = lists_group(parameters, at)
        if group:
            names = tuple(member.name for member in group[0])
            nullable = tuple(may_be_null(name, doc) for name in names)
            return Argument("lists", names[0], names=names, nullable=nullable), group[1]
        if p.type in ("const void *", "void *") and following == "size_t" and rest[0].name == "bytes":
            return Argument("data" if p.type.startswith("const") else "into", p.name), at + 2
        if filled_list(parameters, at):
            return Result("list", p.name, p.type.removesuffix(" *")), at + 3
        several = re.fullmatch(r"(?:const )?(\w+) \*const \*", p.type)
        if several and several[1] in self.objects and following == "size_t":
            holes = re.search(rf"element of `?{p.name}`? may be NULL", doc) is not None
            return Argument("objects", p.name, several[1], holes=holes,
                            nullable=(not holes and may_be_null(p.name, doc),)), at + 2
        if self.object_of(p.type):
            name = self.object_of(p.type)
            return Argument("object", p.name, name, nullable=(may_be_null(p.name, doc),)), at + 1
        made = re.fullmatch(r"(\w+) \*\*", p.type)
        if made and made[1] in self.objects and following == "size_t":
            one_each = re.search(rf"`{rest[0].name}` is the number of `?(\w+)", doc)
            return Result("objects", p.name, made[1], "" if one_each else rest[0].name,
                          one_each[1] if one_each else ""), at + 2
        if made and made[1] in self.objects:
            return Result("object", p.name, made[1]), at + 1
        if p.type == "const char **":
            return Result("text", p.name), at + 1
        if p.type == "const void **":
            return Result("pointer", p.name), at + 1
        if p.type == "const char *":
            return Argument("text", p.name, nullable=(may_be_null(p.name, doc),)), at + 1
        if p.type == "int32_t" and f"{p.name} != 0" in doc:
            return Argument("flag", p.name), at + 1
        if p.type in self.flags:
            taken = [(flag_name(name), number) for name, number, _ in self.flags[p.type].values
                     if re.search(rf"\b{name}\b", doc)]
            if not taken:
                raise ValueError(f"the comment names none of the flags {p.name}: {doc}")
            names, bits = zip(*taken)
            return Argument("flags", p.name, names=names, bits=bits), at + 1
        if p.type in NUMBERS:
            return Argument(p.type, p.name), at + 1
        if p.type in self.enumerations:
            return Argument("enum", p.name, p.type), at + 1
        target = p.type.removesuffix(" *")
        if number_result(parameters, at, self.enumerations):
            return (Result(target, p.name) if target in NUMBERS else
                    Result("enum", p.name, target)), at + 1
        raise Unknown(f"{p.type} {p.name}")

    def returned(self, function):
        """What the C function returns: results, and whether it is a status to be checked."""
        if function.result == "tiny_status":
            return [], True
        if function.result == "void":
            return [], False
        if function.result == "const char *":
            return [Result("text", "value")], False
        if function.result in self.enumerations:
            return [Result("enum", "value", function.result)], False
        if function.result in NUMBERS:
            return [Result(function.result, "value")], False
        raise Unknown(f"returns {function.result}")

    def calls_of(self, function):
        if "_bind_" in function.name:
            raise Unknown("memory that is kept after the call")
        parameters, order, at = function.parameters, [], 0
        results, checked = self.returned(function)
        family = self.families.get(parameters[0].type) if parameters else None
        if family:
            order, at = ["constant"], 1
        while at < len(parameters):
            item, at = self.argument(parameters, at, function.doc)
            if isinstance(item, Argument) and item.kind in ("flag", "enum", *NUMBERS):
                item.default = self.defaults.get((function.name, item.name), "")
            order.append(item)
        owner, has_receiver = self.owner_of(function, order)
        if has_receiver:
            order[order.index(next(x for x in order if isinstance(x, Argument)))] = "receiver"
        arguments = [x if isinstance(x, Argument) else Argument("size_t", x.count) for x in order
                     if isinstance(x, Argument) or (isinstance(x, Result) and x.count)]
        for i, a in enumerate(arguments):  # a list is left out only behind all that must be given
            if a.kind == "objects" and any(b.kind not in ("flag", "flags") for b in arguments[i + 1:]):
                a.nullable = (False,)
        results = results + [x for x in order if isinstance(x, Result)]
        base = function.name.removeprefix(f"{owner}_" if owner else "").removeprefix("tiny_")
        names = [(base, None, function.doc)] if not family else [
            (strip(value).lower(), number, f"{function.doc} {doc}".strip())
            for value, number, doc in family.values]
        looks = bool(parameters) and parameters[0].type.startswith("const ")
        return [Call(function.name, method, owner, has_receiver, number, arguments, results, checked,
                     order, doc, looks) for method, number, doc in names]

    def owner_of(self, function, order):
        """(object, True) for a method, (object, False) for a constructor, ("", False) otherwise."""
        first = next((x for x in order if isinstance(x, Argument)), None)
        of_first = first.type if first and first.kind == "object" else ""
        named = max((name for name in self.objects if function.name.startswith(name + "_")),
                    key=len, default="")
        if named:
            return named, named == of_first
        return of_first, bool(of_first)
