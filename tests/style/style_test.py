"""The checks themselves: each must find what is planted for it."""

import pathlib
import subprocess
import tempfile
import unittest

import abi
import classes
import layering
import library
import mentions
import text

TABLE = """| folder | charter | may use |
|---|---|---|
| `include/` | c | – |
| `src/base/` | c | – |
| `src/ir/` | c | base |
| `src/rules/` | c | ir |
| `src/api/` | c | all above |
| `tools/` | c | include |
| `tests/` | c | everything |
"""


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def write(self, path, content):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def layers(self):
        self.write("docs/ARCHITECTURE.md", TABLE)
        return layering.check(self.root)[0]

    def test_allowed_includes_pass_through_other_folders(self):
        self.write("src/base/a.h", "")
        self.write("src/ir/b.h", '#include "base/a.h"\n')
        self.write("src/rules/c.cpp", '#include "base/a.h"\n#include "ir/b.h"\n')
        self.write("src/api/d.cpp", '#include "rules/c.cpp"\n')
        self.assertEqual(self.layers(), [])

    def test_an_upward_include_is_found(self):
        self.write("src/ir/b.h", "")
        self.write("src/base/a.h", '#include "ir/b.h"\n')
        self.assertEqual(self.layers(), ["src/base/a.h:1: src/base may not use src/ir"])

    def test_tools_see_the_public_header_only(self):
        self.write("include/tiny.h", "")
        self.write("src/base/a.h", "")
        self.write("tools/t.cpp", '#include "tiny.h"\n#include "base/a.h"\n')
        self.assertEqual(self.layers(), ["tools/t.cpp:2: tools may not use src/base"])

    def test_a_missing_file_and_a_missing_row_are_found(self):
        self.write("src/ir/b.h", '#include "ir/gone.h"\n')
        self.write("src/new/n.h", "")
        self.assertEqual(len(self.layers()), 2)

    def test_a_cycle_is_found(self):
        self.write("src/ir/b.h", '#include "ir/c.h"\n')
        self.write("src/ir/c.h", '#include "ir/b.h"\n')
        self.assertEqual(self.layers(), ["includes go round: src/ir/b.h -> src/ir/c.h -> src/ir/b.h"])

    def test_a_row_that_names_an_unknown_folder_is_refused(self):
        self.write("docs/ARCHITECTURE.md", TABLE.replace("| base |", "| bass |"))
        with self.assertRaises(ValueError):
            layering.check(self.root)

    def test_text_rules(self):
        self.write("a.cpp", "// TO" "DO: later\n")
        self.write("b.cpp", "// TO" "DO(#12): later\n")
        self.write("c.md", "see https://pypi" ".org/x\n")
        self.write("d.py", "x = 1 \n")
        self.write("e.md", "no end")
        self.assertEqual([line.split(":")[0] for line in text.check(self.root)[0]],
                         ["a.cpp", "c.md", "d.py", "e.md"])

    def test_a_file_that_is_named_and_not_there_is_found(self):
        self.write("src/a/here.h", "// As gone.cpp does, and a/here.h.\nint gone = 1;  // a/lost.h\n")
        self.write("docs/page.md", "[map](../docs/page.md), [lost](no.md#part), `src/a/here.h`, `old.cpp`\n"
                                   "```\nfenced.cpp\n```\nIts row in `NAME.cpp`.\n")
        self.assertEqual([line.split(" which")[0] for line in mentions.check(self.root)[0]],
                         ["docs/page.md:1: names old.cpp,", "docs/page.md: a link leads to no.md,",
                          "src/a/here.h:1: names gone.cpp,", "src/a/here.h:2: names a/lost.h,"])

    def test_code_for_one_processor_is_found(self):
        self.write("src/a/header.cpp", "#include <immintrin.h>\n")
        self.write("src/a/intrinsic.cpp", "auto x = _mm256_add_ps(a, b);\n")
        self.write("src/a/builtin.h", "__builtin_ia32_pause();\n")
        self.write("onnx/assembly.cpp", 'void f() { __asm__ volatile("nop"); }\n')
        self.write("src/a/plain.cpp", 'int assembly = 0;  // asm("") is text\nauto s = "asm(x)";\n')
        self.write("src/runtime/cpu/cpuid.cpp", "#include <cpuid.h>\n")
        self.write("bench/peer.cpp", "#include <immintrin.h>\n")
        self.assertEqual([line.split(":")[0] for line in text.check(self.root)[0]],
                         ["onnx/assembly.cpp", "src/a/builtin.h", "src/a/header.cpp",
                          "src/a/intrinsic.cpp"])

    def test_the_stream_library_is_found(self):
        for number, header in enumerate(("iostream", "fstream", "sstream", "iomanip", "locale")):
            self.write(f"src/a/{number}.cpp", f"#include <{header}>\n")
        self.write("src/a/none.cpp", '#include <string>\n#include "engine/stream.h"\n')
        self.write("tools/a.cpp", "#include <iostream>\n")
        self.assertEqual([line.split(":")[0] for line in text.check(self.root)[0]],
                         [f"src/a/{number}.cpp" for number in range(5)])

    def test_members_of_a_class_are_counted(self):
        code = """class Plain final : public Base<int, 2> {  // int not_me;
 public:
  Plain(int a, int b = f(1, 2)) : a_(a), b_{b} {}
  ~Plain() { if (a_) { run(); } }
  bool operator==(const Plain&) const = default;
  virtual std::vector<std::pair<int, int>> pairs() const = 0;
  static int shared(int (*each)(int));
  struct Inner { int x, y; void g(); } inner_;
  enum class Kind { A, B };
  using Name = std::string;
  friend class Other;

 private:
  static constexpr int kLimit = 3;
  int a_, b_ = g(1, 2);
  std::map<int, std::pair<int, int>> map_{{1, {2, 3}}};
  std::function<void(int, int)> call_ = [](int, int) { int local = 0; };
  void (*pointer_)(int, int) = nullptr;
};
"""
        self.assertEqual(list(classes.classes(code)), [("Plain", 5, 6), ("Inner", 1, 2)])

    def test_a_class_that_is_too_large_is_found(self):
        fields = "".join(f"  int field{i}_ = 0;\n" for i in range(16))
        functions = "".join(f"  void f{i}() const;\n" for i in range(61))
        self.write("src/a/wide.h", "struct Wide {\n" + fields + "};\n")
        self.write("src/a/long.cpp", "class Long {\n" + functions + "};\n")
        self.write("src/a/fits.h", "class Fits {\n" + fields.replace("  int field0_ = 0;\n", "")
                   + functions.replace("  void f0() const;\n", "") + "};\n")
        self.write("tests/wide_test.cpp", "struct Wide {\n" + fields + "};\n")
        found = classes.check(self.root)[0]
        self.assertEqual([line.split(" and")[0] for line in found],
                         ["src/a/long.cpp: Long has 61 functions", "src/a/wide.h: Wide has 0 functions"])
        self.assertEqual(len(classes.check(self.root, {"Wide": "a reason"})[0]), 1)
        self.assertIn("Fits needs no exception any more",
                      classes.check(self.root, {"Fits": "none"})[0][-1])

    def compile(self, name, code, *options):
        source = self.write(name + ".cpp", code)
        out = self.root / (name + ".o")
        subprocess.run(["g++", "-std=c++20", "-fPIC", *options, "-o", out, source], check=True)
        return out

    def test_a_static_object_is_found(self):
        bad = self.compile("bad", "#include <string>\nstd::string s(99, 'x');\n", "-c")
        good = self.compile("good", "constexpr int kTable[] = {1, 2};\nint f(int i) "
                                    "{ return kTable[i]; }\n", "-c")
        self.assertGreaterEqual(len(library.object_code([bad])), 2)
        self.assertEqual(library.object_code([good]), [])
        self.assertTrue(all("bad.o" in line for line in library.object_code([good, bad])))

    def test_exports_needs_and_exit_code_are_compared(self):
        header = self.write("tiny.h", "/* tiny_old() */ int tiny_a(void); "
                                      "typedef void (*tiny_f)(int); int tiny_b(tiny_f f);\n")
        made = self.compile("made", 'extern "C" int tiny_a() { return 0; }\n'
                            'extern "C" int other() { return 0; }\n'
                            '__attribute__((destructor)) void d() {}\n',
                            "-shared", "-Wl,-soname,libtiny.so.0", "-Wl,--no-as-needed", "-lz")
        self.assertEqual(library.declared(header), {"tiny_a", "tiny_b"})
        self.assertIn("tiny.h declares tiny_b, not exported",
                      " ".join(library.interface(made, header)))
        self.assertIn("other is exported, not declared in tiny.h", library.interface(made, header))
        self.assertTrue(any("libz.so" in line for line in library.dependencies(made)))
        self.assertEqual(len(library.exit_code(made)), 1)

    HEADER = """#include <stdint.h>
                typedef struct tiny_t tiny_t;
                #define TINY_VERSION_MAJOR 0
                #define TINY_VERSION_MINOR 2
                #define TINY_VERSION_PATCH 7
                #ifndef TINY_API
                #define TINY_API
                #endif
                enum { TINY_X = 1, TINY_Y = TINY_X + 4 };
                TINY_API int32_t tiny_a(const tiny_t *t, int64_t n);
                /* Unstable: may go. */
                TINY_API int32_t tiny_b(void);
             """

    def test_a_changed_abi_is_found(self):
        header, recorded = self.write("tiny.h", self.HEADER), self.root / "tiny.abi"
        script = abi.version_script(header, "")
        abi.record(header, script, recorded)
        self.assertEqual(abi.constants(header), "TINY_X 1\nTINY_Y 5\n")
        code = """#include <stdint.h>
                  struct tiny_t { int hidden; };
                  extern "C" int32_t tiny_b() { return 0; }
                  extern "C" int32_t tiny_a(const tiny_t *t, NUMBER n)
                  { return t->hidden + (int32_t)n; }
               """
        versions = self.write("tiny.map", script)
        for number, found in (("int64_t", 0), ("int32_t", 1)):
            made = self.compile(number, code.replace("NUMBER", number), "-shared", "-g",
                                f"-Wl,--version-script={versions}", "-Wl,-soname,libtiny.so.0")
            self.assertEqual(len(abi.differences(recorded, made, self.root)), found, number)

    def breaks(self, *changes):
        """What is said of the planted header, changed so, after the planted one was released."""
        header = self.write("tiny.h", self.HEADER)
        script = abi.version_script(header, "")
        released, constants = self.root / "released.abi", self.root / "released_constants.txt"
        abi.record(header, script, released)
        constants.write_text(abi.constants(header))
        text = self.HEADER
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        header = self.write("tiny.h", text)
        return abi.breaks(header, abi.version_script(header, script), released, constants)

    def test_additions_to_a_release_break_nothing(self):
        self.assertEqual(self.breaks(), [])
        self.assertEqual(self.breaks(("MINOR 2", "MINOR 3"), ("tiny_b(void);", "tiny_b(void);\n"
                                     "TINY_API int32_t tiny_c(void);"), ("+ 4", "+ 4, TINY_Z")), [])

    def test_additions_are_of_the_next_release(self):
        function = ("tiny_b(void);", "tiny_b(void);\nTINY_API int32_t tiny_c(void);")
        for change, name in ((function, "tiny_c"), (("+ 4", "+ 4, TINY_Z"), "TINY_Z")):
            self.assertEqual(self.breaks(change),
                             [f"{name} is new, and TINY_0.2 is released: raise TINY_VERSION_MINOR"])
            self.assertEqual(self.breaks(change, ("MINOR 2", "MINOR 3")), [])

    def test_breaks_of_a_release_are_found_until_the_major_version_changes(self):
        other_type = ("int64_t n", "int32_t n")
        self.assertIn("parameter 2", "".join(self.breaks(other_type)))
        self.assertIn("tiny_a", "".join(self.breaks(("tiny_a", "tiny_renamed"))))
        self.assertIn("gone or renumbered: TINY_Y 5", self.breaks(("+ 4", "+ 3")))
        self.assertEqual(self.breaks(("tiny_b(void)", "tiny_b(int32_t n)")), [])
        self.assertEqual(self.breaks(("MAJOR 0", "MAJOR 1"), other_type), [])

    def test_each_function_is_in_the_node_of_the_release_that_added_it(self):
        header = self.write("tiny.h", self.HEADER)
        first = abi.version_script(header, "")
        self.assertEqual(abi.nodes(first), {"TINY_0.2": ["tiny_a", "tiny_b"]})
        header.write_text(self.HEADER.replace("MINOR 2", "MINOR 3")
                          + "TINY_API int32_t tiny_0(void);\n")
        second = abi.version_script(header, first)
        self.assertEqual(abi.nodes(second),
                         {"TINY_0.2": ["tiny_a", "tiny_b"], "TINY_0.3": ["tiny_0"]})
        self.assertIn("} TINY_0.2;", second)
        self.assertEqual(abi.misplaced(header, second), [])
        self.assertEqual(abi.misplaced(header, first), ["tiny_0 is in no node of tiny.map"])
        self.assertEqual(len(abi.misplaced(header, second.replace("tiny_0", "tiny_a"))), 2)


if __name__ == "__main__":
    unittest.main()
