// stb_image parses and decodes; a JPEG's transform, its chroma and its colours are made here, since
// ONNX's operator says how (libjpeg-turbo's integers), and stb_image's differ by one or two.
#include "onnx/picture_stb.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tiny::onnx {
namespace {

// What a decoder takes of memory: as buffers do, and no more than the size that a picture declares
// asks for, however much a stream of it unpacks to.
struct DecoderMemory {
  const Ref<MemoryUse>* use = nullptr;
  int64_t left = 0;
  std::exception_ptr error;
};
thread_local constinit DecoderMemory* memory = nullptr;

// Before each block: how many bytes it has.
constexpr size_t kHeader = alignof(std::max_align_t);

void* take(size_t bytes) {
  const auto all = static_cast<int64_t>(bytes + kHeader);
  if (all > memory->left) return nullptr;
  try {
    if (*memory->use) (*memory->use)->take(all);
  } catch (const Error&) {  // thrown on when the decoder has ended
    memory->error = std::current_exception();
    return nullptr;
  }
  auto* block = static_cast<std::byte*>(std::malloc(bytes + kHeader));
  if (!block) {
    if (*memory->use) (*memory->use)->give_back(all);
    return nullptr;
  }
  memory->left -= all;
  std::memcpy(block, &all, sizeof all);
  return block + kHeader;
}

void give_back(void* data) {
  if (!data) return;
  std::byte* block = static_cast<std::byte*>(data) - kHeader;
  int64_t all = 0;
  std::memcpy(&all, block, sizeof all);
  memory->left += all;
  if (*memory->use) (*memory->use)->give_back(all);
  std::free(block);
}

void* take_again(void* data, size_t had, size_t bytes) {
  void* other = take(bytes);
  if (!other) return nullptr;
  if (data) std::memcpy(other, data, std::min(had, bytes));
  give_back(data);
  return other;
}

}  // namespace
}  // namespace tiny::onnx

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_SIMD
#define STBI_NO_FAILURE_STRINGS  // one of them is written to, by any thread
#define STBI_ASSERT(x) ((void)0)
#define STBI_MAX_DIMENSIONS (1 << 16)
#define STBI_MALLOC(bytes) tiny::onnx::take(bytes)
#define STBI_FREE(data) tiny::onnx::give_back(data)
#define STBI_REALLOC_SIZED(data, had, bytes) tiny::onnx::take_again(data, had, bytes)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace tiny::onnx {
namespace {

uint8_t clamped(int64_t value) {
  return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, UINT8_MAX));
}

// ---- The inverse transform of a block: integers of 13 bits behind the point, two passes.

constexpr int kPointBits = 13;
constexpr int kKeptBits = 2;  // behind the point between the passes

// The cosines of the even and of the odd places, as sums of libjpeg's rounded factors: the odd last
// digits are what makes results the same bit by bit.
constexpr int kEven[2][2] = {{10703, 4433}, {4433, -10704}};
constexpr int kOdd[4][4] = {{11363, 9633, 6437, 2260},
                            {9633, -2259, -11362, -6436},
                            {6437, -11362, 2261, 9633},
                            {2260, -6436, 9633, -11363}};

// Eight numbers `step` apart to eight, rounded at `bits`.
template <class In, class Out>
void transform(const In* in, int step, int bits, const Out& out) {
  const auto at = [&](int i) { return int64_t{in[i * step]}; };
  for (int i = 0; i < 4; ++i) {
    const bool is_outer = i == 0 || i == 3;
    const int* const turned = kEven[is_outer ? 0 : 1];
    const int sign = i < 2 ? 1 : -1;
    const int64_t straight = (at(0) + (is_outer ? at(4) : -at(4))) * (1 << kPointBits);
    const int64_t even =
        straight + sign * (at(2) * turned[0] + at(6) * turned[1]) + (1 << (bits - 1));
    int64_t odd = 0;
    for (int k = 0; k < 4; ++k) odd += kOdd[i][k] * at(2 * k + 1);
    out(i, (even + odd) >> bits);
    out(7 - i, (even - odd) >> bits);
  }
}

void inverse_transform(stbi_uc* out, int stride, short data[64]) {
  int64_t columns[64];
  for (int x = 0; x < 8; ++x)
    transform(data + x, 8, kPointBits - kKeptBits,
              [&](int y, int64_t value) { columns[8 * y + x] = value; });
  constexpr int kScaleBits = 3;  // a transform in two directions has 8 times its block
  constexpr int kMiddle = 128;
  for (int y = 0; y < 8; ++y)
    transform(columns + 8 * y, 1, kPointBits + kKeptBits + kScaleBits,
              [&](int x, int64_t value) { out[y * stride + x] = clamped(value + kMiddle); });
}

