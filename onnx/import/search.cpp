// Searches for sequences of tokens (com.microsoft BeamSearch and GreedySearch): the decoder, a
// graph in an attribute, is the body of a loop that the run counts.  What it keeps of the tokens
// before has memory for the longest sequence; of that a round sees as much as there is, by a size
// that the loop counts.
#include <array>
#include <functional>
#include <memory>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/search_rules.h"
#include "onnx/import/table.h"
#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"

namespace tiny::onnx {

namespace {

// Each part of an axis so many times, one after the other.
Tensor repeated(const Tensor& x, int64_t axis, int64_t times) {
  if (times == 1) return x;
  Shape shape = x.shape(), wide = shape;
  wide.insert(wide.begin() + axis + 1, tiny::Dim(times));
  shape[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)] * tiny::Dim(times);
  return reshape(expand(unsqueeze(x, {axis + 1}), wide), shape);
}

// That a value of the graph or an input has as many axes as the search moves by.
void check_rank(const Call& c, const Tensor& x, int64_t rank, const char* what) {
  c.check(x.rank() == rank, what, " has ", x.rank(), " axes; wanted ", rank);
}

// The scores of what follows the last of the tokens: float32 [rows, vocabulary].
Tensor last_scores(const Call& c, const Tensor& logits, int64_t vocabulary) {
  check_rank(c, logits, 3, "what its decoder makes of tokens");
  const tiny::Dim tokens = logits.shape()[1];
  Tensor last = squeeze(slice_axis(logits, 1, tokens - 1, tokens), {1});
  if (vocabulary > 0) {
    c.check(decide_less_equal(tiny::Dim(vocabulary), last.shape()[1]), "vocab_size is ", vocabulary,
            " of a decoder's ", last.shape()[1]);
    last = slice_axis(last, 1, 0, vocabulary);
  }
  return cast(last, kFloat32);
}

// What a decoder makes of tokens.
struct Decoded {
  Tensor logits;
  Tensors kept;
};

// The decoder and what it is given beside tokens.  What it keeps is of the tokens before, along
// `axis`, of each row along `rows`.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Of the prompt, for each of its batch.
  virtual Decoded begin() = 0;
  // Of one more token of each row of `sequences`, whose last of `length` it is.
  virtual Decoded next(const Tensor& sequences, const tiny::Dim& length, const Tensors& kept) = 0;

  Tensor prompt;          // [batch, length], what sequences begin with
  int64_t kept_rank = 4;  // of what is kept
  int64_t row_axis = 0;
  int64_t token_axis = 0;
};

void check_inputs(const Call& c, const Graph& graph, std::initializer_list<const char*> names) {
  c.check(graph.inputs.size() >= names.size(), "its graph \"", graph.name, "\" takes ",
          graph.inputs.size(), " inputs");
  size_t i = 0;
  for (const char* name : names) {
    const std::string& got = graph.inputs[i].name;
    c.check(got == name, "input ", i++, " of its graph is \"", got, "\"; wanted \"", name, '"');
  }
}

// The size that the graph says of its input or output.
int64_t said_size(const Call& c, const ValueInfo& value, size_t axis) {
  const std::vector<Dim>& dims = value.type.dims;
  c.check(axis < dims.size() && dims[axis].is_known() && dims[axis].value > 0, '"', value.name,
          "\" of its graph has no known size ", axis);
  return dims[axis].value;
}

// GPT: (tokens, positions, mask, past..) to (logits, present..), each [2, rows, heads, tokens, n].
class GptDecoder : public Decoder {
 public:
  GptDecoder(Call& c, int64_t pad, int64_t beams, size_t mask)
      : c_(c), graph_(c.graph_attr("decoder")), beams_(beams) {
    check_inputs(c, graph_, {"input_ids", "position_ids", "attention_mask", "past_0"});
    if (graph_.inputs.size() != graph_.outputs.size() + 2)
      c.unsupported("a decoder of ", graph_.inputs.size(), " inputs and ", graph_.outputs.size(),
                    " outputs (past and present in one memory); wanted two inputs more");
    prompt = cast(c.in(0), kInt32);
    check_rank(c, prompt, 2, "input_ids");
    kept_rank = 5;
    row_axis = 1;
    token_axis = 3;
    const Tensor is_token = not_equal(prompt, number_int(c, pad));
    mask_ = c.has(mask) ? cast(c.in(mask), kInt32) : cast(is_token, kInt32);
    check_rank(c, mask_, 2, "attention_mask");
    const Tensor counted = cumsum(cast(is_token, kInt32), 1);
    places_ = where(is_token, counted - number_int(c, 1), number_int(c, 0));
    count_ = repeated(sum_in_dtype(cast(is_token, kInt32), {1}, true), 0, beams);
  }

