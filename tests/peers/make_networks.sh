#!/bin/sh
# The networks that tests count the kernels of and run at many lengths, below FOLDER:
# make_networks.sh PYTHON FOLDER.  77: the interpreter lacks the wheels.
set -eu
python=$1 folder=$2
make=$(dirname "$0")/make_models.py
"$python" -c 'import numpy, onnx' 2>/dev/null || exit 77
"$python" -B "$make" "$folder" --no-outputs --only resnet50 mobilenet_v2 transformer
"$python" -B "$make" "$folder/one_layer" --no-outputs --only transformer --layers 1