// ---- Rows of a component as wide as the picture.

struct Component {
  const uint8_t* data;
  int stride, width, height;
  int across, down;  // pixels to one of its own
};

// Between centres: three parts of the near one to one of the far one, rounded up and down in turn.
void read_row(const Component& c, int y, std::span<int> sums, std::span<uint8_t> row) {
  const auto line = [&](int at) {
    return c.data + static_cast<ptrdiff_t>(std::clamp(at, 0, c.height - 1)) * c.stride;
  };
  const uint8_t* near = line(y / c.down);
  const bool is_wide = c.across == 2 && c.down <= 2 && c.width > 2;
  const bool is_tall = c.down == 2 && (c.across == 1 || is_wide);
  if (!is_wide && !is_tall) {
    for (size_t x = 0; x < row.size(); ++x) row[x] = near[x / static_cast<size_t>(c.across)];
    return;
  }
  const bool is_below = y % 2 != 0;
  const uint8_t* far = line(y / 2 + (is_below ? 1 : -1));
  const auto width = static_cast<size_t>(c.width);
  for (size_t x = 0; x < width; ++x) sums[x] = is_tall ? 3 * near[x] + far[x] : near[x];
  for (size_t x = 0; x < row.size(); ++x) {
    if (!is_wide) {
      row[x] = static_cast<uint8_t>((sums[x] + (is_below ? 2 : 1)) >> 2);
      continue;
    }
    const bool is_right = x % 2 != 0;
    const size_t at = x / 2;
    const size_t other = is_right ? std::min(at + 1, width - 1) : std::max<size_t>(at, 1) - 1;
    const int rounded = is_tall ? (is_right ? 7 : 8) : (is_right ? 2 : 1);
    row[x] = static_cast<uint8_t>((3 * sums[at] + sums[other] + rounded) >> (is_tall ? 4 : 2));
  }
}

// ---- Colours.

enum class Colours : uint8_t { Grey, Rgb, YCbCr, Cmyk, Ycck };

// By ITU-R BT.601, 16 bits behind the point.
void put_ycbcr(int y, int cb, int cr, uint8_t* rgb) {
  constexpr int kHalf = 1 << 15;
  cb -= 128;
  cr -= 128;
  rgb[0] = clamped(y + ((91881 * cr + kHalf) >> 16));
  rgb[1] = clamped(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16));
  rgb[2] = clamped(y + ((116130 * cb + kHalf) >> 16));
}

Colours colours_of(const stbi__jpeg& jpeg) {
  const int transform = jpeg.app14_color_transform;
  switch (jpeg.s->img_n) {
    case 1:
      return Colours::Grey;
    case 3:
      return jpeg.rgb == 3 || (transform == 0 && !jpeg.jfif) ? Colours::Rgb : Colours::YCbCr;
    default:
      return transform == 2 ? Colours::Ycck : Colours::Cmyk;
  }
}

// Of one pixel, all of whose components are in `of`.
void put_pixel(Colours colours, const std::array<uint8_t, 4>& of, uint8_t* rgb) {
  const bool is_luminance = colours == Colours::YCbCr || colours == Colours::Ycck;
  if (is_luminance)
    put_ycbcr(of[0], of[1], of[2], rgb);
  else
    for (size_t k = 0; k < 3; ++k) rgb[k] = of[colours == Colours::Grey ? 0 : k];
  if (colours != Colours::Cmyk && colours != Colours::Ycck) return;
  // Adobe writes how much of an ink is missing.
  for (size_t k = 0; k < 3; ++k) {
    const int missing = colours == Colours::Ycck ? UINT8_MAX - rgb[k] : rgb[k];
    rgb[k] = static_cast<uint8_t>((missing * of[3] + UINT8_MAX / 2) / UINT8_MAX);
  }
}

// ---- Reading.

