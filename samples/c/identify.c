/* identify - names the type of files with Magika's network.

     identify MODEL_DIR FILE...

   MODEL_DIR holds model.onnx and config.min.json, as the Python package `magika` ships them. Prints
   one line `PATH: LABEL` per file, the label of the package's default mode.  Exit status: 0 done,
   1 the model or its configuration cannot be used, 2 wrong usage. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tiny.h>
#include <unistd.h>

/* The labels that mean text: what is left of them when the network is not sure is "txt". */
static const char kTextLabels[] =
    " aidl appleplist asm asp autohotkey autoit awk batch bazel bib c clojure cmake cobol"
    " coffeescript cpp cs csproj css csv dart diff dm dockerfile dxf elixir eml erb erlang fortran"
    " gemfile gemspec gitattributes gitmodules go gradle groovy handlebars haskell hcl htaccess "
    "html"
    " ics ignorefile ini internetshortcut ipynb java javascript jinja json jsonl julia kotlin latex"
    " lisp lua m3u m4 makefile markdown matlab mht mum objectivec ocaml pascal pem perl php po"
    " powershell prolog proteindb proto python r randomtxt rdf rst rtf ruby rust scala scss sgml"
    " shell smali solidity sql srt stltext sum svg swift tcl textproto toml tsv twig txt typescript"
    " vba vcxproj verilog vhdl vtt vue winregistry xml yaml yara zig ";

/* ---- config.min.json: just enough of JSON ---- */

static const char* skip_space(const char* at) {
  return at + strspn(at, " \t\r\n,:");
}

/* The end of the value that begins at `at`, or NULL if the text ends before it does. */
static const char* skip_value(const char* at) {
  int depth = 0;
  do {
    at = skip_space(at);
    if (*at == '\0') return NULL;
    if (*at == '"') {
      for (++at; *at != '"'; ++at) {
        if (*at == '\\') ++at;
        if (*at == '\0') return NULL;
      }
      ++at;
    } else if (*at == '{' || *at == '[') {
      ++depth, ++at;
    } else if (*at == '}' || *at == ']') {
      --depth, ++at;
    } else {
      at += strcspn(at, " \t\r\n,:]}");
    }
  } while (depth > 0);
  return at;
}

/* The value of a key of the object that begins at `object`, or NULL. */
static const char* member(const char* object, const char* key) {
  const size_t length = strlen(key);
  const char* at = object;
  if (at == NULL || *at != '{') return NULL;
  for (at = skip_space(at + 1); *at == '"'; at = skip_space(at)) {
    const char* value = skip_value(at);
    if (value == NULL) return NULL;
    const int found = strncmp(at + 1, key, length) == 0 && at[1 + length] == '"';
    value = skip_space(value);
    if (found) return value;
    at = skip_value(value);
    if (at == NULL) return NULL;
  }
  return NULL;
}

/* A copy of the string that begins at `at`, or NULL if none does. */
static char* string_at(const char* at) {
  const char* end = at != NULL && *at == '"' ? skip_value(at) : NULL;
  if (end == NULL || end - at < 2) return NULL;
  char* copy = malloc((size_t)(end - at));
  if (copy == NULL) return NULL;
  memcpy(copy, at + 1, (size_t)(end - at - 2));
  copy[end - at - 2] = '\0';
  return copy;
}

/* ---- The configuration ---- */

typedef struct {
  size_t beg_size, end_size, block_size, min_size;
  int32_t padding;
  char** labels; /* what the network's outputs mean */
  double* thresholds;
  char** overwrites; /* what is printed instead of the label; NULL: the label */
  size_t label_count;
} Config;

static int fail(const char* what, const char* why) {
  fprintf(stderr, "identify: %s: %s\n", what, why);
  return 1;
}

/* The whole file as text, or NULL. */
static char* read_text(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char* text = NULL;
  size_t size = 0, capacity = 0;
  for (;;) {
    if (size + 4096 >= capacity) {
      capacity = 2 * capacity + 8192;
      char* grown = realloc(text, capacity);
      if (grown == NULL) break;
      text = grown;
    }
    const size_t got = fread(text + size, 1, 4096, file);
    size += got;
    if (got == 0) break;
  }
  if (text != NULL) text[size] = '\0';
  fclose(file);
  return text;
}

static int read_size(const char* config, const char* key, size_t* out) {
  const char* value = member(config, key);
  char* end = NULL;
  if (value == NULL) return 1;
  const long long number = strtoll(value, &end, 10);
  if (end == value || number < 0 || number > 1 << 20) return 1;
  *out = (size_t)number;
  return 0;
}

