"""LightGBM's and XGBoost's trees by onnxmltools."""

import functools

import lightgbm
import xgboost
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn_models import COLUMNS, table

MAKERS = {
    "lightgbm_classifier": (lambda: lightgbm.LGBMClassifier(n_estimators=20, verbose=-1), 1),
    "lightgbm_regressor": (lambda: lightgbm.LGBMRegressor(n_estimators=30, verbose=-1), 2),
    "lightgbm_forest": (lambda: lightgbm.LGBMRegressor(boosting_type="rf", subsample=0.7, subsample_freq=1, n_estimators=20, verbose=-1), 2),
    "lightgbm_dart": (lambda: lightgbm.LGBMRegressor(boosting_type="dart", n_estimators=20, verbose=-1), 2),
    "lightgbm_poisson": (lambda: lightgbm.LGBMRegressor(objective="poisson", n_estimators=20, verbose=-1), 3),
    "xgboost_classifier": (lambda: xgboost.XGBClassifier(n_estimators=20, max_depth=4), 1),
    "xgboost_binary": (lambda: xgboost.XGBClassifier(n_estimators=20, max_depth=4), 4),
    "xgboost_regressor": (lambda: xgboost.XGBRegressor(n_estimators=30, max_depth=5), 2),
    "xgboost_forest": (lambda: xgboost.XGBRFRegressor(n_estimators=20, max_depth=5), 2),
}  # fmt: skip


def write(maker, target, path):
    x, labels, values = table()
    model = maker()
    model.fit(x, {1: labels, 2: values, 3: values - values.min() + 1, 4: (labels > 0).astype(int)}[target])
    kind = [("input", FloatTensorType([None, COLUMNS]))]
    is_lightgbm = isinstance(model, lightgbm.LGBMModel)
    converted = convert_lightgbm(model, initial_types=kind, zipmap=False, target_opset=15) if is_lightgbm else \
        convert_xgboost(model, initial_types=kind, target_opset=15)
    path.write_bytes(converted.SerializeToString())


MODELS = {f"boosted/{name}": functools.partial(write, *maker) for name, maker in MAKERS.items()}