  Decoded begin() override {
    const ValueInfo& past = graph_.inputs[3];
    const tiny::Dim batch = prompt.shape()[0];
    const Shape shape{2, batch, said_size(c_, past, 2), 0, said_size(c_, past, 4)};
    const Graph& graph = c_.has_attribute("init_decoder") ? c_.graph_attr("init_decoder") : graph_;
    return call(graph, {prompt, places_, mask_},
                Tensors(graph_.inputs.size() - 3, full(c_.context(), type_of(past), shape, 0)));
  }

  Decoded next(const Tensor& sequences, const tiny::Dim& length, const Tensors& kept) override {
    const tiny::Dim before = length - 1;
    const Tensor made = size_tensor(c_.context(), before - prompt.shape()[1]);
    // Behind the prompt all tokens are seen.
    const Shape none(2), behind{0, sequences.shape()[1] - prompt.shape()[1]};
    const Tensor mask = slice_axis(pad(repeated(mask_, 0, beams_), none, behind, 1), 1, 0, length);
    return call(graph_,
                {slice_axis(sequences, 1, before, length), count_ + cast(made, kInt32), mask},
                kept);
  }

 private:
  static DType type_of(const ValueInfo& value) {
    return value.type.elem_type == 10 ? kFloat16 : kFloat32;
  }

  Decoded call(const Graph& graph, Tensors inputs, const Tensors& kept) {
    inputs.insert(inputs.end(), kept.begin(), kept.end());
    const Tensors made = c_.subgraph(graph, inputs);
    return {made[0], {made.begin() + 1, made.end()}};
  }

  Call& c_;
  const Graph& graph_;
  int64_t beams_;
  Tensor mask_;    // int32 [batch, prompt]
  Tensor places_;  // the same
  Tensor count_;   // int32 [rows, 1]: tokens of the prompt
};

// T5: an encoder (tokens, mask) to keys and values for the decoder's attention to it; or, with the
// decoder's first tokens, to (logits, hidden states, keys and values of both kinds).  The decoder:
// (tokens, mask, hidden states if it wants them, keys and values of its own, those of the encoder)
// to (logits, those of its own), each [rows, heads, tokens, n].
class T5Decoder : public Decoder {
 public:
  T5Decoder(Call& c, int64_t pad, int64_t beams, size_t mask)
      : c_(c), encoder_(c.graph_attr("encoder")), graph_(c.graph_attr("decoder")), beams_(beams) {
    check_inputs(c, encoder_, {"encoder_input_ids", "encoder_attention_mask"});
    check_inputs(c, graph_, {"input_ids", "encoder_attention_mask"});
    token_axis = 2;
    c.check(!graph_.outputs.empty(), "its decoder makes nothing");
    const size_t layers = graph_.outputs.size() - 1;
    wants_hidden_ = graph_.inputs.size() > 2 && graph_.inputs[2].name == "encoder_hidden_states";
    const size_t wanted = 2 + (wants_hidden_ ? 1 : 0) + 2 * layers;
    if (graph_.inputs.size() != wanted)
      c.unsupported("a decoder of ", graph_.inputs.size(), " inputs and ", graph_.outputs.size(),
                    " outputs; wanted ", wanted, " inputs");
    const Tensor tokens = cast(c.in(0), kInt32);
    check_rank(c, tokens, 2, "input_ids");
    // Padding is what comes before the first token.
    const Tensor is_token = cast(not_equal(tokens, number_int(c, pad)), kInt32);
    mask_ = c.has(mask) ? cast(c.in(mask), kInt32)
                        : cast(greater(cumsum(is_token, 1), number_int(c, 0)), kInt32);
    check_rank(c, mask_, 2, "attention_mask");
    const int64_t start = c.attr("decoder_start_token_id", -1);
    c.check(start >= 0, "decoder_start_token_id is ", start, "; an encoder and decoder wants one");
    prompt = full(c.context(), kInt32, {tokens.shape()[0], 1}, static_cast<double>(start));
    encoded_ = {tokens, mask_};
  }

