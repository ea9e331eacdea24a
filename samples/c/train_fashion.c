/* train_fashion - a convolutional network learns to tell clothes apart.

     train_fashion DATA_DIR OUT_DIR [EPOCHS [PICTURES]]

   DATA_DIR holds Fashion-MNIST's four files (Debian's package dataset-fashion-mnist puts them in
   /usr/share/datasets/fashion-mnist).  After each epoch OUT_DIR has checkpoint.safetensors, from
   which the next call goes on, fashion.onnx, which any runtime of ONNX runs, and loss.svg.
   PICTURES: only so many of the training set.  What is learnt is the same, bit for bit, with any
   number of threads.  Exit status: 0 done, 1 something failed, 2 wrong
   usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiny.h>

enum { kBatch = 100, kSide = 28, kClasses = 10, kHandles = 256, kCurve = 4096 };

static void ok(tiny_status status) {
  if (status == TINY_OK) return;
  fprintf(stderr, "\ntrain_fashion: %s\n", tiny_last_error());
  exit(1);
}

/* Handles that graphs are built of, until `forget`. */
static tiny_tensor* handles[kHandles];
static size_t used;
static tiny_tensor** next_handle(void) {
  if (used == kHandles) exit(1);
  return &handles[used++];
}
static void forget(void) {
  while (used > 0) tiny_tensor_release(handles[--used]);
}
/* What a call makes; not as an argument of another. */
#define OP(function, ...) (ok(function(__VA_ARGS__, next_handle())), handles[used - 1])

static tiny_window* window(int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t k[] = {kernel, kernel}, s[] = {stride, stride}, p[] = {padding, padding};
  tiny_window* made;
  ok(tiny_window_create(2, &made));
  ok(tiny_window_set_kernel(made, k, 2));
  ok(tiny_window_set_strides(made, s, 2));
  ok(tiny_window_set_padding(made, p, p, 2));
  return made;
}

/* Pictures [count, 28, 28] of bytes; a row of ten numbers for each, the greatest for its class. */
static tiny_tensor* network(tiny_context* context, tiny_module* m, tiny_tensor* x, int64_t count) {
  tiny_window* const three = window(3, 1, 1);
  tiny_window* const two = window(2, 2, 0);
  const int64_t picture[] = {count, 1, kSide, kSide}, flat[] = {count, TINY_DIM_FREE};
  const char* const names[] = {"1", "2", "3"};
  const int64_t channels[] = {16, 32, 48};
  x = OP(tiny_cast, x, TINY_FLOAT32);
  tiny_tensor* const white = OP(tiny_scalar_float, context, 255);
  x = OP(tiny_binary, TINY_DIV, x, white);
  x = OP(tiny_reshape, x, picture, 4);
  for (int i = 0; i < 3; ++i) {
    char name[16];
    snprintf(name, sizeof name, "conv%s", names[i]);
    x = OP(tiny_module_conv, m, name, x, channels[i], three, TINY_FLAG_NO_BIAS);
    snprintf(name, sizeof name, "bn%s", names[i]);
    x = OP(tiny_module_batch_norm, m, name, x, 0.1, 1e-5, 0);
    x = OP(tiny_unary, TINY_RELU, x);
    x = OP(tiny_max_pool, x, two);
  }
  x = OP(tiny_reshape, x, flat, 2);
  x = OP(tiny_module_dropout, m, x, 0.2);
  tiny_window_release(three);
  tiny_window_release(two);
  return OP(tiny_module_linear, m, "fc", x, kClasses, 0);
}

static tiny_tensor* file(tiny_context* context, const char* folder, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s-ubyte.gz", folder, name);
  return OP(tiny_tensor_load, context, path);
}

/* Of all steps so far, as a line. */
static void draw(const float* losses, size_t count, const char* path) {
  FILE* const out = fopen(path, "w");
  if (!out) return;
  fprintf(out,
          "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 320'>"
          "<polyline fill='none' stroke='black' points='");
  for (size_t i = 0; i < count; ++i)
    fprintf(out, "%.1f,%.1f ", 640.0 * (double)i / (double)count, 310 - 100.0 * (double)losses[i]);
  fprintf(out, "'/></svg>\n");
  fclose(out);
}

/* The share of pictures that the network puts into their class. */
static double accuracy(tiny_run* run, tiny_tensor* pictures, tiny_tensor* labels) {
  tiny_tensor* const arrays[] = {pictures, labels};
  tiny_loader* loader;
  int64_t rows, right = 0, all = 0, some;
  ok(tiny_loader_create(arrays, 2, kBatch, 0, 2, TINY_FLAG_DROP_LAST, &loader));
  for (ok(tiny_loader_next(loader, &rows)); rows > 0; ok(tiny_loader_next(loader, &rows))) {
    for (size_t i = 0; i < 2; ++i) {
      tiny_tensor* part;
      ok(tiny_loader_tensor(loader, i, &part));
      ok(tiny_run_set_input(run, i, part));
      tiny_tensor_release(part);
    }
    ok(tiny_run_execute(run));
    ok(tiny_run_read_output(run, 0, &some, sizeof some));
    right += some;
    all += rows;
  }
  tiny_loader_release(loader);
  return (double)right / (double)all;
}

