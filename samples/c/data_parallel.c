/* A small network that learns on several devices at once, and in several processes: each has a part
   of the batch and a copy of the parameters, the gradients are averaged over all, and all do the
   same step.  A step of all devices is one program, compiled once: what goes from device to device
   is a part of it.

     data_parallel cpu                            one device
     data_parallel cuda cuda:1                    two
     data_parallel opencl:0.0/2 opencl:0.1/2      two halves of one
     data_parallel cpu cpu                        two partitions of the processor, a thread each
     mpirun -n 4 data_parallel --mpi cpu          four processes, with libtiny_mpi.so

   It prints the loss of each step and, at the end, what the parameters of each device come to. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny.h"

enum { ROWS = 64, FEATURES = 8, HIDDEN = 16, STEPS = 20, PARAMETERS = 3, DEVICES_MAX = 8 };

static void must(tiny_status status) {
  if (status == TINY_OK) return;
  fprintf(stderr, "data_parallel: %s\n", tiny_last_error());
  exit(1);
}

/* One device: its rows of the batch and what stands for them in the program, its copy of the
   parameters. */
typedef struct {
  tiny_context* context;
  tiny_tensor *rows_x, *rows_y;
  tiny_tensor *x, *y;
  tiny_tensor* parameters[PARAMETERS];
  tiny_tensor* gradients[PARAMETERS];
  tiny_tensor* loss;
  tiny_optimizer* optimizer;
} member;

/* The same numbers in every process: a linear congruential generator's, from -1 to 1. */
static void fill(float* values, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
  }
}

static tiny_tensor* made(tiny_context* context, int64_t rows, int64_t columns,
                         const float* values) {
  tiny_tensor* out = NULL;
  const int64_t dims[] = {rows, columns};
  must(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, values,
                             (size_t)(rows * columns) * sizeof(float), &out));
  return out;
}

static tiny_tensor* placeholder(tiny_context* context, int64_t rows, int64_t columns) {
  tiny_tensor* out = NULL;
  const int64_t dims[] = {rows, columns};
  must(tiny_input(context, TINY_FLOAT32, dims, 2, &out));
  return out;
}

/* A device that is named again is a partition of it: another context. */
static tiny_context* open_device(const char* name) {
  tiny_options* options = NULL;
  tiny_context* context = NULL;
  must(tiny_options_create(&options));
  must(tiny_options_set_string(options, "device", name));
  must(tiny_options_set_int(options, "threads", 1));
  must(tiny_context_create(options, &context));
  tiny_options_release(options);
  return context;
}

static void begin(member* one, const char* device, int64_t first, int64_t rows) {
  float x[ROWS * FEATURES], y[ROWS], weights[FEATURES * HIDDEN], bias[HIDDEN] = {0}, last[HIDDEN];
  int64_t group = 0;
  fill(x, ROWS * FEATURES, 1);
  fill(weights, FEATURES * HIDDEN, 2);
  fill(last, HIDDEN, 3);
  for (int i = 0; i < ROWS; ++i) y[i] = x[i * FEATURES] * x[i * FEATURES + 1] + x[i * FEATURES + 2];
  one->context = open_device(device);
  one->rows_x = made(one->context, rows, FEATURES, x + first * FEATURES);
  one->rows_y = made(one->context, rows, 1, y + first);
  one->x = placeholder(one->context, rows, FEATURES);
  one->y = placeholder(one->context, rows, 1);
  one->parameters[0] = made(one->context, FEATURES, HIDDEN, weights);
  one->parameters[1] = made(one->context, 1, HIDDEN, bias);
  one->parameters[2] = made(one->context, HIDDEN, 1, last);
  must(tiny_optimizer_create(one->context, TINY_OPTIMIZER_KIND_SGD, &one->optimizer));
  must(tiny_optimizer_add(one->optimizer, one->parameters, PARAMETERS, &group));
  must(tiny_optimizer_set(one->optimizer, group, "lr", 0.05));
}

/* The mean squared error of the device's rows, and its gradients; nothing is computed yet. */
static void differentiate(member* one) {
  tiny_tensor *product = NULL, *sum = NULL, *hidden = NULL, *out = NULL;
  must(tiny_matmul(one->x, one->parameters[0], &product));
  must(tiny_binary(TINY_ADD, product, one->parameters[1], &sum));
  must(tiny_unary(TINY_RELU, sum, &hidden));
  must(tiny_matmul(hidden, one->parameters[2], &out));
  must(tiny_mse_loss(out, one->y, TINY_REDUCTION_MEAN, &one->loss));
  must(tiny_gradient(&one->loss, 1, one->parameters, PARAMETERS, NULL, 0, 0, one->gradients,
                     PARAMETERS));
  tiny_tensor_release(product);
  tiny_tensor_release(sum);
  tiny_tensor_release(hidden);
  tiny_tensor_release(out);
}

/* In the place of the tensors that each member has, their mean over all members of all processes.
 */
