// The state of one choice of options; shared by choose.cpp (what all kernels have),
// contraction.cpp (kernels with one reduction), panels.cpp (panels of its
// operands), rows.cpp (rows with several), row_tiles.cpp (tiles of rows through
// several), stream.cpp (the same where the rows are long), few_rows.cpp (their
// products where a tile has few rows), window.cpp (windows over what they reduce) and
// words.cpp.
//
// Options are applied as they are chosen, so that later ones can name the ranges that earlier ones
// made.  Positions are of the kernel as it came; numbers name ranges for good.
#pragma once

#include <optional>
#include <vector>

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "cost/access_table.h"
#include "cost/machine.h"
#include "ir/whole_rows.h"

namespace tiny {

// How often a load is read before lanes along another of its axes are worth a copy.
inline constexpr double kStagedReuseMin = 32;
// Lanes that cost more than this are not worth having where there are several reductions.
inline constexpr double kLaneCostMax = 30;
// Elements of a reduced range in a panel, unless few more are all.
inline constexpr int64_t kReducedBlock = 256;
inline constexpr int64_t kVectorsMax = 4;  // of a register tile
// Rows among which the first and last, where loops do not overlap, are few.
inline constexpr int64_t kOverlappedRowsMin = 8;

class Chooser {
 public:
  // `use_dots`: whether words are formed where the target has instructions for them.
  Chooser(const Kernel& kernel, const Machine& target, bool use_dots);
  void run();
  // What was chosen, and the kernel with it.
  OptimisedKernel take() { return {std::move(options_), std::move(current_), {}}; }
  // Whether words were formed of steps that lie apart and are not laid out again.
  bool has_scattered_words() const { return scattered_; }

 private:
  double extent(size_t range) const { return table_.extents[range]; }
  int64_t const_extent(size_t range) const;  // 0: symbolic
  // The size, a symbolic one at its greatest.
  int64_t most(size_t range) const { return static_cast<int64_t>(extent(range)); }
  int64_t number(size_t range) const { return kernel_.ranges[range].range.int_arg(); }
  // What lanes along `range` cost, over all accesses; `steps`: arithmetic per element stored.
  double lane_cost(size_t range, bool reduced, double steps = 1) const;
  bool are_lines_colliding(int64_t stride, int64_t bytes) const;

  void apply(Option option);
  UOp new_stage(Option option);
  int64_t tile(int64_t range, int64_t size);  // the number of the inner range
  void kind(OptionKind what, int64_t range) { apply({what, range, 0, {}, 0, false}); }
  void vector_tile(size_t range, int64_t vectors);
  bool has_range(int64_t number) const;  // now
  bool is_loop(int64_t number) const;
  const KernelRange& range_now(int64_t number) const {
    return current_.ranges[current_.find_range(number)];
  }
  bool is_row(const ClosureInfo& reduction) const;
  bool reads(const ClosureInfo& outer, const ClosureInfo& inner) const;
  void staged_operand(const ClosureInfo& inner);
  std::optional<size_t> lanes_of_fill(const ClosureInfo& fill) const;
  struct LaneChoice {
    std::optional<size_t> range;
    double cost = 0;
  };
  LaneChoice cheapest_lanes(uint64_t set, bool reduced) const;
  uint64_t choosing_ranges() const;
  void unroll_choices(uint64_t choices);
  void lengthen_runs(size_t lane, uint64_t unrolled);
  void elementwise();
  bool is_across(size_t lane, size_t row) const;
  bool turn_squares();
  std::optional<size_t> walked_by_lanes(size_t lane, uint64_t unrolled) const;
  void put_inside(int64_t range, int64_t loop);
  void put_first(int64_t range);

  // rows.cpp
  void rows();
  bool can_overlap_rows() const;
  int64_t row_loop() const;
  void overlap_rows();
  std::vector<int64_t> lanes_of_value(int64_t value, size_t place) const;
  void share_values();
  void prefetch_rows();

  // words.cpp
  void form_words(const UOp& reduce);
  std::optional<size_t> word_range(const UOp& reduce, int64_t steps) const;
  void count_in_words(int64_t steps);