// Bytes for stb_image, and whether it asked for one behind the last: then the file ends early.
struct Source {
  explicit Source(std::span<const uint8_t> f) : file(f) {
    static constexpr auto read = [](void* user, char* data, int size) {
      auto& self = *static_cast<Source*>(user);
      const size_t n = std::min(static_cast<size_t>(size), self.file.size() - self.at);
      if (n == 0) self.is_past_end = true;
      std::memcpy(data, self.file.data() + self.at, n);
      self.at += n;
      return static_cast<int>(n);
    };
    static constexpr auto skip = [](void* user, int count) {
      auto& self = *static_cast<Source*>(user);
      if (count > 0) self.at += std::min(static_cast<size_t>(count), self.file.size() - self.at);
    };
    static constexpr auto is_at_end = [](void* user) {
      const auto& self = *static_cast<Source*>(user);
      return self.at == self.file.size() ? 1 : 0;
    };
    stbi_io_callbacks calls{read, skip, is_at_end};
    stbi__start_callbacks(&context, &calls, this);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::span<const uint8_t> file;
  size_t at = 0;
  bool is_past_end = false;
  stbi__context context{};
};

// stb_image 2.27 writes behind its tables where one has more than 256 codes.  It takes the next
// 0xff that no segment holds for a marker, but for those that stand for themselves in a scan.
void require_small_tables(std::span<const uint8_t> file) {
  constexpr size_t kLengths = 16;
  constexpr int kCodesMax = 256, kStuffed = 0, kTables = 0xc4, kEnd = 0xd9;
  const auto byte = [&](size_t at) { return at < file.size() ? int{file[at]} : 0; };
  const auto has_no_length = [](int marker) { return (marker & 0xf8) == 0xd0 || marker == 0xd8; };
  for (size_t i = 0; i + 3 < file.size();) {
    const int marker = byte(i + 1);
    if (byte(i) != 0xff || marker == 0xff) {
      ++i;
      continue;
    }
    if (marker == kEnd) return;
    if (marker == kStuffed || has_no_length(marker)) {
      i += 2;
      continue;
    }
    const int length = 256 * byte(i + 2) + byte(i + 3);
    int left = marker == kTables ? length - 2 : 0;
    for (size_t at = i + 4; left > 0 && at < file.size();) {
      if (byte(at) >> 4 > 1 || (byte(at) & 15) > 3) break;  // no table: stb_image ends there
      int codes = 0;
      for (size_t k = 1; k <= kLengths; ++k) codes += byte(at + k);
      require(codes <= kCodesMax, Status::InvalidArgument, "a table has ", codes, " codes; ",
              kCodesMax, " are the most");
      at += 1 + kLengths + static_cast<size_t>(codes);
      left -= 1 + static_cast<int>(kLengths) + codes;
    }
    i += 2 + static_cast<size_t>(length);
  }
}

// The sum behind each part of a PNG, which stb_image does not look at: CRC-32, four bits at a time.
constexpr std::array<uint32_t, 16> kSums = [] {
  std::array<uint32_t, 16> sums{};
  for (uint32_t i = 0; i < sums.size(); ++i) {
    sums[i] = i;
    for (int bit = 0; bit < 4; ++bit)
      sums[i] = (sums[i] & 1) != 0 ? 0xedb8'8320U ^ (sums[i] >> 1) : sums[i] >> 1;
  }
  return sums;
}();

uint32_t sum_of(std::span<const uint8_t> bytes) {
  uint32_t sum = UINT32_MAX;
  for (const uint8_t byte : bytes) {
    sum ^= byte;
    for (int half = 0; half < 2; ++half) sum = kSums[sum & 15] ^ (sum >> 4);
  }
  return ~sum;
}

void require_sums(std::span<const uint8_t> file) {
  constexpr size_t kSignature = 8, kWord = 4;
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    for (size_t k = 0; k < kWord; ++k) value = value << 8 | file[at + k];
    return value;
  };
  // A part is its length, four letters, so many bytes, and the sum of letters and bytes.
  for (size_t at = kSignature; at + 3 * kWord <= file.size();) {
    const size_t length = word(at);
    if (length > file.size() - at - 3 * kWord) return;  // it ends early
    require(sum_of(file.subspan(at + kWord, kWord + length)) == word(at + 2 * kWord + length),
            Status::InvalidArgument, "it is broken: the sum of the part at byte ", at,
            " is another");
    at += 3 * kWord + length;
  }
}

struct Jpeg : stbi__jpeg {
  explicit Jpeg(Source& source) : stbi__jpeg() {
    s = &source.context;
    require_small_tables(source.file);
    s->img_n = 0;
    stbi__setup_jpeg(this);
    idct_block_kernel = inverse_transform;
  }
  ~Jpeg() { stbi__cleanup_jpeg(this); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
};

// The memory of the thread's decoder, for as long as this lives.
class Decoding {
 public:
  Decoding(const Ref<MemoryUse>& use, int64_t most) : own_{&use, most, {}} { memory = &own_; }
  ~Decoding() { memory = nullptr; }
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  void require_done(bool is_done, const Source& source) const {
    if (own_.error) std::rethrow_exception(own_.error);
    require(!source.is_past_end, Status::InvalidArgument, "it ends early");
    require(is_done, Status::InvalidArgument, "it is broken, or of a kind that is not supported");
  }

