# Debian packages, by `cpack -G DEB` in a build that was configured for the prefix /usr (the preset `dist`):
# libtiny0, libtiny-dev and tiny-tools, from the components of install.cmake.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr" OR NOT BUILD_SHARED_LIBS OR NOT TARGET tiny_cli)
  return()
endif()
get_target_property(abi tiny SOVERSION)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tiny)
set(CPACK_PACKAGE_VENDOR "The tiny authors")
set(CPACK_PACKAGE_CONTACT "The tiny authors <authors@tiny.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "embeddable deep-learning engine")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What is not installed yet: the library of this very build.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

set(what "builds graphs of tensors lazily, fuses them into few kernels,
compiles them to machine code in memory and runs them on the CPU;
reads ONNX models.")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${what}\nThis package has the library.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtiny${abi})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${what}\nThis package has the header and its documents.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtiny-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtiny${abi} (= ${PROJECT_VERSION}-1)")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "${what}\nThis package has the command tiny.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tiny-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libtiny${abi} (>= ${PROJECT_VERSION}-1)")

# Each package tells its licence where Debian's do.
foreach(component runtime development tools)
  string(TOUPPER ${component} upper)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}
          RENAME copyright COMPONENT ${component})
endforeach()
include(CPack)
