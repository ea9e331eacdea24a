"""Texts, lists, optional values and maps as inputs and outputs of models, against onnxruntime: what looks into texts,
and what moves them as it moves numbers.

    PYTHONPATH=build/release/bindings/python texts_test.py [PATTERN]
"""

import sys

import named_tests

try:
    import hypothesis
    import numpy as np
    import onnxruntime
    import tiny
    from hypothesis import strategies as st
    from onnx import AttributeProto, TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

CONTRIBUTED = "com.microsoft"
EXAMPLES = hypothesis.settings(max_examples=25, deadline=None, database=None, derandomize=True)
FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
CONTEXTS = [tiny.Context(device=device) for device in ("cpu", "interp")]
WORDS = ["", "a", "b", "ab", "Über", "a b", "The", "the quick  fox", "x,y,,z", "ß"]
onnxruntime.set_default_logger_severity(4)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


def info(name, kind, shape=()):
    return helper.make_tensor_value_info(name, kind, shape)


def sequence(name, kind):
    return helper.make_value_info(name, helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None)))


def content(value):
    """What an engine gave, as lists."""
    if isinstance(value, list):
        return [content(one) for one in value]
    if isinstance(value, dict):
        return {key: content(one) for key, one in value.items()}
    if isinstance(value, tiny.Tensor):
        value = np.array(value.numpy())
    return value.tolist() if isinstance(value, np.ndarray) else value


def close(got, want):
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(close, got, want))
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(close(got[key], want[key]) for key in want)
    if isinstance(want, float):
        return np.isclose(got, want, 1e-5, 1e-6, equal_nan=True)
    return got == want


class Both:
    """A model in both engines."""

    def __init__(self, nodes, inputs, outputs, **constants):
        made = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
        graph = helper.make_graph(nodes, "g", inputs, outputs, made)
        model = helper.make_model(
            graph, ir_version=10,
            opset_imports=[helper.make_opsetid(*one) for one in (("", 20), ("ai.onnx.ml", 4), (CONTRIBUTED, 1))]).SerializeToString()
        self.theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        self.ours = [tiny.Model.load(context, model) for context in CONTEXTS]
        self.names = [one.name for one in inputs]

    def check(self, *given):
        want = [content(one) for one in self.theirs.run(None, dict(zip(self.names, given)))]
        for model in self.ours:
            for _ in range(2):  # the second has the program already
                got = [content(one) for one in model.run(list(given))]
                assert close(got, want), (got, want)
        return want


def texts(*shape):
    """Texts of a shape, some of them again and again."""
    return st.lists(st.sampled_from(WORDS) | st.text("aäB c,\U0001F600", max_size=5), min_size=int(np.prod(shape)),
                    max_size=int(np.prod(shape))).map(lambda all: np.array(all, object).reshape(shape))


@EXAMPLES
@hypothesis.given(texts(2, 3), texts(3), texts(2, 1))
def concatenation_and_equality(a, b, c):
    both = Both([node("StringConcat", ["a", "b"], ["ab"]), node("StringConcat", ["ab", "c"], ["abc"]),
                 node("Equal", ["a", "b"], ["same"]), node("Transpose", ["abc"], ["t"]),
                 node("Reshape", ["t", "shape"], ["r"]), node("Gather", ["a", "one"], ["g"], axis=1)],
                [info("a", STRING, (2, 3)), info("b", STRING, (3,)), info("c", STRING, (2, 1))],
                [info("ab", STRING), info("same", BOOL), info("r", STRING), info("g", STRING)],
                shape=np.int64([6]), one=np.int64([1, 0, -1]))
    both.check(a, b, c)


@EXAMPLES
@hypothesis.given(texts(2, 2), st.sampled_from(["", ",", " ", "ab"]), st.sampled_from([None, 1, 2]))
def splitting(x, delimiter, most):
    attributes = ({"delimiter": delimiter} if delimiter else {}) | ({} if most is None else {"maxsplit": most})
    both = Both([node("StringSplit", ["x"], ["y", "n"], **attributes), node("Shape", ["y"], ["s"]),
                 node("ReduceSum", ["n"], ["sum"], keepdims=0)], [info("x", STRING, (2, 2))],
                [info("y", STRING, [None] * 3), info("n", INT64), info("s", INT64), info("sum", INT64)])
    both.check(x)


PATTERNS = [r"a*b?", r"(a|b)+", r"[a-c]{2,3}", r"\w+@[\w.]+\.(com|org)", r"[^,]*", r".", r"\d{3}-\d+", r"",
            r"(?i)THE.*", r"^\s*\S+$", r"x(y|,)*z?", r"[[:alpha:]]+", r"a.c|(?:b\b.*)", r"[\d\-]+"]


