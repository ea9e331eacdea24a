#include "schedule/join_cost.h"

namespace tiny {

namespace {

struct Weight {
  std::string_view name;
  bool is_saved;
  double weight;
};

constexpr Weight kWeights[] = {
    {"launch", true, 1},       //
    {"traffic", true, 1},      //
    {"hidden", true, 1},       //
    {"recomputed", false, 1},  //
    {"kept", true, 1},         //
    {"operand", false, 1},     //
    {"filled", false, 0},      //
    {"rows", false, 0},        //
    {"panels", false, 1},      //
};
static_assert(std::size(kWeights) == kJoinParts);

double weighed(const JoinCost& cost, bool is_saved) {
  double sum = 0;
  for (size_t i = 0; i < kJoinParts; ++i)
    if (kWeights[i].is_saved == is_saved) sum += kWeights[i].weight * cost.seconds[i];
  return sum;
}

}  // namespace

double JoinCost::saved() const {
  return weighed(*this, true);
}

double JoinCost::paid() const {
  return weighed(*this, false);
}

std::string_view name_of(JoinPart part) {
  return kWeights[static_cast<size_t>(part)].name;
}

}  // namespace tiny
