"""What programs in tinygrad's style take from its helpers."""

from ._counters import GlobalCounters  # noqa: F401
from ._disk_cache import diskcache, diskcache_clear, diskcache_get, diskcache_put  # noqa: F401
from ._fetch import cache_dir, fetch  # noqa: F401
from ._progress import tqdm, trange  # noqa: F401
from ._sequences import (  # noqa: F401
    all_int, all_same, argfix, argsort, canonicalize_strides, cdiv, ceildiv, cmod, count, data64, data64_le, dedup, flat_mv,
    flat_to_grouped, flatten,
    floordiv, floormod, from_mv, fromimport, fully_flatten, get_child, get_shape, get_single_element, getbits, hi32, i2u,
    lo32, make_tuple, merge_dicts, mv_address, next_power2, pad_bytes, partition, polyN, prod, resolve_pool_pads, round_down,
    round_up, strides_for_shape, temp, to_be32, to_be64, to_mv, to_tuple, unwrap)
from ._settings import *  # noqa: F401,F403  ContextVar, and each setting by its name
from ._settings import Context, ContextVar, Target, getenv  # noqa: F401
from ._text import (  # noqa: F401
    ansilen, ansipad, ansistrip, colored, colorize_float, pluralize, size_to_str, strip_parens, time_to_str,
    to_function_name, word_wrap)
from ._timing import (  # noqa: F401
    ProfileEvent, ProfilePointEvent, ProfileRangeEvent, Profiling, Timing, cpu_events, cpu_profile, disable_gc,
    perf_counter_us, profile_marker, wait_cond)
