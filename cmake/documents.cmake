# Documents: reference pages made from tiny.h, the man page of `tiny` from what it says of itself, and
# those of the repository that users read.  Without Python the pages are left out.
find_program(TINY_PYTHON NAMES python3)
if(NOT TINY_PYTHON)
  message(STATUS "no python3: no reference pages and no man page")
  return()
endif()
set(tiny_documents ${PROJECT_BINARY_DIR}/documents)

set(maker ${PROJECT_SOURCE_DIR}/scripts/make-reference.py)
set(header ${PROJECT_SOURCE_DIR}/include/tiny.h)
add_custom_command(
  OUTPUT ${tiny_documents}/reference/index.html
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${tiny_documents}/reference
  COMMAND ${TINY_PYTHON} -B ${maker} ${header} ${PROJECT_VERSION} ${tiny_documents}/reference
  DEPENDS ${maker} ${header} VERBATIM)
set(made ${tiny_documents}/reference/index.html)

if(TARGET tiny_cli AND NOT CMAKE_CROSSCOMPILING)
  set(maker ${PROJECT_SOURCE_DIR}/scripts/make-man.py)
  add_custom_command(
    OUTPUT ${tiny_documents}/tiny.1
    COMMAND ${TINY_PYTHON} -B ${maker} $<TARGET_FILE:tiny_cli> ${tiny_documents}/tiny.1
    DEPENDS ${maker} tiny_cli VERBATIM)
  list(APPEND made ${tiny_documents}/tiny.1)
  install(FILES ${tiny_documents}/tiny.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
endif()
add_custom_target(tiny_documents ALL DEPENDS ${made})
install(DIRECTORY ${tiny_documents}/reference DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(FILES docs/semantics.md docs/ONNX.md docs/GPU.md docs/C.md docs/PYTHON.md docs/TINYGRAD.md docs/TORCH.md docs/debugging.md LICENSE CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
