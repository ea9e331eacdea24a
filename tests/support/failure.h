// What a call was refused with, and whether that is what the test wants.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <source_location>
#include <string_view>

#include "base/error.h"

namespace tiny::testing {

// The Error that `body` throws; one of status Ok if it throws nothing.
template <class Body>
Error failure_of(Body body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  return Error(Status::Ok, "nothing failed");
}

// The error has this status, and its message holds each of the texts.
inline void expect_failure(const Error& error, Status status,
                           std::initializer_list<std::string_view> texts = {},
                           std::source_location at = std::source_location::current()) {
  const ::testing::ScopedTrace trace(at.file_name(), static_cast<int>(at.line()), "expected here");
  EXPECT_EQ(error.status(), status) << error.message();
  for (const std::string_view text : texts)
    EXPECT_NE(error.message().find(text), std::string::npos)
        << "\"" << text << "\" in: " << error.message();
}

}  // namespace tiny::testing
