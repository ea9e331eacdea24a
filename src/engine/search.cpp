#include "engine/search.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/sort.h"
#include "codegen/choose/choose.h"
#include "codegen/options/actions.h"
#include "cost/estimate.h"
#include "engine/lowering.h"
#include "engine/trial.h"

namespace tiny {

namespace {

constexpr double kGainMin = 1.01;          // of a step, and of the result over the cost model's
constexpr double kHopeless = 3;            // so much slower than the best after one run: no second
constexpr double kLongSeconds = 5e-3;      // from here on what is executed is counted first
constexpr double kFirstRunSeconds = 0.05;  // the most that a start from no options may take, about
constexpr double kNearSeconds = 1.25;      // so near to the cost model's a result is timed again
constexpr int kRuns = 4;
constexpr double kWarmSeconds = 1e-3;
constexpr double kRunsSeconds = 2e-3;     // short kernels run on until so much is spent
constexpr double kRunsSecondsMax = 0.05;  // long ones are not run again
constexpr int kShortRuns = 24;
constexpr int kFinalRoundsMin = 6;
constexpr int kFinalRoundsMax = 60;
constexpr double kFinalSeconds = 0.3;
constexpr double kFirstShare = 0.6;   // of the time, for the climb from the cost model's list
constexpr double kStartsShare = 0.2;  // of the time, for what else was proposed
constexpr size_t kOtherStarts = 24;   // one for each form and size that a row of strategies has
constexpr size_t kBatch = 8;          // compiled at once

using List = std::vector<Option>;

// One list, compiled.
struct Candidate {
  List list;
  std::string name;
  SizeExpression threads_extent;
  Ref<Executable> code;
  double executed = 0;  // ops of one launch
  double seconds = 0;
};

class Search {
 public:
  Search(const Kernel& kernel, const SearchPlace& place, const PipelineOptions& base,
         const SearchLimits& limits)
      : kernel_(kernel),
        place_(place),
        limits_(limits),
        trial_(place.backend.device(), kernel, place.stop),
        lowering_(kernel, place.backend, base, trial_, place.stop),
        runs_(base.runs),
        begin_(place.observer.now()) {}

  SearchResult run();

 private:
  double spent() const { return place_.observer.now() - begin_; }
  const Machine& machine() const { return place_.backend.machine(); }
  const Kernel& prepared() const { return lowering_.prepared(); }
  std::vector<Candidate> load(std::vector<std::optional<Lowered>> batch);
  double time(Candidate& candidate, double best);
  std::vector<List> next_lists(const List& list) const;
  std::vector<List> expand(const std::vector<Candidate>& beam) const;
  std::vector<Candidate> start(const List& list);
  List plain_list(const Candidate& chosen);
  std::vector<Candidate> try_all(const std::vector<List>& lists, const Candidate& parent,
                                 double until);
  Candidate climb(std::vector<Candidate> beam, double until);
  void keep_best(std::vector<Candidate>& beam) const;
  void play_off(std::vector<Candidate>& all);
  void tell(size_t from, size_t to, const Candidate& best) const;
  void tell_candidate(const Candidate& candidate) const;
  void tell_end(const SearchResult& result, const Candidate& first) const;

