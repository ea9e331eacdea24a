#include "arguments.h"

#include <charconv>

namespace tiny::cli {
namespace {

constexpr const char* kExitCodes = R"(
Exit codes: 0 done; 1 a comparison or test case failed; 2 wrong usage; 3 invalid model;
4 unsupported operator, dtype, opset or device; 5 input or output file; 6 limit, memory or time;
70 internal error; 130 interrupted.)";

// A number that is at least `low`; CLI11's own words for it print the largest double.
CLI::Validator at_least(double low) {
  const std::string text = Json(low).text(), shown = text.substr(0, text.find('.'));
  return CLI::Validator(
      [low, shown](std::string& value) {
        double number = 0;
        const bool fits = CLI::detail::lexical_cast(value, number) && number >= low;
        return fits ? std::string() : "at least " + shown + " is wanted, not " + value;
      },
      ">=" + shown);
}

// A whole number in [low, high], which CLI11 would wrap or saturate if it is too large for its
// type.
CLI::Validator whole(uint64_t low, uint64_t high) {
  const std::string shown = high == UINT64_MAX || high == INT64_MAX
                                ? "at least " + std::to_string(low)
                                : std::to_string(low) + " to " + std::to_string(high);
  return CLI::Validator(
      [low, high, shown](std::string& value) {
        uint64_t number = 0;
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), number);
        const bool fits = error == std::errc() && end == value.data() + value.size() &&
                          number >= low && number <= high;
        return fits ? std::string() : "a whole number, " + shown + ", is wanted, not " + value;
      },
      "WHOLE");
}

CLI::Option* add_list(CLI::App& app, const char* flag, std::vector<std::string>& values,
                      const char* help) {
  // One value for each time the flag is given: what follows is the model.
  return app.add_option(flag, values, help)->expected(1)->take_all()->allow_extra_args(false);
}

void add_common(CLI::App& app, CommonFlags& flags) {
  app.add_flag("--json", flags.json, "Print one JSON object on stdout, nothing else");
  app.add_flag("-q,--quiet", flags.quiet, "No warnings and no progress on stderr");
  app.add_flag("-v,--verbose", flags.verbose, "Tell more on stderr; -vv and so on tell still more");
  app.add_option("--device", flags.device,
                 "cpu, cuda, opencl, interp, far, c or null, or one with its number, cuda:1; hip, "
                 "metal or wgsl write kernels as text")
      ->group("Engine");
  app.add_option("--isa", flags.isa, "auto, avx512 or avx2")
      ->check(CLI::IsMember({"auto", "avx512", "avx2"}))
      ->group("Engine");
  add_list(app, "--option", flags.options, "KEY=VALUE of the engine; may be repeated")
      ->group("Engine");
  app.add_option("--limit-memory", flags.limit_memory, "Bytes that tensors may take")
      ->check(whole(0, INT64_MAX))
      ->group("Engine");
  app.add_flag("--no-cache", flags.no_cache, "Neither read nor write the disk cache")
      ->group("Engine");
  add_list(app, "--dim", flags.dims,
           "NAME=N, the size of a free dimension; may be repeated; of export also NAME=1..64, "
           "which each run chooses")
      ->group("Inputs");
  add_list(app, "--shape", flags.shapes, "INPUT=1x3x224x224; may be repeated")->group("Inputs");
  app.add_option("--seed", flags.seed, "Of synthesised inputs (0)")
      ->check(whole(0, UINT64_MAX))
      ->group("Inputs");
}

// The one of the common flags that bench takes as a list.
void add_threads(CLI::App& app, CommonFlags& flags) {
  app.add_option("--threads", flags.threads, "Number of threads; 0: as many as there are cores")
      ->check(whole(0, INT64_MAX))
      ->group("Engine");
}

