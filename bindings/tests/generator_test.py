"""The generator: what it reads in a header, and that it refuses what it does not understand."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/generator"))

import header  # noqa: E402
import model  # noqa: E402

SMALL = """
typedef int32_t tiny_status;
enum { TINY_OK = 0 };
typedef int32_t tiny_unary_op;
enum { TINY_NEG = 0, TINY_NOT = 2, /* bitwise, and so on */
       TINY_EXP };
typedef uint32_t tiny_flags;
enum { TINY_FLAG_KEEP = 1, TINY_FLAG_LAST = 2, TINY_FLAG_TOP = 4 };
typedef int32_t tiny_layout;
enum { TINY_LAYOUT_FIRST = 0, TINY_LAYOUT_LAST = 1 };
typedef struct tiny_context tiny_context; /* a place */
typedef struct tiny_tensor tiny_tensor;
TINY_API void tiny_context_release(tiny_context *context);
TINY_API void tiny_tensor_release(tiny_tensor *tensor);
/* ---- A heading ---- */
TINY_API tiny_status tiny_unary(tiny_unary_op op, const tiny_tensor *a, tiny_tensor **out);
/* `step` may be NULL.  keep != 0: kept. */
TINY_API tiny_status tiny_slice(const tiny_tensor *a, const int64_t *begin, const int64_t *step,
                                size_t naxes, int32_t keep, tiny_tensor **out);
TINY_API tiny_status tiny_tensor_times(const tiny_tensor *t, double *seconds, size_t capacity,
                                       size_t *count);
TINY_API tiny_status tiny_tensor_data(const tiny_tensor *t, const void **out);
TINY_API tiny_status tiny_tensor_made(tiny_context *context, void (*done)(void *user), void *user,
                                      tiny_tensor **out);
TINY_API tiny_status tiny_tensor_both(const tiny_tensor *t, size_t *first, tiny_unary_op *second);
/* Takes TINY_FLAG_LAST and TINY_FLAG_KEEP. */
TINY_API tiny_status tiny_best(const tiny_tensor *a, tiny_flags flags, tiny_tensor **out);
/* `count` is the number of sizes. */
TINY_API tiny_status tiny_split(const tiny_tensor *a, double by, const int64_t *sizes, size_t n,
                                tiny_tensor **parts, size_t count);
TINY_API tiny_status tiny_many(tiny_tensor *const *in, size_t in_count, tiny_tensor **made,
                               size_t made_count);
"""


class Reading(unittest.TestCase):
    def setUp(self):
        defaults = model.read_defaults('FUNCTION(split, "a: tensor, by: float = -1e-5, '
                                       'sizes: ints = none",\n         "parts")')
        self.model = model.Model(header.parse(SMALL), defaults)
        self.calls = {call.method: call for call in self.model.calls}

    def test_values_of_an_enumeration_count_on(self):
        values = self.model.enumerations["tiny_unary_op"].values
        self.assertEqual(values, [("TINY_NEG", 0, ""), ("TINY_NOT", 2, "bitwise, and so on"),
                                  ("TINY_EXP", 3, "")])

    def test_a_family_is_one_method_for_each_value(self):
        self.assertEqual([self.calls[name].constant for name in ("neg", "not", "exp")], [0, 2, 3])
        self.assertEqual(self.calls["neg"].owner, "tiny_tensor")
        self.assertNotIn("unary", self.calls)

    def test_lists_share_their_count(self):
        lists, keep = self.calls["slice"].arguments
        self.assertEqual((lists.names, lists.nullable), (("begin", "step"), (False, True)))
        self.assertEqual(keep.kind, "flag")

    def test_flags_are_those_that_the_comment_names(self):
        flags, = self.calls["best"].arguments
        self.assertEqual((flags.kind, flags.names, flags.bits), ("flags", ("keep", "last"), (1, 2)))
        with self.assertRaisesRegex(ValueError, "none of the flags"):
            model.Model(header.parse(SMALL.replace("Takes TINY_FLAG_LAST and TINY_FLAG_KEEP.", "Takes bits.")))

    def test_values_lose_what_all_have_in_common(self):
        layout = self.model.enumerations["tiny_layout"]
        self.assertEqual([model.value_name(layout, name) for name, *_ in layout.values], ["FIRST", "LAST"])
        unary = self.model.enumerations["tiny_unary_op"]
        self.assertEqual(model.value_name(unary, "TINY_NOT"), "NOT")

    def test_results_of_every_form(self):
        forms = {name: [(r.kind, r.type) for r in self.calls[name].results]
                 for name in ("times", "both", "many", "neg", "data")}
        self.assertEqual(forms, {"times": [("list", "double")],
                                 "both": [("size_t", ""), ("enum", "tiny_unary_op")],
                                 "data": [("pointer", "")],
                                 "many": [("objects", "tiny_tensor")],
                                 "neg": [("object", "tiny_tensor")]})
        self.assertEqual([a.name for a in self.calls["many"].arguments], ["in", "made_count"])

    def test_defaults_and_counts_are_read(self):
        split = self.calls["split"]
        self.assertEqual([a.default for a in split.arguments], ["-1e-5", ""])
        self.assertEqual((split.results[0].count, split.results[0].count_of), ("", "sizes"))

    def test_callbacks_are_left_to_the_languages(self):
        self.assertEqual([name for name, _ in self.model.unwrapped], ["tiny_tensor_made"])

    def test_releases_are_nobody_s_business(self):
        self.assertNotIn("release", self.calls)

    def test_a_strange_header_is_refused(self):
        for strange in ("TINY_API int32_t tiny_x(int32_t (*table)[3]);",
                        "TINY_API extern int32_t tiny_counter;",
                        "typedef int32_t tiny_e;\nenum { TINY_A = 1 << 3, TINY_B };"):
            with self.assertRaises(ValueError, msg=strange):
                header.parse(strange)


class Everything(unittest.TestCase):
    def test_each_language_offers_every_function_of_tiny_h(self):
        read = model.Model(header.parse((ROOT / "include/tiny.h").read_text()))
        by_hand = ["tiny_options_set_log", "tiny_options_set_allocator",
                   "tiny_options_set_thread_pool", "tiny_options_set_progress",
                   "tiny_options_add_deleter", "tiny_tensor_wrap", "tiny_tensor_to_dlpack",
                   "tiny_tensor_from_dlpack", "tiny_run_bind_input", "tiny_run_bind_output",
                   "tiny_options_set_poll"]
        # What the functions of an operator are given, each language hands on in a form of its own.
        by_hand += [f.name for f in read.header.functions if "tiny_custom_" in f.name or
                    f.name == "tiny_context_add_custom_op"]
        self.assertLessEqual({name for name, _ in read.unwrapped}, set(by_hand))
        offered = {call.function for call in read.calls}
        for function in read.header.functions:
            if not model.AUTOMATIC.search(function.name) and function.name not in by_hand:
                self.assertIn(function.name, offered)


if __name__ == "__main__":
    unittest.main()