  // row_tiles.cpp
  struct RegisterTile {
    int64_t rows = 1;
    int64_t vectors = 1;
    double score = 0;
  };
  struct RowTile {
    int64_t rows = 1;
    int64_t vectors = 1;   // of the columns of a product
    int64_t place = -1;    // the number of the range outside of a tile of rows
    int64_t inner = -1;    // of the rows of a tile
    int64_t rows_max = 1;  // that registers hold
    int64_t beside = -1;   // the number of the range of more rows of the tile
    bool are_beside_in_registers = false;
  };
  // The numbers of the ranges that columns are cut into; -1 where there is none.
  struct Columns {
    int64_t tiles = -1;
    int64_t vectors = -1;
    int64_t lane = -1;
  };
  bool row_tiles();
  std::optional<size_t> rows_of_matrix(size_t count) const;
  bool weighs_columns(uint64_t common) const;
  bool stream_rows(std::optional<size_t>& row, uint64_t& common);
  double bytes_passed_again(std::optional<size_t> row, uint64_t common) const;
  double columns_of_stores(uint64_t common) const;
  void order_rows(std::optional<size_t> row, size_t count);
  RegisterTile tile_of_rows(std::optional<size_t> row, uint64_t common) const;
  void cut_rows(std::optional<size_t> row, uint64_t common);
  size_t begin_of_tile() const;
  void cut_rows_beside(int64_t range, size_t row);
  int64_t place_outside(size_t at) const;
  void stage_shared_values();
  bool is_opaque(size_t position) const;
  Columns cut_columns(int64_t range, int64_t vectors);
  void give_lanes(const Columns& columns);
  void fill_rows(const UOp& stage);
  std::vector<int64_t> panels_of(const UOp& reduce, int64_t column, int64_t row) const;
  void product(const UOp& reduce, int64_t column, int64_t row);
  void stage_panel(const std::vector<int64_t>& steps, const Columns& columns);
  int64_t column_of_product(const AccessTable& table) const;
  void finish_rows();
  void prefetch_operands();
  void lanes_along_rows();
  int64_t row_of(RangeSet ranges) const;
  void overlap_tile(int64_t row);
  RowTile row_tile_;

  // few_rows.cpp
  static bool is_few(int64_t rows);
  RegisterTile tile_of_few_rows(int64_t rows, double columns) const;
  void prefetch_streams();
  bool lies_along_steps(const UOp& reduce, int64_t column, int64_t row) const;
  void product_along_steps(int64_t steps, int64_t column, int64_t row);
  int64_t steps_beside(int64_t steps, int64_t row);
  int64_t most_of(int64_t range) const;

  // window.cpp
  // One load of a window's sum as a tile of outputs along the window's axis sees it.
  struct WindowLoad {
    double steps = 1;    // of the reduction, at which it has different elements
    bool moves = false;  // with the outputs
    double taps = 0;     // steps along the axis; 0: outputs share nothing
    double stride = 1;   // outputs are so many steps apart
    double places = 1;   // in a page, where steps along the axis begin
    double price = 1;    // of a load, in those of whole lines

    // Different elements that so many outputs read.
    double elements(double rows) const {
      if (!moves) return steps;
      return taps == 0 ? steps * rows : steps / taps * ((rows - 1) * stride + taps);
    }
  };
  struct WindowLoads {
    std::vector<WindowLoad> loads;
    size_t window = 0;           // the position of the window's range along the axis
    bool are_colliding = false;  // outputs read from the same sets of the cache
  };
  struct WindowTile {
    int64_t range = -1;  // of the outputs
    int64_t rows = 1;
    int64_t taps = -1;  // the window's range along the same axis
    bool unrolls_all = false;
    double loads = 0;  // for each step of an output's sum
  };
  std::optional<WindowLoads> window_loads(const AccessTable& table, const ClosureInfo& reduction,
                                          size_t lane, size_t along) const;
  double load_price(const AccessInfo& load, const ClosureInfo& reduction, size_t lane) const;
  int64_t window_rows(const WindowLoads& seen, double size, double steps, double beside,
                      double walked_bytes) const;
  std::optional<WindowTile> window_tile(const UOp& reduce, int64_t lane, RangeSet among,
                                        double walked) const;
  bool stays_near_by_lanes(size_t lane) const;
  void unroll_taps(const WindowTile& window, const UOp& reduce);
  int64_t window_tile_range(const WindowTile& window);
  void apply_window(const WindowTile& window, const UOp& reduce);
  bool fill_window(const UOp& stage, const UOp& reduce);

