"""The networks of pictures, sequences and operators by torch's exporters: FAMILY_script and FAMILY_export."""

import functools
import importlib.util

import operators
import pictures
import sequences
from example import export

HAS_EXPORT = importlib.util.find_spec("onnxscript") is not None
FAMILIES = {"pictures": pictures.NETWORKS, "sequences": sequences.NETWORKS, "operators": operators.NETWORKS}
MODELS = {f"{family}_{exporter}/{name}": functools.partial(export, name, maker, exporter)
          for family, makers in FAMILIES.items() for name, maker in makers.items()
          for exporter in (("script", "export") if HAS_EXPORT else ("script",))}  # fmt: skip