/* Parameters, statistics, what the optimiser keeps, where random numbers and epochs stand. */
static tiny_archive* whole_state(tiny_module* m, tiny_optimizer* optimizer, tiny_tensor* epoch) {
  tiny_archive* state;
  tiny_generator* generator;
  size_t count;
  ok(tiny_module_state(m, &state));
  ok(tiny_optimizer_state_count(optimizer, &count));
  for (size_t i = 0; i < count; ++i) {
    const char* name;
    char full[64];
    ok(tiny_optimizer_state_name(optimizer, i, &name));
    snprintf(full, sizeof full, "optimizer.%s", name);
    tiny_tensor* const kept = OP(tiny_optimizer_state, optimizer, i);
    ok(tiny_archive_set(state, full, kept));
  }
  ok(tiny_module_generator(m, &generator));
  tiny_tensor* const keys = OP(tiny_generator_state, generator);
  ok(tiny_archive_set(state, "random", keys));
  ok(tiny_archive_set(state, "epoch", epoch));
  tiny_generator_release(generator);
  return state;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    fprintf(stderr, "usage: train_fashion DATA_DIR OUT_DIR [EPOCHS [PICTURES]]\n");
    return 2;
  }
  const int64_t epochs = argc > 3 ? atoll(argv[3]) : 5;
  char checkpoint[4096], onnx[4096], svg[4096];
  snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", argv[2]);
  snprintf(onnx, sizeof onnx, "%s/fashion.onnx", argv[2]);
  snprintf(svg, sizeof svg, "%s/loss.svg", argv[2]);
  tiny_options* options;
  tiny_context* context;
  ok(tiny_options_create(&options));
  ok(tiny_options_set_int(options, "deterministic", 1));
  ok(tiny_context_create(options, &context));
  tiny_options_release(options);

  tiny_tensor *pictures = file(context, argv[1], "train-images-idx3"),
              *labels = file(context, argv[1], "train-labels-idx1");
  if (argc > 4) {
    const int64_t begin[] = {0, 0, 0}, end[] = {atoll(argv[4]), kSide, kSide};
    pictures = OP(tiny_slice, pictures, begin, end, NULL, 3);
    labels = OP(tiny_slice, labels, begin, end, NULL, 1);
  }
  tiny_tensor *test_pictures = file(context, argv[1], "t10k-images-idx3"),
              *test_labels = file(context, argv[1], "t10k-labels-idx1");
  tiny_tensor* const data[] = {pictures, labels};
  tiny_loader* loader;
  ok(tiny_loader_create(data, 2, kBatch, 1, 2, TINY_FLAG_SHUFFLE | TINY_FLAG_DROP_LAST, &loader));
  int64_t batches;
  ok(tiny_loader_batch_count(loader, &batches));

  /* The network, its loss, a step of Adam: one program, built on what was saved. */
  const int64_t shape[] = {kBatch, kSide, kSide};
  tiny_module* m;
  ok(tiny_module_create(context, 1, &m));
  tiny_tensor *x = OP(tiny_input, context, TINY_UINT8, shape, 3),
              *y = OP(tiny_input, context, TINY_UINT8, shape, 1);
  ok(tiny_module_set_training(m, 0)); /* it is built once for its parameters alone */
  network(context, m, x, kBatch);
  ok(tiny_module_set_training(m, 1));
  tiny_tensor *outputs[64], *gradients[63];
  size_t count;
  ok(tiny_module_parameter_count(m, &count));
  for (size_t i = 0; i < count; ++i) outputs[1 + i] = OP(tiny_module_parameter_at, m, i);
  tiny_optimizer* optimizer;
  int64_t group;
  ok(tiny_optimizer_create(context, TINY_OPTIMIZER_KIND_ADAM, &optimizer));
  ok(tiny_optimizer_add(optimizer, outputs + 1, count, &group));
  tiny_tensor* const epoch = OP(tiny_full, context, TINY_INT64, NULL, 0, 0);
  tiny_archive* const state = whole_state(m, optimizer, epoch);
  int64_t first = 0;
  FILE* const saved = fopen(checkpoint, "rb");
  if (saved) {
    tiny_archive* before;
    fclose(saved);
    ok(tiny_archive_load(context, checkpoint, &before));
    ok(tiny_archive_assign(state, before, 0));
    tiny_archive_release(before);
    ok(tiny_tensor_read(epoch, &first, sizeof first));
  }
  tiny_tensor* const logits = network(context, m, x, kBatch);
  tiny_tensor* const classes = OP(tiny_cast, y, TINY_INT64);
  outputs[0] = OP(tiny_cross_entropy, logits, classes, NULL, -100, 0, TINY_REDUCTION_MEAN);
  ok(tiny_gradient(outputs, 1, outputs + 1, count, NULL, 0, 0, gradients, count));
  ok(tiny_optimizer_step(optimizer, gradients, count, NULL));
  for (size_t i = 0; i < count; ++i) tiny_tensor_release(gradients[i]);
  tiny_program *step, *evaluation;
  tiny_run *training, *testing;
  tiny_tensor* const inputs[] = {x, y};
  ok(tiny_program_compile(inputs, 2, outputs, 1 + count, &step));
  ok(tiny_run_create(step, &training));

  /* The same network in use: how many are right; and for other runtimes. */
  ok(tiny_module_set_training(m, 0));
  tiny_tensor* const used_logits = network(context, m, x, kBatch);
  tiny_tensor* const found = OP(tiny_argmax, used_logits, 1, 0);
  tiny_tensor* const hits = OP(tiny_compare, TINY_EQ, found, classes);
  tiny_tensor* const counted = OP(tiny_cast, hits, TINY_INT64);
  tiny_tensor* const right[] = {OP(tiny_reduce, TINY_SUM, counted, NULL, 0, 0)};
  ok(tiny_program_compile(inputs, 2, right, 1, &evaluation));
  ok(tiny_run_create(evaluation, &testing));
  tiny_variable* pictures_at_once;
  int64_t any[] = {0, kSide, kSide};
  ok(tiny_variable_create(context, "N", 1, 1024, &pictures_at_once));
  ok(tiny_variable_dim(pictures_at_once, &any[0]));
  tiny_tensor* const asked = OP(tiny_input, context, TINY_UINT8, any, 3);
  tiny_tensor* const asked_logits = network(context, m, asked, any[0]);
  tiny_tensor* const answer = OP(tiny_softmax, asked_logits, 1);
  ok(tiny_tensor_set_name(asked, "pictures"));
  ok(tiny_tensor_set_name(answer, "shares"));

  static float losses[kCurve];
  size_t steps = 0;
  for (int64_t e = first; e < epochs; ++e) {
    int64_t rows;
    double rate;
    ok(tiny_rate_step(2e-3, e, 2, 0.4, &rate));
    ok(tiny_optimizer_set(optimizer, group, "lr", rate));
    ok(tiny_loader_seek(loader, e, 0));
    ok(tiny_loader_next(loader, &rows));
    for (int64_t b = 0; rows > 0; ++b, ok(tiny_loader_next(loader, &rows))) {
      float loss;
      for (size_t i = 0; i < 2; ++i) {
        tiny_tensor* part;
        ok(tiny_loader_tensor(loader, i, &part));
        ok(tiny_run_set_input(training, i, part));
        tiny_tensor_release(part);
      }
      ok(tiny_run_execute(training));
      ok(tiny_run_read_output(training, 0, &loss, sizeof loss));
      if (!(loss < 1e4F)) {
        fprintf(stderr, "\ntrain_fashion: the loss is %g after %lld steps of epoch %lld\n",
                (double)loss, (long long)b, (long long)e + 1);
        return 1;
      }
      if (steps < kCurve) losses[steps++] = loss;
      const int done = (int)(40 * (b + 1) / batches);
      fprintf(stderr, "\repoch %lld [%.*s%*s] loss %.4f", (long long)e + 1, done,
              "########################################", 40 - done, "", (double)loss);
    }
    fprintf(stderr, "\n");
    printf("epoch %lld: accuracy %.4f\n", (long long)e + 1,
           accuracy(testing, test_pictures, test_labels));
    fflush(stdout);
    tiny_tensor* finished;
    ok(tiny_scalar_int(context, e + 1, &finished));
    ok(tiny_assign(epoch, finished));
    tiny_tensor_release(finished);
    ok(tiny_archive_save(state, checkpoint));
    ok(tiny_export_onnx(&asked, 1, &answer, 1, onnx));
    draw(losses, steps, svg);
  }

  tiny_archive_release(state);
  tiny_run_release(training);
  tiny_run_release(testing);
  tiny_program_release(step);
  tiny_program_release(evaluation);
  tiny_variable_release(pictures_at_once);
  tiny_optimizer_release(optimizer);
  tiny_loader_release(loader);
  tiny_module_release(m);
  forget();
  tiny_context_release(context);
  return 0;
}
