// A build that shows no nodes looks for no lists of options either.
#include "base/error.h"
#include "engine/search.h"

namespace tiny {

SearchResult search_options(const Kernel&, const SearchPlace&, const PipelineOptions&,
                            const SearchLimits&) {
  throw_error(Status::Unsupported,
              "beam: this build of the library does not search (TINY_NODES was OFF)");
}

}  // namespace tiny
