#include "aot/header.h"

#include "aot/names.h"
#include "base/text.h"

namespace tiny::aot {
namespace {

// $ is the name.
constexpr const char* kBeginning = R"(#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calls return. */
enum {
  $_OK = 0,
  $_BAD_ARGUMENT = 1, /* NULL, too little memory, a variable out of range */
  $_BAD_INDEX = 2     /* an index that was read from data is out of range */
};

)";

constexpr const char* kThreads =
    R"(/* Threads of the caller's.  `run` calls piece(work, i, worker) for each i from 0 to pieces
   - 1, in any order and on any threads, and returns when all have ended.  `worker` is from 0 to
   count - 1, and no two calls that go on at the same time have the same one. */
typedef void $_piece(void *work, int64_t i, int32_t worker);
struct $_threads {
  int32_t count;
  void (*run)(void *pool, int64_t pieces, $_piece *piece, void *work);
  void *pool;
};

)";

constexpr const char* kFunctions =
    R"(/* The bytes of `memory` that a run needs, for the variables and threads of `arguments`;
   nothing else of it is looked at.  0 if one of these is out of range. */
size_t $_memory_bytes(const struct $_arguments *arguments);

/* Computes the outputs.  Keeps nothing between calls: calls with other memory, outputs and state
   may go on at the same time, on any threads.  Returns one of the values above; after $_BAD_INDEX
   outputs and state may hold anything. */
int $_run(const struct $_arguments *arguments);

#ifdef __cplusplus
}
#endif
#endif
)";

}  // namespace

std::string header_text(const std::string& name, const std::string& title, const CPorts& ports,
                        std::span<const ProgramVariable> variables, const HeaderFigures& figures) {
  std::string text = cat("/* ", title, " */\n#ifndef TINY_", name, "_H\n#define TINY_", name,
                         "_H\n", with_name(kBeginning, name));
  text += cat("/* Of the file ", name, ".weights. */\n#define ", name, "_WEIGHT_BYTES ",
              figures.weight_bytes + figures.state_bytes, "\n");
  if (figures.state_bytes > 0) {
    text += cat("/* What runs write that is kept from one to the next. */\n#define ", name,
                "_STATE_BYTES ", figures.state_bytes, "\n");
    for (const CPort& port : ports.outputs)
      if (!port.is_given)
        text += cat("/* Where in it an output lies, in bytes: ", port.comment, " of ", port.type,
                    ". */\n#define ", name, "_STATE_", port.member, " ", port.state_offset, "\n");
  }
  text += cat("\n", with_name(kThreads, name), "struct ", name, "_arguments {\n");
  text += "  const void *weights; /* the bytes of that file */\n";
  if (figures.state_bytes > 0) text += cat("  void *state; /* ", name, "_STATE_BYTES bytes */\n");
  text += "  void *memory; /* for values in between, of this run alone */\n";
  text += "  size_t memory_bytes;\n";
  text += cat("  const struct ", name, "_threads *threads; /* NULL: all is done by who calls */\n");
  for (size_t i = 0; i < variables.size(); ++i)
    text += cat("  int64_t ", ports.variables[i], "; /* ", variables[i].min, " to ",
                variables[i].max, " */\n");
  for (const CPort& port : ports.inputs)
    text += cat("  const ", port.type, " *", port.member, "; /* input ", port.comment, " */\n");
  for (const CPort& port : ports.outputs)
    if (port.is_given)
      text += cat("  ", port.type, " *", port.member, "; /* output ", port.comment, " */\n");
  text += "};\n\n";
  if (figures.state_bytes > 0)
    text += cat("/* Gives a state the values that the program was exported with. */\nvoid ", name,
                "_begin(void *state, const void *weights);\n\n");
  return text + with_name(kFunctions, name);
}

}  // namespace tiny::aot
