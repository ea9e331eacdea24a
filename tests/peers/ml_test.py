"""The operators of ai.onnx.ml, and what skl2onnx makes of scikit-learn's models, against onnxruntime.

    PYTHONPATH=build/release/bindings/python ml_test.py [PATTERN] [--save FOLDER]

Without skl2onnx and scikit-learn the nodes alone are tried. --save writes the models that are tried too.
"""

import argparse
import itertools
import pathlib
import re
import sys
import warnings

import named_tests

try:
    import hypothesis
    import numpy as np
    import onnxruntime
    import tiny
    from case_folder import save_case
    from hypothesis import strategies as st
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)
try:
    import skl2onnx
    import sklearn
except ImportError:
    sklearn = None

SAVED = {"folder": None, "number": itertools.count()}
onnxruntime.set_default_logger_severity(4)
EXAMPLES = hypothesis.settings(max_examples=25, deadline=None, database=None, derandomize=True)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
SPLITS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def model_of(op, inputs, outputs, version=3, **attributes):
    names = [f"i{i}" for i in range(len(inputs))]
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain="ai.onnx.ml", **attributes)
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in zip(names, inputs)]  # fmt: skip
    graph = helper.make_graph([node], op, ports, [helper.make_empty_tensor_value_info(n) for n in results])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()


def both(content, inputs):
    """What onnxruntime and tiny make of a model; a sequence of maps is the columns of their values."""
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    wanted = [np.array([list(row.values()) for row in one], np.float32) if isinstance(one, list) else one
              for one in session.run(None, dict(zip(names, inputs)))]  # fmt: skip
    if SAVED["folder"]:
        save_case(SAVED["folder"] / f"case_{next(SAVED['number'])}", content, dict(zip(names, inputs)))
    model = tiny.Model.load(tiny.default_context(), content)
    got = [np.array([list(row.values()) for row in one], np.float32) if isinstance(one, list) else np.array(one.numpy())
           for one in model.run(dict(zip(names, inputs)))]  # fmt: skip
    return wanted, got


def check(content, inputs, tolerance=1e-5, labels_apart=0.0):
    """`labels_apart`: the share of integers that may differ, where scores are all but equal."""
    wanted, got = both(content, inputs)
    for want, have in zip(wanted, got, strict=True):
        assert want.shape == have.shape and want.dtype == have.dtype, (want.shape, want.dtype, have.shape, have.dtype)
        if want.dtype.kind in "iub":
            assert (want != have).mean() <= labels_apart, (want, have)
        else:
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


# ---- Trees.


def random_trees(rng, count, depth, features, splits, values):
    """Lists of the attributes of trees, and the leaves of each."""
    nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids",
                                   "falsenodeids", "missing_value_tracks_true")}  # fmt: skip
    leaves = []

    def grow(tree, level):
        here = len([t for t in nodes["treeids"] if t == tree])
        at = len(nodes["treeids"])
        for name, value in (("treeids", tree), ("nodeids", here), ("featureids", int(rng.integers(features))),
                            ("modes", "LEAF"), ("values", 0.0), ("truenodeids", 0), ("falsenodeids", 0),
                            ("missing_value_tracks_true", int(rng.integers(2)))):  # fmt: skip
            nodes[name].append(value)
        if level == depth or (level and rng.random() < 0.25):
            leaves.append((tree, here))
            return here
        nodes["modes"][at] = str(rng.choice(splits))
        nodes["values"][at] = float(rng.choice(values))
        nodes["truenodeids"][at] = grow(tree, level + 1)
        nodes["falsenodeids"][at] = grow(tree, level + 1)
        return here

    for tree in range(count):
        grow(tree, 0)
    return {f"nodes_{name}": values for name, values in nodes.items()}, leaves


