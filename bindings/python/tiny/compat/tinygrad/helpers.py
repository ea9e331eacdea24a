"""tinygrad.helpers on tiny's."""

import pathlib
import sys

from ... import helpers as _helpers
from ...helpers import *  # noqa: F401,F403
from .. import _names
from .._absent import names_of

OSX, WIN = sys.platform == "darwin", sys.platform == "win32"
BASEDIR = pathlib.Path(__file__).parent
globals().update(_names.helpers(_helpers))
_absent = names_of(__name__)


def __getattr__(name):
    found = getattr(_helpers, name, None)
    return _absent(name) if found is None else found
