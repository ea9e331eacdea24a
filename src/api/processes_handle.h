// What the processes of tiny.h that compute together are.
#pragma once

#include <utility>

#include "api/counted.h"
#include "runtime/processes.h"
#include "tiny.h"

struct tiny_processes : tiny::CountedAs<tiny::HandleKind::Processes> {
  explicit tiny_processes(tiny::Ref<tiny::Processes> p) : core(std::move(p)) {}

  const tiny::Ref<tiny::Processes> core;
};