def weights_of(rng, leaves, targets, kind, each):
    """What leaves count: for one random target, or for all."""
    chosen = [(t, n, i) for t, n in leaves for i in (range(targets) if each else [int(rng.integers(targets))])]
    return {f"{kind}_treeids": [t for t, _, _ in chosen], f"{kind}_nodeids": [n for _, n, _ in chosen],
            f"{kind}_ids": [i for _, _, i in chosen],
            f"{kind}_weights": [float(np.float32(w)) for w in rng.standard_normal(len(chosen))]}  # fmt: skip


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 11), st.integers(1, 3), st.booleans(),
                  st.sampled_from(("SUM", "AVERAGE", "MIN", "MAX")), st.sampled_from(TRANSFORMS))  # fmt: skip
def tree_regressors(seed, count, depth, targets, each, aggregate, transform):
    rng = np.random.default_rng(seed)
    values = np.round(floats(rng, 4), 1)
    splits = SPLITS if seed % 2 else SPLITS[:1]
    nodes, leaves = random_trees(rng, count, depth, 5, splits, values)
    x = np.where(rng.random((7, 5)) < 0.3, rng.choice(values, (7, 5)), floats(rng, 7, 5)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    base = {"base_values": [float(v) for v in np.round(rng.standard_normal(targets), 2)]} if seed % 3 else {}
    check(model_of("TreeEnsembleRegressor", [x], 1, n_targets=targets, aggregate_function=aggregate,
                   post_transform=transform, **nodes, **weights_of(rng, leaves, targets, "target", each), **base), [x])  # fmt: skip


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 4), st.integers(2, 4), st.booleans(),
                  st.sampled_from(TRANSFORMS))  # fmt: skip
def tree_classifiers(seed, count, depth, classes, each, transform):
    rng = np.random.default_rng(seed)
    nodes, leaves = random_trees(rng, count, depth, 5, SPLITS[:1], floats(rng, 4))
    weights = weights_of(rng, leaves, 1 if classes == 2 else classes, "class", each)
    if seed % 2:
        weights["class_weights"] = [abs(w) / count for w in weights["class_weights"]]
    x = floats(rng, 9, 5)
    labels = [int(i) for i in rng.permutation(20)[:classes]]
    check(model_of("TreeEnsembleClassifier", [x], 2, classlabels_int64s=labels, post_transform=transform, **nodes,
                   **weights), [x])  # fmt: skip


# ---- Lines and support vectors.


def the_probit_of_one_score():
    """onnxruntime gives it as the first class's, and leaves the second's unset."""
    x = np.float32([[-1, 0.3], [1, -2]])
    stump = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3, "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
             "nodes_values": [0.0] * 3, "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "class_treeids": [0, 0],
             "class_nodeids": [1, 2], "class_ids": [0, 0], "class_weights": [0.4, 0.7], "classlabels_int64s": [0, 1]}  # fmt: skip
    vectors = {"classlabels_ints": [0, 1], "coefficients": [0.1, -0.3], "kernel_params": [0.0, 0.0, 0.0], "kernel_type": "LINEAR", "rho": [0.45],
               "support_vectors": [0.1, 0.2, 0.3, 0.1], "vectors_per_class": [1, 1]}  # fmt: skip
    for op, attributes in (("TreeEnsembleClassifier", stump), ("SVMClassifier", vectors)):
        (labels, scores), (got_labels, got) = both(model_of(op, [x], 2, post_transform="PROBIT", **attributes), [x])
        assert (labels == got_labels).all() and got.shape == scores.shape and not got[:, 1].any(), (op, got, scores)
        np.testing.assert_allclose(got[:, 0], scores[:, 0], 1e-4, 1e-5)
        assert np.isfinite(got).all(), got


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 6), st.sampled_from(TRANSFORMS))
def lines(seed, targets, features, transform):
    rng = np.random.default_rng(seed)
    x = floats(rng, 5, features)
    parts = {"coefficients": floats(rng, targets * features).tolist(), "intercepts": floats(rng, targets).tolist(),
             "post_transform": transform}  # fmt: skip
    check(model_of("LinearRegressor", [x], 1, targets=targets, **parts), [x])
    labels = list(range(3, 3 + max(targets, 2)))
    check(model_of("LinearClassifier", [x], 2, classlabels_ints=labels, **parts), [x])
    if targets > 1:
        whole = (x * 8).astype(np.int64)
        check(model_of("LinearClassifier", [whole], 2, classlabels_ints=labels, **parts), [whole])


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.sampled_from(("LINEAR", "POLY", "RBF", "SIGMOID")), st.booleans(),
                  st.integers(2, 4), st.booleans(), st.sampled_from(TRANSFORMS))  # fmt: skip