static void average(tiny_tensor** tensors[], size_t count, tiny_processes* processes) {
  tiny_tensor *all[DEVICES_MAX], *means[DEVICES_MAX];
  for (size_t i = 0; i < count; ++i) all[i] = *tensors[i];
  must(tiny_allreduce(all, count, TINY_MEAN, processes, means, count));
  for (size_t i = 0; i < count; ++i) {
    tiny_tensor_release(all[i]);
    *tensors[i] = means[i];
  }
}

/* A step of all members: it has their rows as inputs, and gives the loss and the new parameters,
   which are the parameters' own memory. */
static tiny_program* compile_step(member* members, size_t count, tiny_processes* processes) {
  tiny_tensor** same[DEVICES_MAX];
  tiny_tensor *inputs[2 * DEVICES_MAX], *outputs[1 + PARAMETERS * DEVICES_MAX];
  tiny_program* program = NULL;
  for (size_t i = 0; i < count; ++i) differentiate(&members[i]);
  for (int parameter = 0; parameter < PARAMETERS; ++parameter) {
    for (size_t i = 0; i < count; ++i) same[i] = &members[i].gradients[parameter];
    average(same, count, processes);
  }
  for (size_t i = 0; i < count; ++i) same[i] = &members[i].loss;
  average(same, count, processes);
  outputs[0] = members[0].loss;
  for (size_t i = 0; i < count; ++i) {
    must(tiny_optimizer_step(members[i].optimizer, members[i].gradients, PARAMETERS, NULL));
    inputs[2 * i] = members[i].x;
    inputs[2 * i + 1] = members[i].y;
    for (size_t k = 0; k < PARAMETERS; ++k)
      outputs[1 + i * PARAMETERS + k] = members[i].parameters[k];
  }
  must(tiny_program_compile(inputs, 2 * count, outputs, 1 + count * PARAMETERS, &program));
  for (size_t i = 0; i < count; ++i) {
    for (int k = 0; k < PARAMETERS; ++k) tiny_tensor_release(members[i].gradients[k]);
    tiny_tensor_release(members[i].loss);
  }
  return program;
}

/* The bits of all parameters, folded to a number (FNV-1a). */
static uint32_t fold(const member* one) {
  uint32_t hash = 2166136261u;
  for (int k = 0; k < PARAMETERS; ++k) {
    float values[FEATURES * HIDDEN];
    int64_t numel = 0;
    must(tiny_tensor_numel(one->parameters[k], &numel));
    must(tiny_tensor_read(one->parameters[k], values, (size_t)numel * sizeof(float)));
    for (size_t i = 0; i < (size_t)numel * sizeof(float); ++i)
      hash = (hash ^ ((const unsigned char*)values)[i]) * 16777619u;
  }
  return hash;
}

static void end(member* one) {
  tiny_optimizer_release(one->optimizer);
  for (int k = 0; k < PARAMETERS; ++k) tiny_tensor_release(one->parameters[k]);
  tiny_tensor_release(one->rows_x);
  tiny_tensor_release(one->rows_y);
  tiny_tensor_release(one->x);
  tiny_tensor_release(one->y);
  tiny_context_release(one->context);
}

int main(int argc, char** argv) {
  const int with_mpi = argc > 1 && strcmp(argv[1], "--mpi") == 0;
  const size_t count = (size_t)(argc - 1 - with_mpi);
  tiny_processes* processes = NULL;
  int64_t rank = 0, ranks = 1;
  member members[DEVICES_MAX];
  if (count < 1 || count > DEVICES_MAX) {
    fprintf(stderr, "usage: data_parallel [--mpi] DEVICE..\n");
    return 2;
  }
  if (with_mpi) {
    must(tiny_processes_open(NULL, &processes));
    must(tiny_processes_rank(processes, &rank));
    must(tiny_processes_count(processes, &ranks));
  }
  const int64_t rows = ROWS / (ranks * (int64_t)count);
  if (rows * ranks * (int64_t)count != ROWS) {
    fprintf(stderr, "data_parallel: %d rows are not shared evenly by %d devices\n", ROWS,
            (int)ranks * (int)count);
    return 2;
  }
  for (size_t i = 0; i < count; ++i)
    begin(&members[i], argv[1 + with_mpi + (int)i], (rank * (int64_t)count + (int64_t)i) * rows,
          rows);
  tiny_program* const program = compile_step(members, count, processes);
  tiny_run* run = NULL;
  must(tiny_run_create(program, &run));
  for (size_t i = 0; i < count; ++i) {
    must(tiny_run_set_input(run, 2 * i, members[i].rows_x));
    must(tiny_run_set_input(run, 2 * i + 1, members[i].rows_y));
  }
  for (int i = 0; i < STEPS; ++i) {
    float loss = 0;
    must(tiny_run_execute(run));
    must(tiny_run_read_output(run, 0, &loss, sizeof loss));
    if (rank == 0) printf("step %d loss %.6f\n", i, loss);
  }
  tiny_run_release(run);
  tiny_program_release(program);
  for (size_t i = 0; i < count; ++i) {
    printf("process %d device %d parameters %08x\n", (int)rank, (int)i,
           (unsigned)fold(&members[i]));
    end(&members[i]);
  }
  fflush(stdout);
  tiny_processes_release(processes);
  return 0;
}