static int read_labels(Config* config, const char* text) {
  const char* at = member(text, "target_labels_space");
  const char* thresholds = member(text, "thresholds");
  const char* overwrites = member(text, "overwrite_map");
  const char* medium = member(text, "medium_confidence_threshold");
  if (at == NULL || *at != '[' || medium == NULL) return 1;
  for (at = skip_space(at + 1); *at == '"'; at = skip_space(skip_value(at))) {
    const size_t count = config->label_count + 1;
    char** labels = realloc(config->labels, count * sizeof *labels);
    if (labels != NULL) config->labels = labels;
    double* limits = realloc(config->thresholds, count * sizeof *limits);
    if (limits != NULL) config->thresholds = limits;
    char** others = realloc(config->overwrites, count * sizeof *others);
    if (others != NULL) config->overwrites = others;
    char* label = string_at(at);
    if (labels == NULL || limits == NULL || others == NULL || label == NULL) {
      free(label);
      return 1;
    }
    const char* threshold = member(thresholds, label);
    labels[count - 1] = label;
    limits[count - 1] = strtod(threshold != NULL ? threshold : medium, NULL);
    others[count - 1] = string_at(member(overwrites, label));
    config->label_count = count;
  }
  return config->label_count == 0;
}

static void free_config(Config* config) {
  for (size_t i = 0; i < config->label_count; ++i) {
    free(config->labels[i]);
    free(config->overwrites[i]);
  }
  free(config->labels);
  free(config->thresholds);
  free(config->overwrites);
}

static int read_config(const char* path, Config* config) {
  size_t padding = 0, mid_size = 0;
  char* text = read_text(path);
  if (text == NULL) return fail(path, strerror(errno));
  const char* root = skip_space(text);
  const int wrong = skip_value(root) == NULL || read_size(root, "beg_size", &config->beg_size) ||
                    read_size(root, "mid_size", &mid_size) ||
                    read_size(root, "end_size", &config->end_size) ||
                    read_size(root, "block_size", &config->block_size) ||
                    read_size(root, "min_file_size_for_dl", &config->min_size) ||
                    read_size(root, "padding_token", &padding) || read_labels(config, root);
  free(text);
  config->padding = (int32_t)padding;
  if (wrong) return fail(path, "not the configuration of a Magika model");
  if (mid_size != 0 || config->min_size == 0 || config->beg_size < config->min_size ||
      config->block_size < config->beg_size || config->block_size < config->end_size)
    return fail(path, "features that this program does not make");
  return 0;
}

/* ---- From bytes to features ---- */

static int is_space(unsigned char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static int is_utf8(const unsigned char* at, size_t size) {
  const unsigned char* end = at + size;
  while (at < end) {
    const unsigned lead = *at++;
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || end - at < more) return 0;
    /* The second byte rules out long forms, surrogates and what lies beyond U+10FFFF. */
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (*at < low || *at > high) return 0;
    for (int i = 1; i < more; ++i)
      if (at[i] < 0x80 || at[i] > 0xBF) return 0;
    at += more;
  }
  return 1;
}

/* The first `beg_size` bytes after leading white space, the last `end_size` before trailing one;
   padding fills what is missing, at the far end of each. */
static void make_features(const Config* config, const unsigned char* head,
                          const unsigned char* tail, size_t size, int32_t* features) {
  size_t first = 0, last = size;
  while (first < size && is_space(head[first])) ++first;
  while (last > 0 && is_space(tail[last - 1])) --last;
  int32_t* end = features + config->beg_size;
  for (size_t i = 0; i < config->beg_size; ++i)
    features[i] = first + i < size ? head[first + i] : config->padding;
  for (size_t i = 0; i < config->end_size; ++i) {
    const size_t back = config->end_size - i;
    end[i] = back <= last ? tail[last - back] : config->padding;
  }
}

/* ---- The network ---- */

typedef struct {
  Config config;
  tiny_context* context;
  tiny_model* model;
  tiny_program* program;
  tiny_run* run;
  int32_t* features;
  float* scores;
  unsigned char *head, *tail;
} Identifier;

/* Loads the network and compiles it for one file at a time. */
static int open_network(Identifier* self, const char* path) {
  const int64_t dims[2] = {1, (int64_t)(self->config.beg_size + self->config.end_size)};
  int64_t shape[2] = {0, 0};
  size_t rank = 0;
  if (tiny_context_create(NULL, &self->context) != TINY_OK ||
      tiny_model_load(self->context, path, &self->model) != TINY_OK ||
      tiny_model_compile(self->model, dims, 2, &self->program) != TINY_OK ||
      tiny_run_create(self->program, &self->run) != TINY_OK ||
      tiny_run_output_shape(self->run, 0, shape, 2, &rank) != TINY_OK)
    return fail(path, tiny_last_error());
  if (rank != 2 || shape[0] != 1 || shape[1] != (int64_t)self->config.label_count)
    return fail(path, "its output does not fit the labels of the configuration");
  return 0;
}