 private:
  DecoderMemory own_;
};

// A progressive file repeats the whole picture in each scan: encoders write some ten.
constexpr int64_t kScansMax = 64;

void require_few_scans(std::span<const uint8_t> file) {
  int64_t scans = 0;
  for (size_t i = 0; i + 1 < file.size(); ++i) scans += file[i] == 0xff && file[i + 1] == 0xda;
  require(scans <= kScansMax, Status::InvalidArgument, "it has ", scans, " scans; ", kScansMax,
          " are supported");
}

std::vector<uint8_t> pixels_of(const Jpeg& jpeg) {
  const size_t width = jpeg.s->img_x, height = jpeg.s->img_y;
  std::vector<Component> components;
  for (int k = 0; k < jpeg.s->img_n; ++k) {
    const auto& c = jpeg.img_comp[k];
    require(jpeg.img_h_max % c.h == 0 && jpeg.img_v_max % c.v == 0, Status::InvalidArgument,
            "a component has ", c.h, " x ", c.v, " samples of ", jpeg.img_h_max, " x ",
            jpeg.img_v_max);
    components.push_back({c.data, c.w2, c.x, c.y, jpeg.img_h_max / c.h, jpeg.img_v_max / c.v});
  }
  const Colours colours = colours_of(jpeg);
  std::vector<int> sums(width);
  std::vector<std::vector<uint8_t>> rows(components.size(), std::vector<uint8_t>(width));
  std::vector<uint8_t> rgb(3 * width * height);
  uint8_t* out = rgb.data();
  for (size_t y = 0; y < height; ++y) {
    for (size_t k = 0; k < components.size(); ++k)
      read_row(components[k], static_cast<int>(y), sums, rows[k]);
    for (size_t x = 0; x < width; ++x, out += 3) {
      std::array<uint8_t, 4> of{};
      for (size_t k = 0; k < rows.size(); ++k) of[k] = rows[k][x];
      put_pixel(colours, of, out);
    }
  }
  return rgb;
}

}  // namespace

PictureSize stb_size(std::span<const uint8_t> file, StbFormat format) {
  constexpr int64_t kHeadersMax = int64_t{1} << 20;
  const Decoding decoding({}, kHeadersMax);
  Source source(file);
  int width = 0, height = 0, channels = 0;
  int is_read = 0;
  switch (format) {
    case StbFormat::Jpeg:
      is_read =
          stbi__jpeg_info_raw(std::make_unique<Jpeg>(source).get(), &width, &height, &channels);
      break;
    case StbFormat::Png:
      is_read = stbi__png_info(&source.context, &width, &height, &channels);
      break;
    case StbFormat::Bmp:
      is_read = stbi__bmp_info(&source.context, &width, &height, &channels);
      break;
  }
  decoding.require_done(is_read != 0, source);
  // A BMP whose rows go down has a height below 0.
  return {std::abs(int64_t{height}), width};
}

void stb_decode(std::span<const uint8_t> file, StbFormat format, PictureSize size,
                const Ref<MemoryUse>& use, const std::function<void(const uint8_t*)>& put) {
  // 16 bits for each of 4 channels as they are unpacked, twice while that grows, and as pixels.
  constexpr int64_t kPixelBytes = 64;
  constexpr int64_t kFileParts = 4;
  constexpr int64_t kTables = int64_t{1} << 20;
  const int64_t pixels = size.height * size.width;
  const Decoding decoding(use, kPixelBytes * pixels + kFileParts * std::ssize(file) + kTables);
  Source source(file);
  const auto require_size = [&](int64_t height, int64_t width) {
    require(PictureSize{height, width} == size, Status::InvalidArgument, "its size is another");
  };
  if (format == StbFormat::Jpeg) {
    require_few_scans(file);
    const auto jpeg = std::make_unique<Jpeg>(source);
    decoding.require_done(stbi__decode_jpeg_image(jpeg.get()) != 0, source);
    require_size(source.context.img_y, source.context.img_x);
    const MemoryRoom room(use, 3 * pixels);
    put(pixels_of(*jpeg).data());
    return;
  }
  int width = 0, height = 0, channels = 0;
  stbi__result_info info{8, 0, 0};
  const bool is_png = format == StbFormat::Png;
  if (is_png) require_sums(file);
  auto* read = is_png ? stbi__png_load(&source.context, &width, &height, &channels, 3, &info)
                      : stbi__bmp_load(&source.context, &width, &height, &channels, 3, &info);
  struct Free {
    void operator()(void* data) const { give_back(data); }
  };
  std::unique_ptr<uint8_t, Free> rgb(static_cast<uint8_t*>(read));
  decoding.require_done(rgb != nullptr, source);
  require_size(height, width);
  if (info.bits_per_channel == 16) {
    // The high byte of each, in place.
    uint16_t wide = 0;
    for (int64_t i = 0; i < 3 * pixels; ++i) {
      std::memcpy(&wide, rgb.get() + 2 * i, sizeof wide);
      rgb.get()[i] = static_cast<uint8_t>(wide >> 8);
    }
  }
  put(rgb.get());
}

}  // namespace tiny::onnx
