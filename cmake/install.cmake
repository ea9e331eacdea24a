# What `cmake --install build/release --prefix DIR` puts in DIR: the header, the library, the command
# line, and what finds them: a pkg-config file, a CMake package, the bindings.  DIR may be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tiny)
install(FILES ${CMAKE_SOURCE_DIR}/include/tiny.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tiny EXPORT tiny_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tiny_targets NAMESPACE tiny:: FILE tinyConfig.cmake DESTINATION ${package_dir})
# A request for 0.n takes every later 0.m, as the header promises; before 0.2 nothing was promised.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tinyConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
file(APPEND ${CMAKE_BINARY_DIR}/tinyConfigVersion.cmake [[
if(PACKAGE_FIND_VERSION_COUNT GREATER 1 AND PACKAGE_FIND_VERSION VERSION_LESS 0.2
   AND NOT PACKAGE_FIND_VERSION_RANGE)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
]])
install(FILES ${CMAKE_BINARY_DIR}/tinyConfigVersion.cmake DESTINATION ${package_dir})

# The way from the folder of tiny.pc back to DIR, so that it holds wherever DIR lies.
file(RELATIVE_PATH back /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tiny.pc.in ${CMAKE_BINARY_DIR}/tiny.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tiny.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The bindings, where they are built: lib/tiny/python, lib/tiny/csharp, share/tiny/rust.
if(TARGET tiny_python)
  set(python_dir ${CMAKE_INSTALL_LIBDIR}/tiny/python/tiny)
  get_target_property(built_dir tiny_python LIBRARY_OUTPUT_DIRECTORY)
  install(DIRECTORY ${built_dir}/ DESTINATION ${python_dir} FILES_MATCHING PATTERN "*.py")
  install(TARGETS tiny_python LIBRARY DESTINATION ${python_dir})
  set_target_properties(tiny_python PROPERTIES INSTALL_RPATH "$ORIGIN/../../..")
endif()
if(TARGET tiny_csharp)
  set(csharp_dir ${CMAKE_INSTALL_LIBDIR}/tiny/csharp)
  install(FILES ${CMAKE_BINARY_DIR}/bindings/csharp/Tiny.dll DESTINATION ${csharp_dir})
  install(TARGETS tiny_csharp LIBRARY DESTINATION ${csharp_dir})
  set_target_properties(tiny_csharp PROPERTIES INSTALL_RPATH "$ORIGIN/../..")
endif()
set(rust_source ${CMAKE_SOURCE_DIR}/bindings/rust)
if(TARGET tiny_csharp AND EXISTS ${rust_source}/Cargo.toml)
  install(FILES ${rust_source}/Cargo.toml ${rust_source}/build.rs
          DESTINATION ${CMAKE_INSTALL_DATADIR}/tiny/rust)
  install(DIRECTORY ${rust_source}/src DESTINATION ${CMAKE_INSTALL_DATADIR}/tiny/rust)
endif()
