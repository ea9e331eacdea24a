# What `cmake --install build/release --prefix DIR` puts in DIR: the header, the library, the command
# line, and what finds them: a pkg-config file, a CMake package, the bindings.  DIR may be moved.
# Components are what distributions make packages of: runtime, development, tools, and a language's.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tiny)
install(FILES ${PROJECT_SOURCE_DIR}/include/tiny.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)
install(TARGETS tiny EXPORT tiny_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tiny_targets NAMESPACE tiny:: FILE tinyTargets.cmake DESTINATION ${package_dir}
        COMPONENT development)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tinyConfig.cmake.in ${PROJECT_BINARY_DIR}/tinyConfig.cmake @ONLY)
# A request for 0.n takes every later 0.m, as the header promises; before 0.2 nothing was promised.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tinyConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
file(APPEND ${PROJECT_BINARY_DIR}/tinyConfigVersion.cmake [[
if(PACKAGE_FIND_VERSION_COUNT GREATER 1 AND PACKAGE_FIND_VERSION VERSION_LESS 0.2
   AND NOT PACKAGE_FIND_VERSION_RANGE)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
]])
install(FILES ${PROJECT_BINARY_DIR}/tinyConfig.cmake ${PROJECT_BINARY_DIR}/tinyConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# The way from the folder of tiny.pc back to DIR, so that it holds wherever DIR lies.  What libtiny.a
# leaves open is what every program that links it must name: there is no other library to choose.
file(RELATIVE_PATH back /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(libs "-ltiny")
if(NOT BUILD_SHARED_LIBS)
  set(libs "-ltiny -l${tiny_cpp_library} -lm -lpthread -ldl")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/tiny.pc.in ${PROJECT_BINARY_DIR}/tiny.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tiny.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

if(SKBUILD)
  return()
endif()

# The bindings, where they are built: lib/tiny/python, lib/tiny/csharp, share/tiny/rust.
if(TARGET tiny_python)
  set(python_dir ${CMAKE_INSTALL_LIBDIR}/tiny/python/tiny)
  get_target_property(built_dir tiny_python LIBRARY_OUTPUT_DIRECTORY)
  install(DIRECTORY ${built_dir}/ DESTINATION ${python_dir} COMPONENT python
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
  install(TARGETS tiny_python LIBRARY DESTINATION ${python_dir} COMPONENT python)
  set_target_properties(tiny_python PROPERTIES INSTALL_RPATH "$ORIGIN/../../..")
endif()
if(TARGET tiny_csharp)
  set(csharp_dir ${CMAKE_INSTALL_LIBDIR}/tiny/csharp)
  install(FILES ${PROJECT_BINARY_DIR}/bindings/csharp/Tiny.dll DESTINATION ${csharp_dir} COMPONENT csharp)
  install(TARGETS tiny_csharp LIBRARY DESTINATION ${csharp_dir} COMPONENT csharp)
  set_target_properties(tiny_csharp PROPERTIES INSTALL_RPATH "$ORIGIN:$ORIGIN/../..")
endif()
set(rust_source ${PROJECT_SOURCE_DIR}/bindings/rust)
if("rust" IN_LIST tiny_languages)
  install(FILES ${rust_source}/Cargo.toml ${rust_source}/README.md ${rust_source}/build.rs
          DESTINATION ${CMAKE_INSTALL_DATADIR}/tiny/rust COMPONENT rust)
  install(DIRECTORY ${rust_source}/src DESTINATION ${CMAKE_INSTALL_DATADIR}/tiny/rust COMPONENT rust)
endif()