void add_inputs(CLI::App& app, InputFlags& flags, Arguments& all) {
  add_list(app, "--input", flags.files,
           "[NAME=]FILE: .npy .npz .safetensors .pb .bin .png .jpg .bmp .ppm; without NAME in the "
           "model's "
           "order; FILE.npz:MEMBER and FILE.safetensors:MEMBER take one array of several; may be "
           "repeated")
      ->group("Inputs");
  app.add_option("--data", flags.data,
                 "A test_data_set folder: input_*.pb, compared with output_*.pb")
      ->group("Inputs");
  app.add_option("--synth", flags.synth, "Fill inputs that are not given")
      ->check(CLI::IsMember({"uniform", "normal", "arange", "zeros", "ones"}))
      ->group("Inputs");
  app.add_option("--preset", flags.picture.preset,
                 "imagenet: shorter side to 256, the middle 224x224 (or as the input is), its mean "
                 "and std; yolo: letterbox of 640x640 (or as the input is), 1/255; the flags below "
                 "go before it")
      ->check(CLI::IsMember({"imagenet", "yolo"}))
      ->group("Pictures");
  app.add_option("--layout", all.layout, "Of pictures: nchw (default) or nhwc")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->group("Pictures");
  app.add_option("--scale", all.scale, "Factor of pixels 0..255 (1/255; 1 for integer inputs)")
      ->group("Pictures");
  app.add_option("--mean", flags.picture.mean, "R,G,B taken away after scaling (0)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Pictures");
  app.add_option("--std", flags.picture.std, "R,G,B divided by after that (1)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Pictures");
  app.add_option("--fit", all.fit,
                 "stretch (default), crop the middle out, or letterbox: all of it within grey")
      ->check(CLI::IsMember({"stretch", "crop", "letterbox"}))
      ->group("Pictures");
  app.add_option("--resize", flags.picture.resize,
                 "With --fit crop: the shorter side before the middle is cut out")
      ->check(whole(1, 1 << 15))
      ->group("Pictures");
}

void add_tolerance(CLI::App& app, Tolerance& tolerance) {
  app.add_option("--rtol", tolerance.relative, "Relative tolerance (1e-3)")->check(at_least(0));
  app.add_option("--atol", tolerance.absolute, "Absolute tolerance (1e-7)")->check(at_least(0));
}

void add_run(CLI::App& app, Arguments& all) {
  RunFlags& flags = all.run;
  app.add_option("MODEL", flags.model, "An ONNX file")->required();
  app.add_option("PICTURE", flags.input.pictures,
                 "Pictures, as many at once as the model takes, for the first input that no "
                 "--input is for; a table has the "
                 "--top K classes (1) of each")
      ->type_name("");
  add_inputs(app, flags.input, all);
  add_list(app, "--expect", flags.expect,
           "[NAME=]FILE[:MEMBER] that an output must equal; may be repeated");
  add_tolerance(app, flags.tolerance);
  add_list(app, "--outputs", flags.outputs, "NAME,.. of the outputs to report; all without it");
  app.add_option(
      "--save", flags.save,
      "Write the outputs: DIR/, FILE.npz, FILE.safetensors, or one to FILE.npy or FILE.pb");
  app.add_option(
         "--top", flags.top,
         "Show the K largest elements of each output, with percentages if it is a vector of "
         "probabilities, or of other numbers, of which it takes the softmax")
      ->check(whole(0, INT64_MAX));
  app.add_option("--labels", flags.labels, "A file with the label of index i in line i");
  app.add_option("--print", flags.print, "none, summary or full")
      ->check(CLI::IsMember({"none", "summary", "full"}));
  app.add_flag("--times", flags.times, "Show times, kernels and memory (JSON always has them)");
  add_threads(app, all.common);
  add_common(app, all.common);
}

void add_info(CLI::App& app, Arguments& all) {
  app.add_option("MODEL", all.info.model, "An ONNX file")->required();
  app.add_flag("--check", all.info.check, "Exit with 4 if anything is unsupported");
  add_threads(app, all.common);
  add_common(app, all.common);
}