static void close_identifier(Identifier* self) {
  tiny_run_release(self->run);
  tiny_program_release(self->program);
  tiny_model_release(self->model);
  tiny_context_release(self->context);
  free_config(&self->config);
  free(self->features);
  free(self->scores);
  free(self->head);
  free(self->tail);
}

static int open_identifier(Identifier* self, const char* folder) {
  const size_t room = strlen(folder) + 32;
  char* path = malloc(room);
  if (path == NULL) return fail(folder, "out of memory");
  snprintf(path, room, "%s/config.min.json", folder);
  int wrong = read_config(path, &self->config);
  if (!wrong) {
    const Config* config = &self->config;
    self->features = calloc(config->beg_size + config->end_size, sizeof *self->features);
    self->scores = calloc(config->label_count, sizeof *self->scores);
    self->head = malloc(config->block_size);
    self->tail = malloc(config->block_size);
    if (!self->features || !self->scores || !self->head || !self->tail)
      wrong = fail(folder, "out of memory");
  }
  if (!wrong) {
    snprintf(path, room, "%s/model.onnx", folder);
    wrong = open_network(self, path);
  }
  free(path);
  return wrong;
}

/* The label of the features, or NULL if the network cannot be run. */
static const char* ask_network(Identifier* self) {
  const Config* config = &self->config;
  const size_t width = config->beg_size + config->end_size;
  const int64_t dims[2] = {1, (int64_t)width};
  tiny_tensor* input = NULL;
  tiny_status status = tiny_tensor_from_data(self->context, TINY_INT32, dims, 2, self->features,
                                             width * sizeof *self->features, &input);
  if (status == TINY_OK) status = tiny_run_set_input(self->run, 0, input);
  if (status == TINY_OK) status = tiny_run_execute(self->run);
  if (status == TINY_OK)
    status = tiny_run_read_output(self->run, 0, self->scores,
                                  config->label_count * sizeof *self->scores);
  if (status != TINY_OK) fail("the network", tiny_last_error());
  tiny_tensor_release(input);
  if (status != TINY_OK) return NULL;

  size_t best = 0;
  for (size_t i = 1; i < config->label_count; ++i)
    if (self->scores[i] > self->scores[best]) best = i;
  const char* label = config->overwrites[best] ? config->overwrites[best] : config->labels[best];
  if ((double)self->scores[best] >= config->thresholds[best]) return label;
  char word[64];
  snprintf(word, sizeof word, " %s ", label);
  return strstr(kTextLabels, word) != NULL ? "txt" : "unknown";
}

/* ---- Files ---- */

/* Reads `size` bytes at `offset`; 0 if all of them could be had. */
static int read_at(FILE* file, long offset, unsigned char* out, size_t size) {
  return fseek(file, offset, SEEK_SET) != 0 || fread(out, 1, size, file) != size;
}

static const char* identify_content(Identifier* self, FILE* file) {
  const Config* config = &self->config;
  if (fseek(file, 0, SEEK_END) != 0) return "permission_error";
  const long size = ftell(file);
  if (size < 0) return "permission_error";
  if (size == 0) return "empty";
  const size_t block = (size_t)size < config->block_size ? (size_t)size : config->block_size;
  if (read_at(file, 0, self->head, block) || read_at(file, size - (long)block, self->tail, block))
    return "permission_error";
  /* Too little for the network: fewer bytes than it wants, or nothing but white space. */
  int few = (size_t)size < config->min_size;
  if (!few) {
    make_features(config, self->head, self->tail, block, self->features);
    few = self->features[config->min_size - 1] == config->padding;
  }
  if (few) return is_utf8(self->head, block) ? "txt" : "unknown";
  return ask_network(self);
}

/* The label of what is at `path`, links followed; NULL if the network cannot be run. */
static const char* identify(Identifier* self, const char* path) {
  struct stat found;
  if (stat(path, &found) != 0) return errno == EACCES ? "permission_error" : "file_not_found_error";
  if (S_ISDIR(found.st_mode)) return "directory";
  if (!S_ISREG(found.st_mode)) return "unknown";
  FILE* file = access(path, R_OK) == 0 ? fopen(path, "rb") : NULL;
  if (file == NULL) return "permission_error";
  const char* label = identify_content(self, file);
  fclose(file);
  return label;
}

int main(int argc, char** argv) {
  Identifier identifier = {0};
  if (argc < 3) {
    fputs("usage: identify MODEL_DIR FILE...\n", stderr);
    return 2;
  }
  int wrong = open_identifier(&identifier, argv[1]);
  for (int i = 2; i < argc && !wrong; ++i) {
    const char* label = identify(&identifier, argv[i]);
    if (label == NULL)
      wrong = 1;
    else
      printf("%s: %s\n", argv[i], label);
  }
  close_identifier(&identifier);
  return fflush(stdout) != 0 ? fail("standard output", strerror(errno)) : wrong;
}
