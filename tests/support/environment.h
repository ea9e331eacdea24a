// What the environment tells a test: numbers that make it look further, and where the onnx wheel
// is.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

namespace tiny::testing {

// The number in the variable, or `otherwise` where that is not set or empty.
inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The folder of the Python package onnx (ONNX_PACKAGE), empty where the variable names none: tests
// that need it are skipped then.  Fails the test if the variable names something else.
inline std::filesystem::path onnx_package() {
  const char* folder = std::getenv("ONNX_PACKAGE");
  if (!folder || !*folder) return {};
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(folder) / "backend/test/data"))
      << "ONNX_PACKAGE is no onnx wheel: " << folder;
  return folder;
}

inline constexpr const char* kNoOnnxPackage = "ONNX_PACKAGE names no onnx wheel: set TINY_VENV";

}  // namespace tiny::testing
