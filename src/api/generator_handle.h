// What a generator of tiny.h is.
#pragma once

#include <utility>

#include "api/handle.h"
#include "nn/generator.h"

struct tiny_generator final : tiny::CountedAs<tiny::HandleKind::Generator>, tiny::HoldsNodes {
  tiny_generator(tiny_context& c, tiny::Ref<tiny::Generator> g)
      : HoldsNodes(c, tiny::end_handle<tiny_generator>), core(std::move(g)) {}

  tiny::Ref<tiny::Generator> core;
};
