// The operand of a contraction that its lanes share, beside one in packed panels: how the rows that
// tiles read lie, and whether a near cache can hold what is read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "codegen/choose/editor.h"
#include "codegen/choose/next_tile.h"
#include "codegen/choose/words.h"

namespace tiny {

constexpr int64_t kWays = 16;  // lines of a set of the second level of cache

// All that is passed must outlive it.
class PanelRows {
 public:
  PanelRows(const Editor& edit, const Words& words, const ClosureInfo& reduction, size_t lane,
            size_t row)
      : edit_(edit), words_(words), reduction_(reduction), lane_(lane), row_(row) {}

  // Null where there is none.
  const AccessInfo* operand() const { return rows_operand(edit_, lane_, row_); }

  // The operand again where its rows lie in some way; null where they do not.
  const AccessInfo* colliding(size_t* along) const;
  const AccessInfo* scattered() const;
  const AccessInfo* apart() const;
  const AccessInfo* strided() const;

  std::optional<size_t> range_read_again() const;
  int64_t steps_apart(size_t range) const;

 private:
  const Editor& edit_;
  const Words& words_;
  const ClosureInfo& reduction_;
  const size_t lane_;
  const size_t row_;
};

}  // namespace tiny
