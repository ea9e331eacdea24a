"""The entry point of group torch.backends: `import torch` has device "tiny", without another import.

What goes wrong is a warning, unless TINY_BACKEND asks for the device: PyTorch has other users.
"""

import os
import warnings


def load():
    try:
        import tiny.torch  # noqa: F401 - the device
    except Exception as error:
        if os.environ.get("TINY_BACKEND", "0") not in ("", "0"):
            raise
        warnings.warn(f'PyTorch has no device "tiny": {error}', RuntimeWarning, stacklevel=2)