@EXAMPLES
@hypothesis.given(st.sampled_from(PATTERNS), st.lists(
    st.from_regex("|".join(f"(?:{p})" for p in (r"a*b?", r"[a-c]{2,3}", r"\w+@\w+\.com", r"\d{3}-\d+", "x(y|,)*z?")),
                  fullmatch=True, alphabet=st.characters(codec="ascii")) | st.sampled_from(WORDS), min_size=6, max_size=6))
def full_matches(pattern, x):
    both = Both([node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [info("x", STRING, (6,))],
                [info("y", BOOL, (6,))])
    both.check(np.array(x, object))


@EXAMPLES
@hypothesis.given(texts(6), st.sampled_from(["NONE", "LOWER", "UPPER"]), st.booleans(),
                  st.lists(st.sampled_from(["The", "the", "a", "ab"]), max_size=3))
def normalization(x, change, is_sensitive, stopwords):
    hypothesis.assume(all(word.isascii() for word in x))  # onnxruntime's locale decides the rest
    both = Both([node("StringNormalizer", ["x"], ["y"], case_change_action=change,
                      is_case_sensitive=int(is_sensitive), locale="C", **({"stopwords": stopwords} if stopwords else {})),
                 node("Shape", ["y"], ["n"])],
                [info("x", STRING, (6,))], [info("y", STRING, [None]), info("n", INT64)])
    both.check(x)


def tokenizer(x, **attributes):
    """The tokens, in both engines."""
    attributes = {"mark": 0, "pad_value": "#", "mincharnum": 1} | attributes
    Both([node("Tokenizer", ["x"], ["y"], CONTRIBUTED, **attributes)], [info("x", STRING, [None] * x.ndim)],
         [info("y", STRING, None)]).check(x)  # fmt: skip


EXPRESSIONS = [" ", ",", "a", "a|ab", "[a-z]+", "\\w+\\b", "b*", "^a", "a$", "ß", "[^ ,]", "x|", "(?i)T", ".", "(a)(b)?", "\\b"]


@EXAMPLES
@hypothesis.given(st.one_of(texts(3), texts(2, 2)), st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=3),
                  st.booleans(), st.integers(1, 3), st.booleans())  # fmt: skip
def tokens(x, patterns, is_of_matches, least, mark):
    how = {"tokenexp": patterns[0]} if is_of_matches else {"separators": patterns}
    least = 1 if how.get("tokenexp") == "." else least  # which is of single characters, and of no others
    tokenizer(x, mincharnum=least, mark=int(mark), **how)


@EXAMPLES
@hypothesis.given(st.one_of(texts(3), texts(1, 2)), st.booleans(), st.sampled_from(["", "pad"]))
def tokens_of_characters(x, mark, pad):
    tokenizer(x, separators=[""], mark=int(mark), pad_value=pad)


def tokens_and_parts_of_long_texts():
    """More parts than anybody expects, and in one model fewer again."""
    tokenizer(np.array(["a\nb", ""], object), tokenexp=".")
    for long in ("a," * 5000, "a", "", "a,b"):
        x = np.array([long, "b,b", ""], object)
        tokenizer(x, separators=[","])
        tokenizer(x, separators=[""], mark=1)
        Both([node("StringSplit", ["x"], ["y", "n"], delimiter=",")], [info("x", STRING, [None])],
             [info("y", STRING, None), info("n", INT64, None)]).check(x)  # fmt: skip


def tokens_that_are_not_to_be_had():
    """Of attributes that onnxruntime refuses too (or dies of), of patterns, of texts that are no UTF-8."""
    wrong = [({}, "separators and tokenexp"), ({"separators": ["a"], "tokenexp": "a"}, "separators and tokenexp"),
             ({"separators": []}, "empty"), ({"tokenexp": ""}, "empty"), ({"separators": ["("]}, "nothing closes"),
             ({"separators": [""], "mincharnum": 2}, "single characters"), ({"separators": ["a"], "mincharnum": 0}, "mincharnum"),
             ({"tokenexp": "\\pL"}, "escape")]  # fmt: skip
    for attributes, why in wrong:
        attributes = {"mark": 0, "pad_value": "#", "mincharnum": 1} | attributes
        empty = {name for name, value in attributes.items() if value == []}
        made = node("Tokenizer", ["x"], ["y"], CONTRIBUTED, **{k: v for k, v in attributes.items() if k not in empty})
        for name in empty:
            made.attribute.append(helper.make_attribute(name, [], attr_type=AttributeProto.STRINGS))
        refused(made, np.array(["ab"], object), why)
    good = node("Tokenizer", ["x"], ["y"], CONTRIBUTED, mark=0, pad_value="#", mincharnum=1, separators=["a"])
    refused(good, [b"a\xff"], "UTF-8")
    refused(good, np.array([[["a"]]], object), "axes")


