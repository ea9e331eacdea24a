"""Keras' layers with torch behind them, by its own export."""

import functools
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
from keras import layers  # noqa: E402

MAKERS = {
    "dense": ((20,), lambda: [layers.Dense(32, "relu"), layers.Dropout(0.5), layers.Dense(3, "softmax")]),
    "convolutions": ((32, 32, 3), lambda: [layers.Conv2D(16, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
                                           layers.SeparableConv2D(32, 3), layers.BatchNormalization(), layers.GlobalAveragePooling2D(),
                                           layers.Dense(10)]),
    "transposed": ((8, 8, 16), lambda: [layers.Conv2DTranspose(8, 3, 2, "same"), layers.UpSampling2D(interpolation="bilinear"),
                                        layers.LeakyReLU(), layers.ZeroPadding2D(), layers.Cropping2D(2)]),
    "lstm": ((10, 8), lambda: [layers.LSTM(16, return_sequences=True), layers.Dense(4)]),
    "gru": ((10, 8), lambda: [layers.Bidirectional(layers.GRU(16)), layers.Dense(4)]),
    "line": ((50, 4), lambda: [layers.Conv1D(16, 5, dilation_rate=2), layers.LayerNormalization(), layers.GlobalMaxPooling1D()]),
}  # fmt: skip


def write(shape, maker, path):
    model = keras.Sequential([keras.Input(shape), *maker()])
    model(keras.ops.zeros((1, *shape)))  # what was never called has no graph to write
    model.export(str(path) + ".onnx", format="onnx", verbose=False)
    os.replace(str(path) + ".onnx", path)


MODELS = {f"keras/{name}": functools.partial(write, *maker) for name, maker in MAKERS.items()}
