"""tinygrad.runtime.support.hcq2: a program of tiny's is submitted as one batch, as the CPU's are there."""

from ...._absent import names_of
from .....helpers import ContextVar

HCQ_RUNTIME_DEV = ContextVar("HCQ_RUNTIME_DEV", "CPU")

__getattr__ = names_of(__name__)