  Decoded begin() override {
    const size_t own = graph_.outputs.size() - 1;
    const bool decodes = encoder_.inputs.size() == 3;
    Tensors inputs = encoded_;
    if (decodes) inputs.push_back(prompt);
    const Tensors made = c_.subgraph(encoder_, inputs);
    const size_t wanted = decodes ? 2 + 2 * own : own;
    c_.check(made.size() == wanted, "its encoder makes ", made.size(), " values; wanted ", wanted);
    if (wants_hidden_ && !decodes)
      c_.unsupported(
          "a decoder that wants hidden states of an encoder "
          "that makes none");
    if (wants_hidden_) {
      beside_ = {made[1]};
      check_rank(c_, made[1], 3, "what its encoder makes of tokens");
    }
    for (auto cross = made.end() - static_cast<ptrdiff_t>(own); cross != made.end(); ++cross)
      check_rank(c_, *cross, kept_rank, "what its encoder keeps");
    beside_.insert(beside_.end(), made.end() - static_cast<ptrdiff_t>(own), made.end());
    if (decodes) return {made[0], {made.begin() + 2, made.end() - static_cast<ptrdiff_t>(own)}};
    Tensors none;
    for (const Tensor& cross : made) none.push_back(slice_axis(cross, token_axis, 0, 0));
    return call(prompt, mask_, beside_, none);
  }

  Decoded next(const Tensor& sequences, const tiny::Dim& length, const Tensors& kept) override {
    Tensors beside;
    for (const Tensor& one : beside_) beside.push_back(repeated(one, 0, beams_));
    const std::vector<Dim>& said = graph_.inputs[0].type.dims;
    const bool is_one = said.size() == 2 && said[1].is_known() && said[1].value == 1;
    return call(slice_axis(sequences, 1, is_one ? length - 1 : tiny::Dim(0), length),
                repeated(mask_, 0, beams_), beside, kept);
  }

 private:
  Decoded call(const Tensor& tokens, const Tensor& mask, const Tensors& beside,
               const Tensors& kept) {
    Tensors inputs{tokens, mask};
    const auto add = [&](auto from, auto to) { inputs.insert(inputs.end(), from, to); };
    const auto hidden = beside.begin() + (wants_hidden_ ? 1 : 0);
    add(beside.begin(), hidden);
    add(kept.begin(), kept.end());
    add(hidden, beside.end());
    const Tensors made = c_.subgraph(graph_, inputs);
    return {made[0], {made.begin() + 1, made.end()}};
  }

  Call& c_;
  const Graph& encoder_;
  const Graph& graph_;
  int64_t beams_;
  bool wants_hidden_ = false;
  Tensor mask_;      // int32 [batch, tokens]
  Tensors encoded_;  // what the encoder is given
  Tensors beside_;   // of the batch: hidden states if they are wanted, then keys and values
};

// With a prompt that leaves room for a token.
std::unique_ptr<Decoder> decoder_of(Call& c, int64_t pad, int64_t beams, size_t mask,
                                    int64_t room) {
  std::unique_ptr<Decoder> made;
  const int64_t type = c.attr("model_type", 0);
  if (type == 0)
    made = std::make_unique<GptDecoder>(c, pad, beams, mask);
  else if (type == 1)
    made = std::make_unique<T5Decoder>(c, pad, beams, mask);
  else
    c.unsupported("model_type ", type, "; wanted 0 (GPT) or 1 (encoder and decoder)");
  const tiny::Dim& begun = made->prompt.shape()[1];
  c.check(decide_less_equal(begun + 1, tiny::Dim(room)), "max_length is ", room,
          "; wanted more than the prompt's length of ", begun);
  return made;
}

SearchRules rules_of(Call& c, size_t repetition) {
  SearchRules rules;
  rules.eos = c.attr("eos_token_id");
  rules.pad = c.attr("pad_token_id");
  rules.ngram = c.attr("no_repeat_ngram_size", 0);
  if (c.has(2)) rules.min_length = c.in(2);
  if (c.has(repetition)) rules.repetition = c.in(repetition);
  if (c.has(repetition + 1)) rules.vocab_mask = c.in(repetition + 1);
  if (c.has(repetition + 2)) rules.prefix_mask = c.in(repetition + 2);
  return rules;
}