void add_bench(CLI::App& app, Arguments& all) {
  BenchFlags& flags = all.bench;
  app.add_option("MODEL", flags.model, "An ONNX file")->required();
  auto* duration =
      app.add_option("--duration", flags.duration, "Seconds to measure (3)")->check(at_least(0));
  app.add_option("--runs", flags.runs,
                 "Number of runs, instead of a duration; of one, no figures that want more runs")
      ->check(whole(1, INT64_MAX))
      ->excludes(duration);
  app.add_option("--warmup", flags.warmup, "Runs before that (5); with 0 the first run counts")
      ->check(whole(0, INT64_MAX));
  app.add_option("--threads", flags.threads, "Numbers of threads to measure with: 1,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole(1, INT64_MAX))
      ->group("Engine");
  app.add_option("--concurrency", flags.concurrency, "Runs at the same time (1)")
      ->check(whole(1, 1024));
  app.add_option("--cold", flags.cold, "Time N new processes as well")->check(whole(0, INT64_MAX));
  app.add_flag("--profile", flags.profile,
               "Show every kernel, the slowest first, with the nodes that it computes");
  app.add_option("--trace", flags.trace,
                 "Write a trace of the phases and of one run's kernels, which Perfetto opens; of "
                 "several numbers of threads the last");
  app.add_flag("--samples", flags.samples, "List the time of every run in the JSON");
  app.add_option("--one-run", flags.one_run)->group("");
  add_inputs(app, flags.input, all);
  add_common(app, all.common);
}

void add_test(CLI::App& app, Arguments& all) {
  TestFlags& flags = all.test;
  app.add_option("DIR", flags.folders, "Folders in ONNX's test layout")->required();
  app.add_option("--filter", flags.filter, "Only cases whose name has this regular expression");
  app.add_option("--exclude", flags.exclude, "No cases whose name has this regular expression");
  app.add_option("--known", flags.known, "A file of names, one a line, that may fail");
  app.add_option("--jobs", flags.jobs, "Processes at the same time (1)")->check(whole(1, 1024));
  app.add_option("--case-timeout", flags.case_timeout, "Seconds for one case (60)")
      ->check(at_least(0));
  app.add_option("--one-case", flags.one_case)->group("");
  add_tolerance(app, flags.tolerance);
  add_threads(app, all.common);
  add_common(app, all.common);
}

void add_export(CLI::App& app, Arguments& all) {
  ExportFlags& flags = all.exported;
  app.add_option("MODEL", flags.model, "An ONNX file")->required();
  app.add_option("--c", flags.folder,
                 "The folder that gets NAME.c, NAME.h and NAME.weights; made unless it is there")
      ->required();
  app.add_option(
      "--name", flags.name,
      "Of the files and of their functions: letters, digits and _ (as the model's file)");
  add_threads(app, all.common);
  add_common(app, all.common);
}

void add_devices(CLI::App& app, Arguments& all) {
  add_threads(app, all.common);
  add_common(app, all.common);
}

struct Command {
  const char* name;
  const char* help;
  void (*add_flags)(CLI::App&, Arguments&);
  const char* examples;
};
constexpr Command kCommands[] = {
    {"run", "Run a model once; show, compare and save its outputs", add_run,
     R"(  tiny run resnet.onnx --input cat.png --preset imagenet --top 5 --labels imagenet.txt
  tiny run resnet.onnx photos/*.jpg --preset imagenet --labels imagenet.txt
  tiny run yolo.onnx --input images=street.jpg --preset yolo --save boxes.npy
  tiny run model.onnx --input x=x.npy --expect y=y.npy --json
  tiny run model.onnx --input x=batch.safetensors:images.0 --times
  tiny run model.onnx --data test_data_set_0
  tiny run model.onnx --synth uniform --dim batch=4 --save out/
)"},
    {"info", "Show what a model holds and whether it can be run", add_info,
     R"(  tiny info model.onnx
  tiny info model.onnx --check && echo supported
)"},
    {"bench", "Measure how long a model takes", add_bench,
     R"(  tiny bench model.onnx --threads 1,2 --dim N=8
  tiny bench model.onnx --profile --runs 100
  tiny bench model.onnx --trace trace.json
  tiny bench model.onnx --cold 5 --concurrency 4 --json
)"},
    {"test", "Run every model.onnx below folders on its test_data_set_*", add_test,
     R"(  tiny test onnx/backend/test/data/node --jobs 2
  tiny test cases --filter '^conv' --known may_fail.txt
)"},
    {"export", "Write a model as C that needs no library", add_export,
     R"(  tiny export mnist.onnx --c mnist/
  tiny export resnet.onnx --c out/ --name resnet --dim batch=1..64 --isa avx2
)"},
    {"devices", "List the devices of this build and machine", add_devices,
     R"(  tiny devices
  tiny devices --json
)"},
};

}  // namespace

// The others are known by name: telling CLI11 of all flags would take a tenth of a short run.
void add_commands(CLI::App& root, Arguments& all, const std::string& chosen) {
  for (const Command& command : kCommands) {
    CLI::App& app = *root.add_subcommand(command.name, command.help);
    if (chosen != command.name) continue;
    command.add_flags(app, all);
    app.footer(std::string("\nExamples:\n") + command.examples);
  }
  std::string examples;  // the first of each
  for (const Command& command : kCommands) {
    const std::string_view all_of_it = command.examples;
    examples += all_of_it.substr(0, all_of_it.find('\n') + 1);
  }
  root.footer("\nExamples, of which tiny COMMAND --help shows more:\n" + examples + kExitCodes);
}

void finish_inputs(const CLI::App& app, InputFlags& flags, const Arguments& all) {
  flags.picture.channels_last = all.layout == "nhwc";
  constexpr std::pair<std::string_view, Fit> kFits[] = {
      {"stretch", Fit::Stretch}, {"crop", Fit::Crop}, {"letterbox", Fit::Letterbox}};
  for (const auto& [name, fit] : kFits)
    if (all.fit == name) flags.picture.fit = fit;
  if (app.count("--scale") > 0) flags.picture.scale = all.scale;
  for (const double divisor : flags.picture.std)
    if (divisor == 0) throw usage_failure("--std wants numbers other than 0");
}

}  // namespace tiny::cli