def support_vectors(seed, kernel, one_class, classes, shares, transform):
    rng = np.random.default_rng(seed)
    x, vectors = floats(rng, 6, 3), [int(n) for n in rng.integers(1, 4, classes)]
    count, pairs = sum(vectors), classes * (classes - 1) // 2
    common = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 2.0],
              "support_vectors": floats(rng, count * 3).tolist()}  # fmt: skip
    check(model_of("SVMRegressor", [x], 1, n_supports=count, one_class=int(one_class), rho=[0.1],
                   coefficients=floats(rng, count).tolist(), **common), [x], 1e-4)  # fmt: skip
    probabilities = {"prob_a": (-np.abs(floats(rng, pairs)) - 0.5).tolist(), "prob_b": floats(rng, pairs).tolist()}
    classifier = {"vectors_per_class": vectors, "rho": floats(rng, pairs).tolist(), **(probabilities if shares else {}),
                  "coefficients": floats(rng, (classes - 1) * count).tolist(),
                  "classlabels_ints": list(range(classes)), "post_transform": transform, **common}  # fmt: skip
    check(model_of("SVMClassifier", [x], 2, **classifier), [x], 1e-4)
    none = x[:0]  # onnxruntime does not run it
    model = tiny.Model.load(tiny.default_context(), model_of("SVMClassifier", [none], 2, **classifier))
    assert [list(value.numpy().shape)[:1] for value in model.run([none])] == [[0], [0]]


# ---- Features and labels.


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 5), st.booleans())
def features(seed, size, each):
    rng = np.random.default_rng(seed)
    x = floats(rng, 4, size)
    x[rng.random(x.shape) < 0.3] = 0
    count = size if each else 1
    numbers = lambda: floats(rng, count).tolist()
    for kind in (np.float32, np.int64, np.float64):
        given = x.astype(kind)
        check(model_of("Scaler", [given], 1, offset=numbers(), scale=numbers()), [given])
    for norm in ("MAX", "L1", "L2"):
        check(model_of("Normalizer", [x], 1, norm=norm), [x])
    check(model_of("Binarizer", [x], 1, threshold=0.25), [x])
    missing = np.where(x == 0, np.float32(np.nan), x)
    check(model_of("Imputer", [missing], 1, imputed_value_floats=numbers(), replaced_value_float=float("nan")),
          [missing])  # fmt: skip
    whole = rng.integers(0, 4, (3, size))
    check(model_of("Imputer", [whole], 1, imputed_value_int64s=list(range(10, 10 + count)), replaced_value_int64=2),
          [whole])  # fmt: skip
    check(model_of("FeatureVectorizer", [x, x], 1, inputdimensions=[size + 1, max(size - 1, 1)]), [x, x])
    places = rng.integers(0, size, (1, 3))
    check(model_of("ArrayFeatureExtractor", [x, places], 1), [x, places])


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.integers(1, 6))
def labels(seed, count):
    rng = np.random.default_rng(seed)
    keys, whole = rng.permutation(12)[:count], rng.integers(0, 12, (3, 4))
    real = whole.astype(np.float32)
    for x, kind, given in ((whole, "keys_int64s", [int(k) for k in keys]), (real, "keys_floats", keys.astype(float).tolist())):
        for values, made, other in (("values_int64s", rng.integers(0, 99, count).tolist(), {"default_int64": -7}),
                                    ("values_floats", floats(rng, count).tolist(), {"default_float": 0.5})):  # fmt: skip
            check(model_of("LabelEncoder", [x], 1, **{kind: given, values: made}, **(other if seed % 2 else {})), [x])
    check(model_of("OneHotEncoder", [whole], 1, cats_int64s=[int(k) for k in keys], zeros=1), [whole])
    known = rng.choice(keys, (3, 4))
    check(model_of("OneHotEncoder", [known], 1, cats_int64s=[int(k) for k in keys], zeros=0), [known])


