// The inputs of a model from the command line: files, a test data set, or synthesised values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "files.h"
#include "picture.h"
#include "session.h"

namespace tiny::cli {

struct InputFlags {
  std::vector<std::string> files;     // [NAME=]FILE[:MEMBER]
  std::vector<std::string> pictures;  // of the first input that no file is for, as a batch
  std::string data;                   // the folder of a test data set
  std::string synth;                  // "" : a missing input is an error
  PictureFlags picture;
};

struct Input {
  Array array;
  std::string source;                  // a path, or the kind of synthesis
  std::vector<PictureSteps> pictures;  // which became the array, if any did
};

// One input for each of the model's, in its order.
std::vector<Input> read_inputs(const Context& context, const LoadedModel& model,
                               const InputFlags& flags, const CommonFlags& common);
// The same for each run: several for more pictures than the model takes at once.
std::vector<std::vector<Input>> read_inputs_of_runs(const Context& context,
                                                    const LoadedModel& model,
                                                    const InputFlags& flags,
                                                    const CommonFlags& common);
// The shape of an input as far as the model and the flags say it: -1 is still free.
std::vector<int64_t> known_shape(const LoadedModel& model, const CommonFlags& common, size_t input);
// Wrong usage if --dim or --shape names what the model has not, or does not fit it.
void check_shapes(const LoadedModel& model, const CommonFlags& common);
// "a.png and 9 more", of so many files.
std::string first_and_more(const std::string& first, size_t count);
// They stay those of the inputs.
std::vector<Array*> arrays_of(std::vector<Input>& inputs);

struct FileArgument {
  std::string name;  // of an input or output; may be empty
  std::string path;
  std::string member;  // of an archive; may be empty
};
// [NAME=]FILE[:MEMBER], split at the last '=' that leaves an existing file; no name if none does.
FileArgument split_file(const std::string& text);

// DIR/input_0.pb, DIR/input_1.pb, .. while they exist; the same for "output".
std::vector<std::string> data_files(const std::string& folder, const std::string& kind);

// Fills an array by a seeded generator, the same on every machine: uniform is [0, 1) for floats,
// the whole range for 8-bit integers, 0 or 1 for others; arange counts row-major from 0.
void synthesise(Array& array, const std::string& kind, uint64_t seed, size_t index);

}  // namespace tiny::cli
