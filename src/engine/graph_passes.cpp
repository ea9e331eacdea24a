#include "engine/graph_passes.h"

#include "engine/backend.h"
#include "engine/observe.h"
#include "ir/spec.h"

namespace tiny {

GraphPassContext graph_pass_context(Context& context) {
  GraphPassContext out{.machine = context.backend().machine()};
  out.winograd = winograd_use(context.flags().wino);
  // Panels are for threads that walk them with vectors; a group's memory is filled from any layout.
  out.pack = context.flags().pack != 0 && !out.machine.computes_in_groups();
  out.noted = [&context](const GraphPassNote& note) {
    context.stop().check();
    if (note.changed && context.flags().spec != 0) verify_tensor(note.roots, note.name);
    context.observer().passed(note);
  };
  return out;
}

}  // namespace tiny