// A search's own state: how one more token is chosen, and whether the search goes on.
struct Choice {
  Tensors state;   // the first are the sequences
  Tensor rows;     // which each row was before; none: itself
  Tensor goes_on;  // bool, one element
  Tensors collected;
};
using Choose = std::function<Choice(const Tensors& state, const Tensor& logits,
                                    const tiny::Dim& length, bool is_first)>;

struct Searched {
  Tensors state;
  Tensor length;      // of the sequences: int64, no axes
  Tensors collected;  // of each token along a new first axis; of those that were not made any
};

// Chooses tokens, from the prompt on, until the sequences fill their room.
Searched search(Call& c, Decoder& decoder, int64_t beams, int64_t room, const Tensors& state,
                const Choose& choose) {
  const tiny::Dim begun = decoder.prompt.shape()[1];
  const int64_t vocabulary = c.attr("vocab_size", -1);
  Decoded first = decoder.begin();
  Choice made =
      choose(state, repeated(last_scores(c, first.logits, vocabulary), 0, beams), begun, true);
  const int64_t least = lower_bound(begun);
  Searched out{made.state, size_tensor(c.context(), begun + 1), {}};
  for (const Tensor& one : made.collected) out.collected.push_back(unsqueeze(one, {0}));
  if (least + 1 >= room) return out;

  // What is kept, with the rows that go on, lies by tokens: those that a round adds stand behind.
  const auto by_tokens = [&](const Tensors& all, const Tensor& rows) {
    Tensors out;
    for (const Tensor& one : all) {
      check_rank(c, one, decoder.kept_rank, "what its decoder keeps");
      const Tensor mine = rows && beams > 1 ? gather(one, rows, decoder.row_axis) : one;
      out.push_back(move_axis(mine, decoder.token_axis, 0));
    }
    return out;
  };
  Tensors before = made.state;
  const size_t own = before.size();
  Tensors all;
  for (const Tensor& one : first.kept) {
    check_rank(c, one, decoder.kept_rank, "what its decoder keeps");
    all.push_back(repeated(one, decoder.row_axis, beams));
  }
  for (const Tensor& one : by_tokens(all, made.rows)) {
    Shape none(static_cast<size_t>(one.rank())), behind = none;
    behind[0] = tiny::Dim(room - 1) - begun;
    before.push_back(pad(one, none, behind));
  }

  const tiny::Dim rest = tiny::Dim(room - 1) - begun;
  Tensor rounds = where(reshape(made.goes_on, Shape()), size_tensor(c.context(), rest),
                        full_bits(c.context(), kInt64, {}, 0));
  if (const Tensor& guard = c.importer().guard())
    rounds = where(guard, rounds, full_bits(c.context(), kInt64, {}, 0));
  // How many tokens there are before the last one: a number, where one round alone may come.
  InductionVariable induction;
  if (least < room - 2)
    induction = {c.importer().induction_variable(c.node(), {least, room - 2}), begun};
  const tiny::Dim past = induction.variable ? tiny::Dim(induction.variable) : tiny::Dim(least);
  const auto round = [&](const Tensor&, const Tensors& now) {
    Tensors seen;
    for (size_t i = own; i < now.size(); ++i)
      seen.push_back(move_axis(slice_axis(now[i], 0, 0, past), 0, decoder.token_axis));
    const Decoded decoded = decoder.next(now[0], past + 1, seen);
    const Choice chosen = choose({now.begin(), now.begin() + static_cast<ptrdiff_t>(own)},
                                 last_scores(c, decoded.logits, vocabulary), past + 1, false);
    Round next{chosen.state, chosen.goes_on, chosen.collected};
    for (const Tensor& one : by_tokens(decoded.kept, chosen.rows)) next.state.push_back(one);
    return next;
  };
  const tiny::Dim most = maximum(rest, tiny::Dim(1));
  const Rounds ran = collect(rounds, made.collected.empty() ? tiny::Dim(1) : most, before,
                             c.importer().dependences(), round, induction);
  out.state.assign(ran.state.begin(), ran.state.begin() + static_cast<ptrdiff_t>(own));
  out.length = out.length + ran.count;
  for (size_t i = 0; i < out.collected.size(); ++i) {
    const std::array both{out.collected[i], slice_axis(ran.collected[i], 0, 0, rest)};
    out.collected[i] = concat(both, 0);
  }
  return out;
}

Tensor goes_on_unless(const Tensor& done) {
  return invert(all(done, {0}));
}

