// identify - names the type of files with Magika's network.
//
//   identify MODEL_DIR FILE...
//
// MODEL_DIR holds model.onnx and config.min.json, as the Python package `magika` ships them. Prints
// one line `PATH: LABEL` per file, the label of the package's default mode.  Exit status: 0 done, 1
// the model or its configuration cannot be used, 2 wrong usage.
#include <tiny.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<unsigned char>;

// The labels that mean text: what is left of them when the network is not sure is "txt".
constexpr std::string_view kTextLabels =
    " aidl appleplist asm asp autohotkey autoit awk batch bazel bib c clojure cmake cobol"
    " coffeescript cpp cs csproj css csv dart diff dm dockerfile dxf elixir eml erb erlang fortran"
    " gemfile gemspec gitattributes gitmodules go gradle groovy handlebars haskell hcl htaccess "
    "html"
    " ics ignorefile ini internetshortcut ipynb java javascript jinja json jsonl julia kotlin latex"
    " lisp lua m3u m4 makefile markdown matlab mht mum objectivec ocaml pascal pem perl php po"
    " powershell prolog proteindb proto python r randomtxt rdf rst rtf ruby rust scala scss sgml"
    " shell smali solidity sql srt stltext sum svg swift tcl textproto toml tsv twig txt typescript"
    " vba vcxproj verilog vhdl vtt vue winregistry xml yaml yara zig ";

// The values of config.min.json by their path: "beg_size", "thresholds.crt", "labels" in a list.
class Config {
 public:
  explicit Config(std::string text) : text_(std::move(text)) {
    read("");
    beg_size = size("beg_size");
    end_size = size("end_size");
    block_size = size("block_size");
    min_size = size("min_file_size_for_dl");
    padding = static_cast<int32_t>(size("padding_token"));
    if (size("mid_size") != 0 || min_size == 0 || beg_size < min_size || block_size < beg_size ||
        block_size < end_size || labels.empty())
      throw std::runtime_error("features that this program does not make");
  }

  double threshold(const std::string& label) const {
    const auto own = values_.find("thresholds." + label);
    return std::stod(own != values_.end() ? own->second : at("medium_confidence_threshold"));
  }
  std::string output(const std::string& label) const {
    const auto other = values_.find("overwrite_map." + label);
    return other != values_.end() ? other->second : label;
  }

  size_t beg_size, end_size, block_size, min_size;
  int32_t padding;
  std::vector<std::string> labels;

 private:
  const std::string& at(const std::string& path) const {
    const auto found = values_.find(path);
    if (found == values_.end()) throw std::runtime_error("no " + path);
    return found->second;
  }

  size_t size(const std::string& path) const {
    const std::string& text = at(path);
    size_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
    if (end != text.data() + text.size() || value > 1 << 20)
      throw std::runtime_error("a strange " + path);
    return value;
  }

  char next() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n,:", at_), text_.size());
    if (at_ == text_.size()) throw std::runtime_error("it ends too early");
    return text_[at_];
  }

  std::string word() {
    if (next() != '"') {
      const size_t end = std::min(text_.find_first_of(" \t\r\n,:]}", at_), text_.size());
      const std::string out = text_.substr(at_, end - at_);
      at_ = end;
      return out;
    }
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_];
    }
    ++at_;
    return out;
  }

  // One value; objects two deep are all there are.
  void read(const std::string& path) {
    const char first = next();
    if (first == '[') {
      for (++at_; next() != ']';) labels.push_back(word());
      ++at_;
    } else if (first == '{' && std::count(path.begin(), path.end(), '.') < 2) {
      for (++at_; next() != '}';) {
        const std::string key = word();
        read(path.empty() ? key : path + "." + key);
      }
      ++at_;
    } else {
      values_[path] = word();
    }
  }

  std::string text_;
  size_t at_ = 0;
  std::map<std::string, std::string> values_;
};

template <auto release>
struct Release {
  void operator()(auto* handle) const { release(handle); }
};
template <typename T, auto release>
using Handle = std::unique_ptr<T, Release<release>>;

void check(tiny_status status) {
  if (status != TINY_OK) throw std::runtime_error(tiny_last_error());
}

// The network, compiled for one file at a time.
class Network {
 public:
  Network(const std::string& path, const Config& config)
      : width_(static_cast<int64_t>(config.beg_size + config.end_size)),
        scores_(config.labels.size()) {
    const int64_t dims[] = {1, width_};
    tiny_context* context = nullptr;
    check(tiny_context_create(nullptr, &context));
    context_.reset(context);
    tiny_model* model = nullptr;
    check(tiny_model_load(context, path.c_str(), &model));
    model_.reset(model);
    tiny_program* program = nullptr;
    check(tiny_model_compile(model, dims, 2, &program));
    program_.reset(program);
    tiny_run* run = nullptr;
    check(tiny_run_create(program, &run));
    run_.reset(run);
  }

