"""scikit-learn's estimators by skl2onnx, fitted on a made-up table of 300 rows."""

import functools

import numpy as np
from skl2onnx import to_onnx
from sklearn import (calibration, cluster, compose, cross_decomposition, decomposition, discriminant_analysis, ensemble,
                     feature_selection, gaussian_process, impute, linear_model, mixture, multiclass,
                     naive_bayes, neighbors, neural_network, pipeline, preprocessing, random_projection, svm,
                     tree)  # fmt: skip

ROWS, COLUMNS = 300, 8


def table():
    rng = np.random.default_rng(11)
    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    scores = x @ rng.standard_normal((COLUMNS, 3)) + 0.3 * rng.standard_normal((ROWS, 3))
    return x, scores.argmax(1), (scores[:, 0] + np.sin(x[:, 1])).astype(np.float32)


CLASSIFIERS = {
    "logistic_regression": lambda: linear_model.LogisticRegression(), "ridge_classifier": lambda: linear_model.RidgeClassifier(),
    "sgd_classifier": lambda: linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "perceptron": lambda: linear_model.Perceptron(random_state=0),
    "svc_rbf": lambda: svm.SVC(probability=True, random_state=0), "svc_poly": lambda: svm.SVC(kernel="poly"),
    "nu_svc": lambda: svm.NuSVC(nu=0.2), "tree": lambda: tree.DecisionTreeClassifier(random_state=0),
    "extra_tree": lambda: tree.ExtraTreeClassifier(random_state=0),
    "forest": lambda: ensemble.RandomForestClassifier(50, random_state=0),
    "extra_trees": lambda: ensemble.ExtraTreesClassifier(30, random_state=0),
    "gradient_boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=30, random_state=0),
    "ada_boost": lambda: ensemble.AdaBoostClassifier(n_estimators=20, random_state=0),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    "voting": lambda: ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())], voting="soft",
                                                    flatten_transform=False),
    "stacking": lambda: ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())]),
    "neighbours": lambda: neighbors.KNeighborsClassifier(), "radius": lambda: neighbors.RadiusNeighborsClassifier(5.0),
    "gaussian_nb": lambda: naive_bayes.GaussianNB(),
    "bernoulli_nb": lambda: naive_bayes.BernoulliNB(), "complement_nb": lambda: pipeline.make_pipeline(preprocessing.MinMaxScaler(), naive_bayes.ComplementNB()),
    "multinomial_nb": lambda: pipeline.make_pipeline(preprocessing.MinMaxScaler(), naive_bayes.MultinomialNB()),
    "lda": lambda: discriminant_analysis.LinearDiscriminantAnalysis(), "qda": lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(),
    "perceptrons": lambda: neural_network.MLPClassifier((32, 16), max_iter=200, random_state=0),
    "calibrated": lambda: calibration.CalibratedClassifierCV(linear_model.LogisticRegression()),
    "one_vs_rest": lambda: multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    "one_vs_one": lambda: multiclass.OneVsOneClassifier(linear_model.LogisticRegression()),
    }  # fmt: skip
REGRESSORS = {
    "linear": lambda: linear_model.LinearRegression(), "ridge": lambda: linear_model.Ridge(), "lasso": lambda: linear_model.Lasso(0.01),
    "elastic_net": lambda: linear_model.ElasticNet(0.01), "huber": lambda: linear_model.HuberRegressor(max_iter=1000),
    "bayesian_ridge": lambda: linear_model.BayesianRidge(), "tweedie": lambda: linear_model.TweedieRegressor(power=0),
    "ransac": lambda: linear_model.RANSACRegressor(random_state=0), "svr": lambda: svm.SVR(), "linear_svr": lambda: svm.LinearSVR(random_state=0),
    "tree_regressor": lambda: tree.DecisionTreeRegressor(random_state=0),
    "forest_regressor": lambda: ensemble.RandomForestRegressor(50, random_state=0),
    "gradient_boosting_regressor": lambda: ensemble.GradientBoostingRegressor(n_estimators=30, random_state=0),
    "ada_boost_regressor": lambda: ensemble.AdaBoostRegressor(n_estimators=20, random_state=0),
    "neighbours_regressor": lambda: neighbors.KNeighborsRegressor(), "perceptrons_regressor": lambda: neural_network.MLPRegressor(hidden_layer_sizes=(32,), max_iter=300, random_state=0),
    "gaussian_process_regressor": lambda: gaussian_process.GaussianProcessRegressor(alpha=0.1),
    "partial_least_squares": lambda: cross_decomposition.PLSRegression(),
    "stacking_regressor": lambda: ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", linear_model.Lasso(0.1))]),
}  # fmt: skip
TRANSFORMERS = {
    "standard_scaler": lambda: preprocessing.StandardScaler(), "min_max_scaler": lambda: preprocessing.MinMaxScaler((-1, 1)),
    "max_abs_scaler": lambda: preprocessing.MaxAbsScaler(), "robust_scaler": lambda: preprocessing.RobustScaler(),
    "normalizer": lambda: preprocessing.Normalizer("l1"), "binarizer": lambda: preprocessing.Binarizer(),
    "polynomial": lambda: preprocessing.PolynomialFeatures(2), "power": lambda: preprocessing.PowerTransformer(),
    "bins": lambda: preprocessing.KBinsDiscretizer(5, encode="ordinal"), "pca": lambda: decomposition.PCA(4),
    "kernel_pca": lambda: decomposition.KernelPCA(4, kernel="rbf"), "truncated_svd": lambda: decomposition.TruncatedSVD(4, random_state=0),
    "kmeans": lambda: cluster.KMeans(5, n_init=2, random_state=0),
    "select_k_best": lambda: feature_selection.SelectKBest(k=4), "variance_threshold": lambda: feature_selection.VarianceThreshold(0.9),
    "random_projection": lambda: random_projection.GaussianRandomProjection(3, random_state=0),
    "imputer": lambda: impute.SimpleImputer(), "knn_imputer": lambda: impute.KNNImputer(),
    "isolation_forest": lambda: ensemble.IsolationForest(n_estimators=20, random_state=0),
    "one_class_svm": lambda: svm.OneClassSVM(), "gaussian_mixture": lambda: mixture.GaussianMixture(3, random_state=0),
    "local_outlier_factor": lambda: neighbors.LocalOutlierFactor(novelty=True),
    "columns": lambda: compose.ColumnTransformer([("a", preprocessing.StandardScaler(), [0, 1, 2]), ("b", preprocessing.MinMaxScaler(), [3, 4])]),
    "union": lambda: pipeline.make_union(decomposition.PCA(3), preprocessing.StandardScaler()),
}  # fmt: skip


def write(estimator, target, options, path):
    x, labels, values = table()
    model = estimator()
    model.fit(x, {"classifier": labels, "regressor": values, "transformer": labels}[target])
    onnx = to_onnx(model, x[:1], target_opset={"": 19, "ai.onnx.ml": 3}, options={id(model): options} if options else None)
    path.write_bytes(onnx.SerializeToString())


MODELS = {f"sklearn/{name}": functools.partial(write, maker, target, options)
          for target, makers, options in (("classifier", CLASSIFIERS, {"zipmap": False}), ("regressor", REGRESSORS, {}),
                                          ("transformer", TRANSFORMERS, {}))
          for name, maker in makers.items()}  # fmt: skip
# As skl2onnx does it unless told otherwise.
MODELS["sklearn/linear_svc"] = functools.partial(write, lambda: svm.LinearSVC(), "classifier", {})
MODELS["sklearn/logistic_regression_zipmap"] = functools.partial(write, CLASSIFIERS["logistic_regression"], "classifier", {})
