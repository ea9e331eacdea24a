#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tiny {
namespace {

int twice(int x) {
  return 2 * x;
}

int at_three(FunctionRef<int(int)> function) {
  return function(3);
}

TEST(FunctionRef, calls_the_function_itself_of_any_kind) {
  int calls = 0;
  const auto counting = [&](int x) { return x + ++calls; };
  EXPECT_EQ(at_three(counting), 4);
  EXPECT_EQ(at_three(counting), 5);
  EXPECT_EQ(calls, 2);
  int sum = 10;
  auto adding = [sum](int x) mutable { return sum += x; };
  EXPECT_EQ(at_three(adding), 13);
  EXPECT_EQ(at_three(adding), 16);
  EXPECT_EQ(at_three(twice), 6);
}

TEST(FunctionRef, passes_arguments_and_results_as_they_are) {
  using Text = std::unique_ptr<std::string>;
  const auto add = [](Text text, std::string& last) {
    *text += "!";
    last = *text;
    return text;
  };
  const FunctionRef<Text(Text, std::string&)> function = add;
  std::string last;
  EXPECT_EQ(*function(std::make_unique<std::string>("moved"), last), "moved!");
  EXPECT_EQ(last, "moved!");
}

}  // namespace
}  // namespace tiny
