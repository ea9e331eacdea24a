/* Tells which way the stripes of a picture run, by a network that was exported as C: on a machine
   that has no tiny.

     python3 make_stripes.py DIR                       the network, stripes.onnx
     tiny export DIR/stripes.onnx --c DIR --dim N=1..16
     cc -O2 -march=native -I DIR samples/c/classify_stripes.c DIR/stripes.c -lm -o stripes
     ./stripes DIR/stripes.weights a.ppm b.ppm         pictures of 64 x 64, as P6

   The second command writes stripes.c, stripes.h and stripes.weights.  These and this file are all
   that is needed. */
#include <stripes.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 64, CHANNELS = 3, DIRECTIONS = 4, MOST = 16 };

static float picture[MOST][CHANNELS * SIZE * SIZE], probabilities[MOST][DIRECTIONS];
static const char* const directions[DIRECTIONS] = {"horizontal", "vertical", "rising", "falling"};

static int fail(const char* what, const char* name) {
  fprintf(stderr, "stripes: %s %s\n", what, name);
  return 1;
}

/* The bytes of a file of that size; NULL if it is another, or there is no memory. */
static void* read_file(const char* name, size_t bytes) {
  FILE* file = fopen(name, "rb");
  char* data = malloc(bytes + 1);
  if (!file || !data || fread(data, 1, bytes + 1, file) != bytes) {
    free(data);
    data = NULL;
  }
  if (file) fclose(file);
  return data;
}

/* Pixels as the network wants them: a plane for each colour, from 0 to 1. */
static int read_picture(const char* name, float* planes) {
  int width = 0, height = 0, most = 0;
  unsigned char pixels[SIZE * SIZE * CHANNELS];
  FILE* file = fopen(name, "rb");
  if (!file) return fail("cannot read", name);
  const int is_header =
      fscanf(file, "P6 %d %d %d", &width, &height, &most) == 3 && fgetc(file) != EOF;
  const int is_whole = is_header && width == SIZE && height == SIZE && most == 255 &&
                       fread(pixels, 1, sizeof pixels, file) == sizeof pixels;
  fclose(file);
  if (!is_whole) return fail("a picture of 64 x 64 in the format P6 is wanted:", name);
  for (int channel = 0; channel < CHANNELS; ++channel)
    for (int i = 0; i < SIZE * SIZE; ++i)
      planes[channel * SIZE * SIZE + i] = (float)pixels[i * CHANNELS + channel] / 255;
  return 0;
}

int main(int count, char** arguments) {
  const int pictures = count - 2;
  struct stripes_arguments run = {0};
  if (pictures < 1 || pictures > MOST)
    return fail("usage: stripes stripes.weights", "PICTURE.ppm..");
  void* const weights = read_file(arguments[1], stripes_WEIGHT_BYTES);
  if (!weights) return fail("these are not the weights:", arguments[1]);
  for (int i = 0; i < pictures; ++i)
    if (read_picture(arguments[2 + i], picture[i])) return 1;

  run.weights = weights;
  run.N = pictures;
  run.memory_bytes = stripes_memory_bytes(&run);
  void* const memory = malloc(run.memory_bytes);
  run.memory = memory;
  run.picture = picture[0];
  run.direction = probabilities[0];
  const int result = stripes_run(&run);
  free(memory);
  free(weights);
  if (result != stripes_OK) return fail("the run failed", "");

  for (int i = 0; i < pictures; ++i) {
    int best = 0;
    for (int k = 1; k < DIRECTIONS; ++k)
      if (probabilities[i][k] > probabilities[i][best]) best = k;
    printf("%s %.1f%%\n", directions[best], 100 * (double)probabilities[i][best]);
  }
  return 0;
}