def refused(made, x, why):
    graph = helper.make_graph([made], "g", [info("x", STRING, None)], [info("y", STRING, None)])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(CONTRIBUTED, 1)])
    try:
        tiny.Model.load(CONTEXTS[0], model.SerializeToString()).run([x])
        raise AssertionError(f"it takes {made.attribute}")
    except tiny.Error as error:
        assert why in str(error), error


def numbers_and_texts():
    both = Both([node("Cast", ["x"], ["y"], to=STRING), node("Cast", ["y"], ["f"], to=FLOAT),
                 node("Cast", ["t"], ["i"], to=INT64), node("Cast", ["n"], ["s"], to=STRING)],
                [info("x", FLOAT, (5,)), info("t", STRING, (3,)), info("n", INT64, (3,))],
                [info("f", FLOAT), info("i", INT64), info("s", STRING)])
    both.check(np.float32([0.1, -3, 1e10, 2.5e-8, 123456.7]), np.array(["1", "-20", "300000000000"], object),
               np.int64([0, -7, 2**60]))


def labels_of_texts():
    both = Both([node("LabelEncoder", ["x"], ["i"], "ai.onnx.ml", keys_strings=["a", "b", "Über"],
                      values_int64s=[5, 6, 7], default_int64=-9),
                 node("LabelEncoder", ["i"], ["back"], "ai.onnx.ml", keys_int64s=[5, 6], values_strings=["five", "six"],
                      default_string="none"),
                 node("LabelEncoder", ["x"], ["other"], "ai.onnx.ml", keys_strings=["a"], values_strings=["A"]),
                 node("OneHotEncoder", ["x"], ["hot"], "ai.onnx.ml", cats_strings=["b", "a"], zeros=1),
                 node("CategoryMapper", ["x"], ["m"], "ai.onnx.ml", cats_strings=["a", "b"], cats_int64s=[3, 4]),
                 node("CategoryMapper", ["m"], ["n"], "ai.onnx.ml", cats_strings=["a", "b"], cats_int64s=[3, 4]),
                 node("Where", ["c", "x", "back"], ["w"])],
                [info("x", STRING, (2, 3)), info("c", BOOL, (3,))],
                [info("i", INT64), info("back", STRING), info("other", STRING), info("hot", FLOAT), info("m", INT64),
                 info("n", STRING), info("w", STRING)])
    both.check(np.array([["a", "b", "c"], ["Über", "a", ""]], object), np.array([True, False, True]))


def ngrams_of_texts():
    both = Both([node("TfIdfVectorizer", ["x"], ["y"], max_gram_length=2, min_gram_length=1, max_skip_count=1, mode="TF",
                      ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], pool_strings=["a", "b", "a", "b", "b", "c"])],
                [info("x", STRING, (7,))], [info("y", FLOAT, (4,))])
    both.check(np.array(["a", "b", "c", "a", "b", "z", "c"], object))


def classes_with_names():
    both = Both([node("LinearClassifier", ["x"], ["label", "p"], "ai.onnx.ml", classlabels_strings=["no", "yes", "maybe"],
                      coefficients=[1.0, -1, 0.5, 2, 0.1, 0.3], intercepts=[0.1, 0.2, 0.3], post_transform="SOFTMAX"),
                 node("ZipMap", ["p"], ["map"], "ai.onnx.ml", classlabels_strings=["no", "yes", "maybe"])],
                [info("x", FLOAT, (4, 2))],
                [info("label", STRING), helper.make_value_info("map", helper.make_sequence_type_proto(
                    helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, ()))))])
    both.check(np.random.default_rng(1).standard_normal((4, 2)).astype(np.float32))


