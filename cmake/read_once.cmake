# The standard library's headers take a third of a small file's time: gcc reads them once for all
# files with the same flags.  Every file includes what it uses all the same: the second compiler
# (tests/style and the sanitized build) compiles them without this.
set(tiny_standard_headers
    <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <iterator> <map> <memory>
    <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
  if(CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache")
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros ccache)
  endif()
endif()

# The targets of a `group` have the same flags.  ARGN: more headers, read before the library's.
function(tiny_read_once target group)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  get_property(first GLOBAL PROPERTY tiny_read_once_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN} ${tiny_standard_headers})
    set_property(GLOBAL PROPERTY tiny_read_once_${group} ${target})
  endif()
endfunction()
