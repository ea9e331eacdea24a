// What a search for sequences asks of the scores of the next token, and the beams that it follows
// (com.microsoft BeamSearch and GreedySearch).
//
// Sequences are rows of the room for the longest, int32; of the part that is made so far `length`
// says how many there are.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

struct SearchRules {
  int64_t eos = 0;
  int64_t pad = 0;
  int64_t ngram = 0;  // no so many tokens come twice; 0: any may
  Tensor min_length;  // tensors of one element, and masks of tokens that may come where they are
  Tensor repetition;  // not 0: [vocabulary], and [rows, vocabulary] of the first token alone.
  Tensor vocab_mask;  // None: it is not asked
  Tensor prefix_mask;
};

// The scores [rows, vocabulary] as the rules leave them, in onnxruntime's order.
Tensor ruled_scores(const Call& c, const SearchRules& rules, Tensor scores, const Tensor& sequences,
                    const tiny::Dim& length, bool is_first);

// Rows with `tokens` ([rows]) at this place.
Tensor with_tokens(const Tensor& sequences, const Tensor& tokens, const tiny::Dim& length);

// Sequences that ended, the best of each batch, and those that go on.
struct Beams {
  Tensor sequences;     // int32 [batch * beams, room]
  Tensor scores;        // float32 [batch, beams]: sums of logarithms of probabilities
  Tensor ended;         // int32 [batch, beams, room], the best first
  Tensor ended_scores;  // float32 [batch, beams], by length
  Tensor count;         // int32 [batch]: how many have ended; of the others what is said is any
  Tensor done;          // bool [batch]: nothing better can come

  Tensors list() const { return {sequences, scores, ended, ended_scores, count, done}; }
  static constexpr size_t kParts = 6;
  static Beams of(const Tensors& list) {
    return {list[0], list[1], list[2], list[3], list[4], list[5]};
  }
};

struct BeamSearch {
  SearchRules rules;
  int64_t beams = 1;
  bool early_stopping = false;
  Tensor length_penalty;  // one element, or none: 1
};

// Before the first token: `prompt` [batch, length] in rows of `room`, each as many times as there
// are beams.
Beams first_beams(const Call& c, const BeamSearch& search, const Tensor& prompt, int64_t room);

struct BeamStep {
  Beams beams;
  Tensor rows;        // int64 [batch * beams]: which each was before
  Tensor candidates;  // float32 [batch, beams, vocabulary]: the scores of all that could come
};
// With one token more, of logits [batch * beams, vocabulary].
BeamStep next_beams(const Call& c, const BeamSearch& search, const Beams& now, const Tensor& logits,
                    const tiny::Dim& length, bool is_first);

// The best of all when the search ends with rows of this length (int64, one element).
struct FoundSequences {
  Tensor sequences;  // int32 [batch, returned, room]
  Tensor scores;     // float32 [batch, returned]
};
FoundSequences found_sequences(const Call& c, const BeamSearch& search, const Beams& last,
                               const Tensor& length, int64_t returned);

}  // namespace tiny::onnx
