// What the handle of a value is.  It holds no nodes: its tensors are handles, so any thread may
// release it.
#pragma once

#include <string>
#include <vector>

#include "api/model_handle.h"

// Keeps its context's handle alive.
struct tiny_value : tiny::CountedAs<tiny::HandleKind::Value> {
  tiny_value(tiny_context& c, tiny_kind k) : context(&c), kind(k) { c.retain(); }
  ~tiny_value();

  tiny_context* context;
  tiny_kind kind;
  int depth = 0;  // of values in values
  tiny_tensor* tensor = nullptr;
  std::vector<int64_t> shape;  // of texts
  std::vector<std::string> texts;
  std::vector<tiny_value*> elements;  // of which this is an owner
};
