# The standard library's headers take a third of a small file's time: gcc reads them once for all
# files with the same flags.  Every file includes what it uses all the same: the second compiler
# (tests/style and the sanitized build) compiles them without this.
set(tiny_standard_headers
    <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <iterator> <map> <memory>
    <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
endif()
# ccache takes what a file includes from the compiler's list (depend mode), for which it needs no
# pass of its own over the file, and a sum for the large file of the headers read once.
foreach(language C CXX)
  if(CMAKE_${language}_COMPILER_LAUNCHER STREQUAL "ccache")
    set(CMAKE_${language}_COMPILER_LAUNCHER
        env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1 ccache)
  endif()
endforeach()

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
    # The sum is the same wherever the tree lies.  The compiler comes with the library's headers, and
    # ccache tells one compiler and its flags from another itself.
    set(described ${CMAKE_CXX_COMPILER_VERSION} ${GTest_VERSION} ${ARGN} ${tiny_standard_headers})
    foreach(header IN LISTS ARGN)
      if(EXISTS ${header})
        file(SHA256 ${header} sum)
        list(APPEND described ${sum})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
      endif()
    endforeach()
    string(REPLACE ${PROJECT_SOURCE_DIR} "" described "${described}")
    string(SHA256 sum "${described}")
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum ${sum})
  endif()
endfunction()