def maps():
    of_texts = helper.make_value_info("x", helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, ())))
    both = Both([node("DictVectorizer", ["x"], ["y"], "ai.onnx.ml", string_vocabulary=["a", "b", "c"])], [of_texts],
                [info("y", FLOAT)])
    both.check({"b": 2.5, "z": 1.0})
    both.check({"c": 1.0, "a": -1.0, "b": 0.5})
    of_numbers = helper.make_value_info("x", helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, ())))
    for attributes in ({"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 6}):
        both = Both([node("CastMap", ["x"], ["y"], "ai.onnx.ml", cast_to="TO_FLOAT", **attributes)], [of_numbers],
                    [info("y", FLOAT)])
        both.check({3: 2.5, 1: -1.0})


def lists_in_and_out():
    both = Both([node("SequenceInsert", ["s", "x"], ["t"]), node("SequenceAt", ["t", "one"], ["y"]),
                 node("SequenceLength", ["t"], ["n"]), node("ConcatFromSequence", ["s"], ["c"], axis=0)],
                [sequence("s", FLOAT), info("x", FLOAT, (None,))],
                [sequence("t", FLOAT), info("y", FLOAT, (None,)), info("n", INT64), info("c", FLOAT, (None,))],
                one=np.int64(1))
    for lengths in ((2, 3), (1,), (4, 1, 2)):
        both.check([np.arange(n, dtype=np.float32) + n for n in lengths], np.float32([7, 8]))


def lists_of_texts():
    both = Both([node("SplitToSequence", ["x"], ["s"], axis=0), node("SequenceErase", ["s", "one"], ["t"]),
                 node("ConcatFromSequence", ["t"], ["c"], axis=0)],
                [info("x", STRING, (3, 2))], [sequence("t", STRING), info("c", STRING, (None, None))], one=np.int64(1))
    both.check(np.array([["a", "b"], ["c", "d"], ["", "a"]], object))


def lists_in_loops_and_branches():
    body = helper.make_graph(
        [node("Identity", ["again"], ["go"]), node("Add", ["x", "x"], ["twice"]),
         node("SequenceInsert", ["s", "twice"], ["s2"])], "body",
        [info("i", INT64), info("again", BOOL), sequence("s", FLOAT)], [info("go", BOOL), sequence("s2", FLOAT)])
    yes = helper.make_graph([node("SequenceConstruct", ["x"], ["a"])], "yes", [], [sequence("a", FLOAT)])
    no = helper.make_graph([node("SequenceConstruct", ["y"], ["b"])], "no", [], [sequence("b", FLOAT)])
    both = Both([node("SequenceEmpty", [], ["none"]), node("Loop", ["three", "", "none"], ["all"], body=body),
                 node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["is"]),
                 node("If", ["is"], ["one"], then_branch=yes, else_branch=no)],
                [info("x", FLOAT, (2,)), info("y", FLOAT, (2,))], [sequence("all", FLOAT), sequence("one", FLOAT)],
                three=np.int64(3), zero=np.float32(0))
    for sign in (1, -1):
        both.check(np.float32([1, 2]) * sign, np.float32([5, 6]))


def texts_in_loops_and_branches():
    body = helper.make_graph(
        [node("Identity", ["again"], ["go"]), node("StringConcat", ["s", "mark"], ["s2"]),
         node("Identity", ["s2"], ["out"])], "body",
        [info("i", INT64), info("again", BOOL), info("s", STRING, (2,))],
        [info("go", BOOL), info("s2", STRING, (2,)), info("out", STRING, (2,))])
    yes = helper.make_graph([node("StringConcat", ["x", "last"], ["a"])], "yes", [], [info("a", STRING, (2,))])
    no = helper.make_graph([node("Identity", ["last"], ["b"])], "no", [], [info("b", STRING, (2,))])
    both = Both([node("Loop", ["six", "", "x"], ["last", "all"], body=body), node("Equal", ["x", "y"], ["e"]),
                 node("Cast", ["e"], ["n"], to=FLOAT), node("ReduceMax", ["n"], ["m"], keepdims=0),
                 node("Cast", ["m"], ["is"], to=BOOL),
                 node("If", ["is"], ["one"], then_branch=yes, else_branch=no)],
                [info("x", STRING, (2,)), info("y", STRING, (2,))],
                [info("last", STRING), info("all", STRING), info("one", STRING)],
                six=np.int64(6), mark=np.array(["!"], object))
    both.check(np.array(["a", "b"], object), np.array(["z", "b"], object))
    both.check(np.array(["a", "b"], object), np.array(["z", "y"], object))


def columns_and_choices_of_texts():
    both = Both([node("ArrayFeatureExtractor", ["x", "columns"], ["y"], "ai.onnx.ml"),
                 node("OneHot", ["i", "depth", "words"], ["hot"], axis=0)],
                [info("x", STRING, (2, 3)), info("i", INT64, (2,))],
                [info("y", STRING, (2, 2)), info("hot", STRING, (3, 2))],
                columns=np.int64([2, 0]), depth=np.int64(3), words=np.array(["off", "on"], object))
    both.check(np.array([["a", "b", "c"], ["Über", "a", ""]], object), np.int64([1, -1]))


@EXAMPLES
@hypothesis.given(texts(7), st.booleans())
def different_texts(x, is_sorted):
    both = Both([node("Unique", ["x"], ["y", "first", "inverse", "counts"], sorted=int(is_sorted)),
                 node("StringConcat", ["y", "y"], ["twice"])],
                [info("x", STRING, (7,))], [info("y", STRING, (None,)), info("first", INT64), info("inverse", INT64),
                                            info("counts", INT64), info("twice", STRING, (None,))])
    both.check(x)


def different_texts_among_those_that_are_found():
    both = Both([node("StringSplit", ["x"], ["parts", "n"]), node("Unique", ["parts"], ["y", "", "inverse"]),
                 node("Unique", ["parts"], ["columns"], axis=1)], [info("x", STRING, (3,))],
                [info("y", STRING, (None,)), info("inverse", INT64, (None,)), info("columns", STRING, (3, None))])
    both.check(np.array(["b a", "c b a", "z"], object))
    both.check(np.array(["b", "b", "b"], object))


def many_texts_in_one_process():
    """What one run has of texts is gone with it, and the numbers of constants stay."""
    both = Both([node("StringConcat", ["x", "x"], ["y"]), node("Equal", ["y", "k"], ["e"])], [info("x", STRING, (50,))],
                [info("y", STRING), info("e", BOOL)], k=np.array(["1313"], object))
    for start in range(0, 500, 50):
        both.check(np.array([str(start + i) for i in range(50)], object))


def mistakes():
    model = Both([node("StringConcat", ["x", "x"], ["y"])], [info("x", STRING, (2,))], [info("y", STRING)]).ours[0]
    for given in ([np.float32([1, 2])], [["a", ["b"]]], [None]):
        try:
            model.run(given)
        except (tiny.Error, TypeError, ValueError):
            continue
        raise AssertionError(f"{given} was taken")
    try:
        model.compile([2])
    except tiny.Error as error:
        assert "texts" in str(error) or "STRING" in str(error), error
    number = Both([node("Cast", ["x"], ["y"], to=INT64)], [info("x", STRING, (1,))], [info("y", INT64)]).ours[0]
    try:
        number.run([["12x"]])
        raise AssertionError("12x is no number")
    except tiny.Error as error:
        assert "12x" in str(error), error


def outputs_whose_types_the_file_does_not_say():
    """Texts, lists and maps come out as such where the graph says that they do."""
    nodes = [node("StringConcat", ["t", "t"], ["texts"]), node("SequenceConstruct", ["t", "t"], ["list"]), node("SplitToSequence", ["x"], ["parts"]),
             node("ZipMap", ["x"], ["maps"], "ai.onnx.ml", classlabels_strings=["u", "v"]), node("Neg", ["x"], ["numbers"])]
    names = ["texts", "list", "parts", "maps", "numbers"]
    graph = helper.make_graph(nodes, "g", [info("t", STRING, (2,)), info("x", FLOAT, (2, 2))], [helper.make_empty_tensor_value_info(name) for name in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10)
    x = np.float32([[1, 2], [3, 4]])
    for context in CONTEXTS:
        loaded = tiny.Model.load(context, model.SerializeToString())
        texts, words, parts, maps, numbers = loaded.run([["a", "Über"], x])
        assert texts == ["aa", "ÜberÜber"] and words == [["a", "Über"]] * 2, (texts, words)
        assert [part.tolist() for part in parts] == [[[1, 2]], [[3, 4]]] and numbers.tolist() == (-x).tolist()
        assert maps == [{"u": 1, "v": 2}, {"u": 3, "v": 4}], maps


TESTS = [concatenation_and_equality, splitting, full_matches, normalization, tokens, tokens_of_characters,
         tokens_and_parts_of_long_texts, tokens_that_are_not_to_be_had, numbers_and_texts, labels_of_texts,
         ngrams_of_texts, classes_with_names, maps, lists_in_and_out, lists_of_texts, lists_in_loops_and_branches,
         texts_in_loops_and_branches, columns_and_choices_of_texts, different_texts,
         different_texts_among_those_that_are_found, many_texts_in_one_process, outputs_whose_types_the_file_does_not_say,
         mistakes]

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