def wrong_models():
    """Errors that say what is wrong."""
    x = np.zeros((2, 3), np.float32)
    stump = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
             "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.0] * 3,
             "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "n_targets": 1,
             "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0],
             "target_weights": [1.0, 2.0]}  # fmt: skip
    cases = [("TreeEnsembleRegressor", stump | {"nodes_truenodeids": [7, 0, 0]}, "node 7 of tree 0, which is not there"),
             ("TreeEnsembleRegressor", stump | {"nodes_featureids": [3, 0, 0]}, "feature 3 of 3"),
             ("TreeEnsembleRegressor", stump | {"nodes_values": [0.0]}, "3 modes, 1 values"),
             ("TreeEnsembleRegressor", stump | {"nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]}, "no root"),
             ("TreeEnsembleRegressor", stump | {"nodes_modes": ["BRANCH", "LEAF", "LEAF"]}, '"BRANCH"'),
             ("TreeEnsembleRegressor", stump | {"target_ids": [0, 1]}, "target 1 of 1"),
             ("TreeEnsembleRegressor", stump | {"target_nodeids": [1]}, "lists of 2, 1, 2 and 2"),
             ("LinearRegressor", {"coefficients": [1.0, 2.0]}, "2 numbers for rows of 3"),
             ("LinearClassifier", {"coefficients": [1.0] * 6, "classlabels_ints": [1, 2, 3]}, "2 classes for 3 labels"),
             ("SVMClassifier", {"vectors_per_class": [2, 9], "support_vectors": [1.0] * 9, "classlabels_ints": [1, 2]},
              "a class of 9 vectors"),
             ("Scaler", {"scale": [1.0, 2.0]}, "2 numbers for features"),
             ("Normalizer", {"norm": "L3"}, "wanted MAX, L1, L2"),
             ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1, 2]}, "as many keys as values"),
             ("FeatureVectorizer", {"inputdimensions": [1, 2]}, "2 values for 1 inputs"),
             ("ZipMap", {"classlabels_int64s": [1, 2]}, "2 labels for columns"),
             ("OneHotEncoder", {}, "cats_int64s")]  # fmt: skip
    for op, attributes, said in cases:
        outputs = 2 if op.endswith("Classifier") else 1
        model = tiny.Model.load(tiny.default_context(), model_of(op, [x], outputs, **attributes))
        try:
            model.run([x])
        except tiny.Error as error:
            assert said in str(error), (op, said, str(error))
        else:
            raise AssertionError(f"{op} with {said}: no error")


# ---- scikit-learn's models.


