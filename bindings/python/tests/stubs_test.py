"""The stub names what the package has: no more, no less."""

import ast
import inspect
import pathlib
import unittest

import tiny

STUB = ast.parse((pathlib.Path(tiny.__file__).parent / "__init__.pyi").read_text())
# SWIG's own, which a user has no use for.
SWIG = {"this", "thisown"}
OPERATORS = {"__add__", "__rmul__", "__matmul__", "__eq__", "__neg__", "__getitem__", "__len__", "__dlpack__"}


def declared(node):
    """{name: node} of what a module or class of the stub has."""
    found = {}
    for child in node.body:
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            found[child.name] = child
        elif isinstance(child, ast.AnnAssign):
            found[child.target.id] = child
        elif isinstance(child, ast.Assign):
            found[child.targets[0].id] = child
    return found


class Stubs(unittest.TestCase):
    def setUp(self):
        self.module = declared(STUB)

    def test_the_package(self):
        has = {name for name in vars(tiny) if not name.startswith("_") and not inspect.ismodule(getattr(tiny, name))}
        self.assertEqual(has - set(self.module), set())
        self.assertEqual({name for name in self.module if not hasattr(tiny, name)}, {"Buffer", "DTypeLike", "Mode", "Whole"})

    def test_classes(self):
        count = 0
        for name, node in self.module.items():
            if not isinstance(node, ast.ClassDef) or not hasattr(tiny.native, name):
                continue
            stub, real = declared(node), vars(getattr(tiny, name))
            has = {member for member in real if not member.startswith("_")} - SWIG
            self.assertEqual(has - set(stub), set(), name)
            self.assertEqual({member for member in stub if member not in real} - {"context", "__init__"}, set(), name)
            for member, declaration in stub.items():
                if not isinstance(declaration, ast.FunctionDef) or not inspect.isfunction(real.get(member)):
                    continue
                wanted = [p.name for p in inspect.signature(real[member]).parameters.values()]
                arguments = declaration.args
                given = [*arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
                given = [argument.arg for argument in given if argument]
                if not member.startswith("__"):
                    self.assertEqual(given, wanted, f"{name}.{member}")
                    count += 1
        self.assertGreater(count, 100)
        self.assertLessEqual(OPERATORS, set(declared(self.module["Tensor"])))

    def test_it_is_said_to_be_there(self):
        self.assertTrue((pathlib.Path(tiny.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
