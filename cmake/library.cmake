# The library that users see: `tiny`, under the name `tiny::tiny` in every project that has it inside
# or finds it installed.  libtiny.so exports tiny_* alone and brings its C++ run time with it.
include(CheckLinkerFlag)

if(BUILD_SHARED_LIBS)
  add_library(tiny SHARED ${tiny_objects})
else()
  # A program has its own heap and memory for exceptions: what replaces them in libtiny.so would replace them there.
  add_library(tiny STATIC $<FILTER:${tiny_objects},EXCLUDE,exception_memory|heap_operators>)
endif()
add_library(tiny::tiny ALIAS tiny)
target_include_directories(tiny PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
# What libtiny.a leaves to the program that links it; libtiny.so says the same of itself.
target_link_libraries(tiny PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
if(NOT BUILD_SHARED_LIBS)
  # The C++ library by name, so that a project in C alone links it too.
  set(tiny_cpp_library ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
  list(FILTER tiny_cpp_library INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+)$")
  target_link_libraries(tiny PRIVATE ${tiny_cpp_library})
  return()
endif()

# A wheel has no links from one name to another: there the library has one.
if(NOT SKBUILD)
  set_target_properties(tiny PROPERTIES VERSION ${PROJECT_VERSION})
endif()
set_target_properties(tiny PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR}
                                      LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/tiny.map)
target_link_options(tiny PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections
                                 -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/api/tiny.map)
# Functions of the same code become one, where there is gold, and strings that end alike.  What is
# optimised as a whole is linked in one piece: of several gold shows hidden symbols.  Where that
# cannot be had, the pages of code and of constants are not kept apart.
check_linker_flag(CXX "-fuse-ld=gold;-Wl,--icf=all" TINY_GOLD)
set(tiny_gold -fuse-ld=gold -Wl,--icf=all -Wl,--icf-iterations=8 -Wl,-O2)
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  target_link_options(tiny PRIVATE -ffunction-sections)
  if(TINY_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(tiny PRIVATE -flto-partition=none -Wl,--no-ld-generated-unwind-info ${tiny_gold})
  else()
    target_link_options(tiny PRIVATE -Wl,-z,noseparate-code)
  endif()
elseif(TINY_GOLD)
  target_link_options(tiny PRIVATE ${tiny_gold})
endif()

# A library that is distributed serves systems that are older than the one where it is linked.
include(CheckCSourceCompiles)
check_c_source_compiles("#include <features.h>
#if !defined(__x86_64__) || !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 34)
#error
#endif
int main(void) { return 0; }" TINY_NEW_GLIBC)
if(TINY_NEW_GLIBC AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_sources(tiny PRIVATE ${PROJECT_SOURCE_DIR}/src/api/older_glibc.c)
  # What it says in assembly is not seen by the optimiser of the whole library.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/api/older_glibc.c PROPERTIES
                              SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-Wall;-Wextra;-fno-builtin;-fno-lto")
  # Where these functions are in glibc 2.31.
  target_link_options(tiny PRIVATE -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--as-needed)
endif()