// onnxruntime's.
constexpr int64_t kRoomMax = 4096;
constexpr int64_t kBeamsMax = 128;

int64_t room_of(Call& c) {
  const int64_t room = c.integer(1);
  c.check(room > 0 && room <= kRoomMax, "max_length is ", room, "; wanted 1 to ", kRoomMax);
  return room;
}

Tensors import_greedy_search(Call& c) {
  const SearchRules rules = rules_of(c, 3);
  const int64_t room = room_of(c);
  const std::unique_ptr<Decoder> decoder = decoder_of(c, rules.pad, 1, 6, room);
  const Shape none(2);
  const Tensor sequences =
      pad(decoder->prompt, none, {0, tiny::Dim(room) - decoder->prompt.shape()[1]},
          static_cast<double>(rules.pad));
  const Tensor ended = full(c.context(), kBool, {sequences.shape()[0]}, 0);
  const auto choose = [&](const Tensors& now, const Tensor& logits, const tiny::Dim& length,
                          bool is_first) {
    const Tensor best = argmax(ruled_scores(c, rules, logits, now[0], length, is_first), 1);
    const Tensor is_over = bit_or(now[1], equal(best, number_int(c, rules.eos)));
    const Tensor next = where(is_over, number_int(c, rules.pad), best);
    return Choice{
        {with_tokens(now[0], next, length), is_over}, Tensor(), goes_on_unless(is_over), {}};
  };
  return {search(c, *decoder, 1, room, {sequences, ended}, choose).state[0]};
}

// Inputs: tokens, max_length, min_length, num_beams, num_return_sequences, length_penalty,
// repetition_penalty, vocab_mask, prefix_vocab_mask, attention_mask, decoder_input_ids,
// logits_processor.
Tensors import_beam_search(Call& c) {
  const int64_t room = room_of(c);
  BeamSearch all;
  all.rules = rules_of(c, 6);
  all.beams = c.integer(3);
  c.check(all.beams > 0 && all.beams <= kBeamsMax, "num_beams is ", all.beams, "; wanted 1 to ",
          kBeamsMax);
  const int64_t returned = c.integer(4);
  c.check(returned > 0 && returned <= all.beams, "num_return_sequences is ", returned, " of ",
          all.beams, " beams");
  all.early_stopping = c.flag("early_stopping", false);
  if (c.has(5)) all.length_penalty = c.in(5);
  if (c.has(11) && c.integer(11) != 0) c.unsupported("logits_processor ", c.integer(11));
  const std::unique_ptr<Decoder> decoder = decoder_of(c, all.rules.pad, all.beams, 9, room);
  // The mask of the first token is one for each of the batch.
  if (all.rules.prefix_mask) {
    check_rank(c, all.rules.prefix_mask, 2, "prefix_vocab_mask");
    all.rules.prefix_mask = repeated(all.rules.prefix_mask, 0, all.beams);
  }
  const auto choose = [&](const Tensors& now, const Tensor& logits, const tiny::Dim& length,
                          bool is_first) {
    const BeamStep step = next_beams(c, all, Beams::of(now), logits, length, is_first);
    Choice choice{step.beams.list(), step.rows, goes_on_unless(step.beams.done), {}};
    if (c.wants(2)) choice.collected.push_back(step.candidates);
    return choice;
  };
  const Searched found = search(c, *decoder, all.beams, room,
                                first_beams(c, all, decoder->prompt, room).list(), choose);
  const FoundSequences best =
      found_sequences(c, all, Beams::of(found.state), found.length, returned);
  Tensors out{best.sequences, best.scores};
  if (!c.wants(2)) return out;
  // Of tokens that were not made there are none.
  const Tensor& scores = found.collected[0];
  const Tensor made = found.length - size_tensor(c.context(), decoder->prompt.shape()[1]);
  const Tensor is_made =
      less(positions(c.context(), kInt64, scores.shape()[0], 0, scores.rank()), made);
  out.push_back(where(is_made, scores, number(c, 0)));
  return out;
}

// clang-format off
constexpr Row kRows[] = {
    {"BeamSearch",   1, 1, import_beam_search,   operand(1) | operand(3) | operand(4) | operand(11), nullptr, kContributed},
    {"GreedySearch", 1, 1, import_greedy_search, operand(1), nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> search_rows() {
  return kRows;
}

}  // namespace tiny::onnx
