// What the handle of a model is.  It holds no nodes of a graph, so any thread may release it.
#pragma once

#include <utility>

#include "api/model_handle.h"
#include "onnx/session.h"

// Keeps its context's handle alive.
struct tiny_model : tiny::CountedAs<tiny::HandleKind::Model> {
  tiny_model(tiny_context& c, tiny::Ref<tiny::onnx::LoadedModel> v)
      : context(&c), value(std::move(v)) {
    c.retain();
  }

  tiny_context* context;
  tiny::Ref<tiny::onnx::LoadedModel> value;
};