  // contraction.cpp, panels.cpp
  // The operand with lanes, memoised as a panel: which it is, and how its ranges are cut.
  struct Panel {
    const AccessInfo* load = nullptr;
    int64_t columns = 0;      // of all panels that are filled together; 0: one tile's
    int64_t steps_range = 0;  // the position of the reduced range that is cut
    int64_t steps = 0;        // of it in a panel; 0: all
    bool in_place = false;    // it lies as panels already: columns of one tile side by side
    size_t column_range = 0;  // whose steps are panels (in_place), or columns
    double passes = 0;        // over it, by tiles of rows
  };
  double bytes_in_pages(const ClosureInfo& reduction, size_t lane, double uses) const;
  int64_t whole_row_vectors(int64_t height) const;
  std::optional<size_t> whole_rows(const ClosureInfo& reduction, size_t lane,
                                   std::optional<size_t> row) const;
  void walk_whole_rows(size_t lane, size_t rows, std::optional<size_t> row);
  int64_t vectors_max(const ClosureInfo& reduction, size_t lane) const;
  std::optional<size_t> rows_at_once(const ClosureInfo& reduction, size_t lane) const;
  void contraction(const ClosureInfo& reduction);
  void unroll_window(const ClosureInfo& reduction, int64_t vectors);
  void reduced_lanes(size_t lane, uint64_t outputs);
  struct TileCost {
    double vector_load = 1;  // in loads from the first level of cache
    int64_t vectors_max = 4;
  };
  RegisterTile register_tile(double m, double n, const TileCost& cost) const;
  double loads_of_columns(const ClosureInfo& reduction, size_t lane, size_t row) const;
  bool is_stored_along(size_t row, size_t lane_range) const;
  size_t row_range(size_t lane_range, uint64_t outputs) const;
  bool can_stage(const AccessInfo& load, size_t lane) const;
  double reuse(const AccessInfo& load) const;
  bool lies_in_panels(const AccessInfo& load, size_t lane, size_t* panels) const;
  Panel choose_panel(const ClosureInfo& reduction, size_t lane, size_t row,
                     const RegisterTile& tile) const;
  void staged_contraction(const ClosureInfo& reduction, size_t lane, size_t row,
                          const RegisterTile& tile, const Panel& panel);
  void unroll_steps(int64_t range, const RegisterTile& tile, const Panel& panel);
  void prefetch_panel(const Panel& panel, int64_t place);
  bool are_panels_colliding(const Panel& panel) const;
  void prefetch_tiles(size_t lane, size_t row, const Panel& panel, int64_t inside);
  int64_t place_across(const UOp& stage) const;
  void fill_along(const Option& stage);
  struct Factor {
    UOp value;
    int64_t walked = 0;  // the number of its reduced range
  };
  static std::optional<Factor> computed_factor(const UOp& reduce,
                                               const std::vector<int64_t>& columns,
                                               const std::vector<int64_t>& steps, int64_t row);
  UOp computed_lanes(int64_t lane, const std::vector<int64_t>& rows) const;
  bool are_rows_first(const ClosureInfo& reduction, size_t lane, size_t row,
                      const RegisterTile& tile, const Panel& panel) const;
  bool are_rows_shared(const ClosureInfo& reduction, size_t lane, size_t row,
                       const RegisterTile& tile, const Panel& panel) const;
  void stage_factor(const UOp& reduce, const std::vector<int64_t>& columns,
                    const std::vector<int64_t>& steps, int64_t outer_row, int64_t inner_row);
  void fill_with_lanes(const UOp& stage);
  const AccessInfo* colliding_rows(const ClosureInfo& reduction, size_t lane, size_t row,
                                   size_t* along) const;
  void stage_rows(const ClosureInfo& reduction, size_t lane, size_t row, int64_t outer_row,
                  int64_t inner_row);
  void stage_all_rows(const ClosureInfo& reduction, size_t lane, size_t row, int64_t place,
                      int64_t inner_row);

  Kernel kernel_;
  const Machine& target_;
  AccessTable table_;
  Kernel current_;
  std::vector<Option> options_;
  int64_t lanes_ = 1;
  bool walks_rows_ = false;        // reductions of rows with lanes each
  bool overlaps_rows_ = false;     // whose loops run side by side, for different rows
  uint64_t space_ = ~uint64_t{0};  // the ranges that the contraction runs over
  int64_t cut_range_ = -1;         // the position of the reduced range that a panel cuts
  int64_t cut_ = -1;               // the number of its inner part
  bool use_dots_;
  bool scattered_ = false;
  int64_t word_ = -1;      // the number of the range of a word's steps
  UOp scattered_operand_;  // the parameter whose steps of a word lie apart
};

}  // namespace tiny