  const Kernel& kernel_;
  SearchPlace place_;
  SearchLimits limits_;
  Trial trial_;
  Lowering lowering_;
  double runs_;  // of what is searched for, about
  double begin_;
  double chosen_seconds_ = 0;
  std::set<ProgramHash> seen_;  // programs that were compiled
  int64_t candidates_ = 0;
};

// Those whose code is machine code, or C, and short.  What is here is known from now on.
std::vector<Candidate> Search::load(std::vector<std::optional<Lowered>> batch) {
  std::vector<Candidate> out;
  std::vector<Code> kept;
  for (std::optional<Lowered>& l : batch) {
    if (!l || !seen_.insert(l->hash).second) continue;
    ++candidates_;
    if (l->code.kind == CodeKind::Bytecode) continue;
    if (std::ssize(l->code.bytes) > limits_.code_bytes_max) continue;
    out.push_back(
        {std::move(l->list), std::move(l->name), std::move(l->threads_extent), {}, l->executed, 0});
    kept.push_back(std::move(l->code));
  }
  const std::vector<LoadedKernel> loaded = place_.backend.load(kept, place_.stop);
  for (size_t i = 0; i < out.size(); ++i) out[i].code = loaded[i].executable;
  return out;
}

// The least of several runs; of one, if that is hopeless beside `best`.
double Search::time(Candidate& candidate, double best) {
  double least = trial_.run(*candidate.code, candidate.threads_extent);
  double sum = least;
  // The first run of short code is spent on memory that it touches for the first time.
  if (least < kWarmSeconds) sum = least = trial_.run(*candidate.code, candidate.threads_extent);
  if (best > 0 && least > kHopeless * best) return candidate.seconds = least;
  for (int runs = 1; runs < (sum < kRunsSeconds ? kShortRuns : kRuns); ++runs) {
    if (sum > kRunsSecondsMax) break;
    const double seconds = trial_.run(*candidate.code, candidate.threads_extent);
    least = std::min(least, seconds);
    sum += seconds;
  }
  return candidate.seconds = least;
}

std::vector<List> Search::next_lists(const List& list) const {
  std::vector<List> lists = changed_lists(prepared(), list);
  for (const Action& action : possible_actions(apply_options(prepared(), list), machine())) {
    lists.push_back(list);
    lists.back().insert(lists.back().end(), action.begin(), action.end());
  }
  return lists;
}

// What follows each of the beam, in turns: if the time is short, each has had its share.
std::vector<List> Search::expand(const std::vector<Candidate>& beam) const {
  std::vector<std::vector<List>> each;
  for (const Candidate& c : beam) each.push_back(next_lists(c.list));
  std::vector<List> lists;
  for (size_t i = 0, more = 1; more > 0; ++i) {
    more = 0;
    for (std::vector<List>& next : each)
      if (i < next.size()) lists.push_back(std::move(next[i])), ++more;
  }
  return lists;
}

std::vector<Candidate> Search::try_all(const std::vector<List>& lists, const Candidate& parent,
                                       double until) {
  std::vector<Candidate> timed;
  // Where runs are long the first that halves the time is as good as the best.
  const bool is_slow = parent.seconds * static_cast<double>(lists.size()) > (until - spent()) / 2;
  // What cannot be stopped once it runs is not begun if it would run for long.
  const double hopeless = parent.seconds > kLongSeconds ? kHopeless * parent.executed : 0;
  const size_t step = kBatch * lowering_.lanes();
  double best = parent.seconds;
  for (size_t i = 0; i < lists.size() && spent() <= until; i += step) {
    place_.stop.step("search", kernel_.name, static_cast<int64_t>(i), std::ssize(lists));
    const std::span<const List> batch(&lists[i], std::min(step, lists.size() - i));
    for (Candidate& c : load(lowering_.lower(batch, {true, true, hopeless, &seen_}))) {
      place_.stop.check();
      if (spent() > until) break;
      best = std::min(best, time(c, best));
      tell_candidate(c);
      timed.push_back(std::move(c));
    }
    if (is_slow && best < parent.seconds / 2) break;
  }
  return timed;
}

void Search::keep_best(std::vector<Candidate>& beam) const {
  sort_stable(beam, [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  beam.resize(std::min(beam.size(), static_cast<size_t>(limits_.width)));
}

Candidate Search::climb(std::vector<Candidate> beam, double until) {
  keep_best(beam);
  while (spent() < until) {
    const std::vector<List> lists = expand(beam);
    const double before = beam.front().seconds;
    std::vector<Candidate> timed = try_all(lists, beam.front(), until);
    const size_t count = timed.size();
    std::move(timed.begin(), timed.end(), std::back_inserter(beam));
    keep_best(beam);
    tell(lists.size(), count, beam.front());
    if (before < beam.front().seconds * kGainMin) break;
  }
  return std::move(beam.front());
}

// Turn by turn, so that a change of the machine's speed meets all.
void Search::play_off(std::vector<Candidate>& all) {
  const double end = spent() + kFinalSeconds;
  for (int round = 0; round < kFinalRoundsMax; ++round) {
    if (round >= kFinalRoundsMin && spent() > end) return;
    for (Candidate& c : all) {
      place_.stop.check();
      const double seconds = trial_.run(*c.code, c.threads_extent);
      c.seconds = round == 0 ? seconds : std::min(c.seconds, seconds);
    }
  }
}

void Search::tell(size_t from, size_t to, const Candidate& best) const {
  if (!place_.observer.tells(1)) return;
  char text[160];
  std::snprintf(text, sizeof text,
                "%7.2fs: %12.2f us from %4zu -> %4zu actions %8.2fx cost model  ", spent(),
                best.seconds * 1e6, from, to, chosen_seconds_ / best.seconds);
  place_.observer.tell(cat(text, best.name, "\n"));
}

// What was measured beside what was estimated.
void Search::tell_candidate(const Candidate& candidate) const {
  if (!place_.observer.tells(2)) return;
  const Estimate e = estimate(apply_options(prepared(), candidate.list), machine());
  char text[48];
  std::snprintf(text, sizeof text, "%12.2f us, estimated ", candidate.seconds * 1e6);
  place_.observer.tell(
      cat(text, text_of(e), ": ", candidate.name, ": ", to_text(candidate.list), "\n"));
}

void Search::tell_end(const SearchResult& result, const Candidate& first) const {
  if (!place_.observer.tells(1)) return;
  char text[160];
  std::snprintf(
      text, sizeof text, "%7.2fs: %12.2f us, the cost model's %.2f us, %lld candidates: ", spent(),
      result.seconds * 1e6, result.chosen_seconds * 1e6, static_cast<long long>(result.candidates));
  const auto list = [](const std::string& options) {
    return options.empty() ? std::string("no options") : options;
  };
  if (!result.is_better) return place_.observer.tell(cat(text, "the cost model's stays\n"));
  place_.observer.tell(cat(text, list(result.options), "\n", std::string(10, ' '),
                           "the cost model's list: ", list(to_text(first.list)), "\n"));
}

// The list compiled and timed; nothing if it cannot be.
std::vector<Candidate> Search::start(const List& list) {
  std::vector<Candidate> made = load(lowering_.lower({&list, 1}, {false, true, 0, &seen_}));
  for (Candidate& c : made) {
    time(c, chosen_seconds_);
    tell_candidate(c);
  }
  return made;
}

// No options; where that would run for too long, the steps from there that leave the least to
// execute, until it does not.
List Search::plain_list(const Candidate& chosen) {
  const double enough = chosen.executed * kFirstRunSeconds / chosen.seconds;
  const std::set<ProgramHash> none;
  List list;
  auto least = std::move(lowering_.lower({&list, 1}, {false, false, 0, &none}).front());
  for (bool goes_on = true; goes_on && least && least->executed > enough;) {
    goes_on = false;
    const std::vector<List> next = next_lists(list);
    const size_t step = kBatch * lowering_.lanes();
    for (size_t i = 0; i < next.size() && spent() <= limits_.seconds; i += step) {
      place_.stop.check();
      const std::span<const List> batch(&next[i], std::min(step, next.size() - i));
      for (std::optional<Lowered>& l : lowering_.lower(batch, {true, false, 0, &none})) {
        if (!l || l->executed > least->executed / kGainMin) continue;
        least = std::move(l);
        goes_on = true;
      }
    }
    list = least->list;
  }
  return list;
}

SearchResult Search::run() {
  SearchResult result;
  const OptimisedKernel chosen_by_cost = optimise(prepared(), machine());
  std::vector<Candidate> all = start(chosen_by_cost.options);
  if (all.empty()) return result;
  const Candidate first = all.front();
  chosen_seconds_ = first.seconds;
  if (place_.observer.tells(1))
    place_.observer.tell(cat("search for the optimisations of ", kernel_.name, ", width ",
                             limits_.width, ", from what is proposed and from none",
                             runs_ <= kRunsOnce ? ", for one run" : "", ":\n"));
  tell(1, 1, first);
  // Estimates err: what else was proposed (a product of matrices, rows that are shared) is a start
  // too, the better ones by the estimate first.
  std::vector<Candidate> beam{first};
  std::vector<ProposalNote> proposed = chosen_by_cost.proposed;
  sort_stable(proposed, [](const ProposalNote& a, const ProposalNote& b) {
    return a.cost.seconds < b.cost.seconds;
  });
  std::vector<List> others;
  for (ProposalNote& one : proposed)
    if (!one.is_taken) others.push_back(std::move(one.options));
  others.resize(std::min(others.size(), kOtherStarts));
  for (Candidate& c : try_all(others, first, limits_.seconds * kStartsShare))
    beam.push_back(std::move(c));
  if (!others.empty()) tell(others.size(), beam.size() - 1, beam.front());
  all.push_back(climb(std::move(beam), limits_.seconds * kFirstShare));
  for (Candidate& plain : start(plain_list(first))) {
    tell(1, 1, plain);
    all.push_back(climb({std::move(plain)}, limits_.seconds));
  }
  std::erase_if(all, [&](const Candidate& c) { return c.seconds > first.seconds * kNearSeconds; });
  play_off(all);
  const auto best = std::min_element(
      all.begin(), all.end(),
      [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  result.candidates = candidates_;
  result.chosen_seconds = all.front().seconds;
  result.is_better = best->seconds * kGainMin < all.front().seconds;
  const Candidate& chosen = result.is_better ? *best : all.front();
  result.seconds = chosen.seconds;
  if (result.is_better) result.options = to_text(chosen.list);
  tell_end(result, first);
  return result;
}

}  // namespace

SearchResult search_options(const Kernel& kernel, const SearchPlace& place,
                            const PipelineOptions& base, const SearchLimits& limits) {
  if (kernel.ranges.empty()) return {};
  place.stop.check();
  try {
    return Search(kernel, place, base, limits).run();
  } catch (const Error& e) {
    place.stop.check();
    const bool is_wanting = e.status() == Status::Limit || e.status() == Status::OutOfMemory ||
                            e.status() == Status::Device;
    if (!is_wanting) throw;
    if (place.observer.tells(1))
      place.observer.tell(cat("no search for ", kernel.name, ": ", e.message(), "\n"));
    return {};
  }
}

}  // namespace tiny