  // A score for each label.
  const std::vector<float>& ask(const std::vector<int32_t>& features) {
    const int64_t dims[] = {1, width_};
    tiny_tensor* made = nullptr;
    check(tiny_tensor_from_data(context_.get(), TINY_INT32, dims, 2, features.data(),
                                features.size() * sizeof(int32_t), &made));
    const Handle<tiny_tensor, tiny_tensor_release> input(made);
    check(tiny_run_set_input(run_.get(), 0, input.get()));
    check(tiny_run_execute(run_.get()));
    check(tiny_run_read_output(run_.get(), 0, scores_.data(), scores_.size() * sizeof(float)));
    return scores_;
  }

 private:
  int64_t width_;
  std::vector<float> scores_;
  Handle<tiny_context, tiny_context_release> context_;
  Handle<tiny_model, tiny_model_release> model_;
  Handle<tiny_program, tiny_program_release> program_;
  Handle<tiny_run, tiny_run_release> run_;
};

bool is_space(unsigned char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool is_utf8(const Bytes& text) {
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = text[i++];
    if (lead < 0x80) continue;
    const size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - i < more) return false;
    // The second byte rules out long forms, surrogates and what lies beyond U+10FFFF.
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (text[i] < low || text[i] > high) return false;
    for (size_t k = 1; k < more; ++k)
      if ((text[i + k] & 0xC0) != 0x80) return false;
    i += more;
  }
  return true;
}

// The first bytes after leading white space, the last before trailing one, padded.
std::vector<int32_t> make_features(const Config& config, const Bytes& head, const Bytes& tail) {
  const auto begin = std::find_if_not(head.begin(), head.end(), is_space);
  const auto end = std::find_if_not(tail.rbegin(), tail.rend(), is_space);
  const auto left = std::min<size_t>(config.beg_size, static_cast<size_t>(head.end() - begin));
  const auto right = std::min<size_t>(config.end_size, static_cast<size_t>(tail.rend() - end));
  std::vector<int32_t> features(config.beg_size + config.end_size, config.padding);
  std::copy_n(begin, left, features.begin());
  std::copy_n(end, right, features.rbegin());
  return features;
}

class Identifier {
 public:
  explicit Identifier(const std::string& folder)
      : config_(read_text(folder + "/config.min.json")),
        network_(folder + "/model.onnx", config_) {}

  // The label of what is at `path`, links followed.
  std::string label(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error == std::errc::permission_denied) return "permission_error";
    if (!fs::exists(status)) return "file_not_found_error";
    if (fs::is_directory(status)) return "directory";
    if (!fs::is_regular_file(status)) return "unknown";
    std::ifstream file(path, std::ios::binary);
    if (access(path.c_str(), R_OK) != 0 || !file) return "permission_error";
    return label_of_content(file);
  }

 private:
  static std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::string label_of_content(std::ifstream& file) {
    file.seekg(0, std::ios::end);
    const auto size = static_cast<size_t>(file.tellg());
    if (size == 0) return "empty";
    Bytes head(std::min(size, config_.block_size)), tail(head.size());
    const auto block = static_cast<std::streamsize>(head.size());
    file.seekg(0).read(reinterpret_cast<char*>(head.data()), block);
    file.seekg(-block, std::ios::end).read(reinterpret_cast<char*>(tail.data()), block);
    if (!file) return "permission_error";
    const std::vector<int32_t> features = make_features(config_, head, tail);
    // Too little for the network: fewer bytes than it wants, or nothing but white space.
    if (size < config_.min_size || features[config_.min_size - 1] == config_.padding)
      return is_utf8(head) ? "txt" : "unknown";
    const std::vector<float>& scores = network_.ask(features);
    const auto best = std::max_element(scores.begin(), scores.end());
    const std::string& label = config_.labels[static_cast<size_t>(best - scores.begin())];
    const std::string output = config_.output(label);
    if (static_cast<double>(*best) >= config_.threshold(label)) return output;
    const bool text = kTextLabels.find(" " + output + " ") != std::string_view::npos;
    return text ? "txt" : "unknown";
  }

  Config config_;
  Network network_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: identify MODEL_DIR FILE...\n";
    return 2;
  }
  try {
    Identifier identifier(argv[1]);
    for (int i = 2; i < argc; ++i)
      std::cout << argv[i] << ": " << identifier.label(argv[i]) << "\n";
  } catch (const std::exception& error) {
    std::cerr << "identify: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
