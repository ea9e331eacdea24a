#include "tests/emulation/access_counts.h"

#include <algorithm>
#include <array>
#include <set>

namespace tiny::emulation {

namespace {

constexpr uint64_t kSector = 32, kWord = 4, kBanks = 32, kTurn = kWord * kBanks;

template <class Lanes>
AccessCounts::Totals sectors_of(const Lanes& lanes) {
  std::set<uint64_t> sectors, words;
  for (const auto& l : lanes)
    for (uint64_t at = l.address; at < l.address + l.bytes; ++at)
      sectors.insert(at / kSector), words.insert(at);
  return {1, sectors.size(), (words.size() + kSector - 1) / kSector};
}

// Threads of wide accesses go in turns, as many as there are banks for.
template <class Lanes>
AccessCounts::Totals turns_of(Lanes lanes) {
  AccessCounts::Totals all{1, 0, 0};
  std::ranges::sort(lanes, {}, [](const auto& l) { return l.lane; });
  const auto bytes = std::max<uint64_t>(lanes.front().bytes, kWord);
  std::map<uint64_t, std::array<std::set<uint64_t>, kBanks>> turns;  // words by bank
  for (const auto& l : lanes)
    for (uint64_t word = l.address / kWord; word <= (l.address + l.bytes - 1) / kWord; ++word)
      turns[l.lane * bytes / kTurn][word % kBanks].insert(word);
  for (const auto& [turn, banks] : turns) {
    size_t most = 0, words = 0;
    for (const auto& bank : banks) most = std::max(most, bank.size()), words += bank.size();
    all.asked += most;
    all.least += (words + kBanks - 1) / kBanks;
  }
  return all;
}

}  // namespace

void AccessCounts::add(const Instruction& i, uint32_t thread, bool is_shared, uint64_t address,
                       uint32_t bytes) {
  constexpr uint32_t kLanes = 32;
  if (bytes == 0) return;
  const uint32_t before = times_[{is_shared, i.line, thread}]++;
  accesses_[{is_shared, i.line, thread / kLanes, before}].push_back(
      {address, thread % kLanes, bytes});
}

void AccessCounts::end_group() {
  for (const auto& [key, lanes] : accesses_) {
    const auto& [is_shared, line, warp, before] = key;
    lines_[{is_shared, line}] += is_shared ? turns_of(lanes) : sectors_of(lanes);
  }
  accesses_.clear();
  times_.clear();
}

AccessCounts::Totals AccessCounts::total(bool is_shared) const {
  Totals sum;
  for (const auto& [line, totals] : lines_)
    if (line.first == is_shared) sum += totals;
  return sum;
}

std::string AccessCounts::wasteful(bool is_shared) const {
  std::vector<std::pair<uint64_t, std::string>> found;
  for (const auto& [line, totals] : lines_)
    if (line.first == is_shared && totals.asked > totals.least)
      found.emplace_back(totals.asked - totals.least, "line " + std::to_string(line.second) + ": " +
                                                          std::to_string(totals.asked) + " for " +
                                                          std::to_string(totals.least));
  std::ranges::sort(found, std::greater<>());
  std::string text;
  for (const auto& [more, words] : found) text += (text.empty() ? "" : "; ") + words;
  return text;
}

}  // namespace tiny::emulation