def estimators():
    from sklearn import (cluster, decomposition, discriminant_analysis, ensemble, feature_selection, gaussian_process,
                         linear_model, mixture, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm,
                         tree)  # fmt: skip

    few = {"max_iter": 60}
    classifiers = [
        linear_model.LogisticRegression(), linear_model.SGDClassifier(), linear_model.Perceptron(),
        linear_model.RidgeClassifier(), svm.LinearSVC(), svm.SVC(), svm.SVC(kernel="poly", degree=2), svm.NuSVC(),
        tree.DecisionTreeClassifier(), tree.ExtraTreeClassifier(), ensemble.RandomForestClassifier(12),
        ensemble.ExtraTreesClassifier(9), ensemble.GradientBoostingClassifier(n_estimators=7),
        ensemble.AdaBoostClassifier(n_estimators=5),
        ensemble.BaggingClassifier(n_estimators=4), naive_bayes.GaussianNB(), naive_bayes.BernoulliNB(),
        neighbors.KNeighborsClassifier(3), neural_network.MLPClassifier(hidden_layer_sizes=(8,), **few),
        discriminant_analysis.LinearDiscriminantAnalysis(), discriminant_analysis.QuadraticDiscriminantAnalysis(),
        ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))],
                                  voting="soft", flatten_transform=False),
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        pipeline.make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(2), ensemble.RandomForestClassifier(5))]  # fmt: skip
    regressors = [
        linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(0.1), linear_model.ElasticNet(0.1),
        linear_model.BayesianRidge(), linear_model.HuberRegressor(), linear_model.SGDRegressor(), svm.SVR(), svm.NuSVR(),
        svm.LinearSVR(), tree.DecisionTreeRegressor(), ensemble.RandomForestRegressor(12),
        ensemble.ExtraTreesRegressor(9), ensemble.GradientBoostingRegressor(n_estimators=7),
        ensemble.AdaBoostRegressor(n_estimators=5),
        ensemble.BaggingRegressor(n_estimators=4), neighbors.KNeighborsRegressor(3),
        neural_network.MLPRegressor(hidden_layer_sizes=(8,), **few), gaussian_process.GaussianProcessRegressor(alpha=1.0)]  # fmt: skip
    transformers = [
        preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.MaxAbsScaler(),
        preprocessing.RobustScaler(), preprocessing.Normalizer(), preprocessing.Binarizer(threshold=0.3),
        preprocessing.PolynomialFeatures(2), preprocessing.KBinsDiscretizer(3, encode="ordinal"),
        preprocessing.PowerTransformer(), decomposition.PCA(2), decomposition.TruncatedSVD(2),
        feature_selection.SelectKBest(k=2), feature_selection.VarianceThreshold(), cluster.KMeans(3),
        mixture.GaussianMixture(2), ensemble.IsolationForest(n_estimators=5)]  # fmt: skip
    for group, found in (("classifier", classifiers), ("regressor", regressors), ("transformer", transformers)):
        for i, one in enumerate(found):
            yield f"{group}_{i}_{type(one).__name__}", group, one


def scikit_learn(pattern):
    from skl2onnx import to_onnx

    rng = np.random.default_rng(0)
    x = floats(rng, 90, 4)
    unseen = floats(rng, 40, 4)
    count, failures = 0, []
    for name, group, estimator in estimators():
        for classes in (2, 3) if group == "classifier" else (0,):
            if not pattern.search(f"scikit_learn_{name}_{classes}"):
                continue
            value = x[:, 0] - x[:, 1] * x[:, 2]
            y = np.digitize(value, np.quantile(value, np.arange(1, classes) / classes)) if classes else value
            count += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    np.random.seed(0)
                    content = to_onnx(estimator.fit(x, y), x[:1], target_opset={"": 18, "ai.onnx.ml": 3}).SerializeToString()
                check(content, [unseen], 1e-3, labels_apart=0.03)
            except Exception as error:
                failures.append(f"scikit_learn_{name}_{classes}: {type(error).__name__}: {str(error)[:400]}")
    return count, failures


NODES = (tree_regressors, tree_classifiers, lines, the_probit_of_one_score, support_vectors, features, labels, wrong_models)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("pattern", nargs="?", default="")
    arguments.add_argument("--save", type=pathlib.Path)
    given = arguments.parse_args()
    SAVED["folder"], pattern = given.save, re.compile(given.pattern)
    count, failures = named_tests.attempt(NODES, pattern)
    if sklearn is not None:
        more, failed = scikit_learn(pattern)
        count, failures = count + more, failures + failed
    else:
        print("scikit-learn's models are left out: skl2onnx or scikit-learn is not here")
    return named_tests.report(count, failures)


if __name__ == "__main__":
    sys.exit(main())
