// Which format a file has, and PNM; stb_image has the others (picture_stb.cpp).
#include "onnx/picture.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "onnx/picture_stb.h"

namespace tiny::onnx {

namespace {

struct Signature {
  const char* format;
  std::string_view begins;
  size_t at = 0;
};

// Of formats that other readers have, so that an error can name them.
constexpr Signature kNotHad[] = {{"WebP", "WEBP", 8},
                                 {"TIFF", {"II*\0", 4}},
                                 {"TIFF", {"MM\0*", 4}},
                                 {"JPEG 2000", {"\0\0\0\x0cjP  ", 8}},
                                 {"JPEG 2000", "\xff\x4f\xff\x51"},
                                 {"GIF", "GIF8"}};
constexpr Signature kJpeg = {"JPEG", "\xff\xd8"};
constexpr Signature kPng = {"PNG", "\x89PNG"};
constexpr Signature kBmp = {"BMP", "BM"};

bool has(std::span<const uint8_t> file, const Signature& signature) {
  const std::string_view begins = signature.begins;
  if (file.size() < signature.at + begins.size()) return false;
  return std::ranges::equal(begins, file.subspan(signature.at, begins.size()),
                            [](char c, uint8_t b) { return static_cast<uint8_t>(c) == b; });
}

bool is_pnm(std::span<const uint8_t> file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6';
}

// ---- Portable maps: bits (1, 4), grey (2, 5) and colours (3, 6), as text and as bytes.

class Pnm {
 public:
  explicit Pnm(std::span<const uint8_t> file) : file_(file), kind_(file[1] - '0') {
    size_.width = number();
    size_.height = number();
    most_ = is_bits() ? 1 : number();
    require(most_ > 0 && most_ <= UINT16_MAX, Status::InvalidArgument, "the greatest value is ",
            most_);
    if (is_bytes()) ++at_;  // one white space
  }

  PictureSize size() const { return size_; }

  void read(uint8_t* rgb) {
    for (int64_t y = 0; y < size_.height; ++y) {
      for (int64_t x = 0; x < size_.width; ++x, rgb += 3) {
        rgb[0] = value(x);
        const bool is_coloured = kind_ % 3 == 0;
        rgb[1] = is_coloured ? value(x) : rgb[0];
        rgb[2] = is_coloured ? value(x) : rgb[0];
      }
    }
  }

 private:
  bool is_bytes() const { return kind_ > 3; }
  bool is_bits() const { return kind_ % 3 == 1; }

  uint8_t byte() {
    require(at_ < file_.size(), Status::InvalidArgument, "it ends early");
    return file_[at_++];
  }

  void pass_space() {
    constexpr std::string_view kSpaces = " \t\n\r\f\v";
    for (; at_ < file_.size(); ++at_) {
      if (file_[at_] == '#')
        while (at_ + 1 < file_.size() && file_[at_] != '\n') ++at_;
      else if (kSpaces.find(static_cast<char>(file_[at_])) == kSpaces.npos)
        break;
    }
  }

  int64_t digit() {
    const uint8_t c = byte();
    require(c >= '0' && c <= '9', Status::InvalidArgument, "there is no number at byte ", at_ - 1);
    return c - '0';
  }

  int64_t number() {
    pass_space();
    int64_t n = digit();
    while (at_ < file_.size() && file_[at_] >= '0' && file_[at_] <= '9' && n <= INT32_MAX)
      n = 10 * n + digit();
    return n;
  }

  // The next one, of column x, as a share of 255.
  uint8_t value(int64_t x) {
    if (is_bits()) {  // 1 is black
      if (!is_bytes()) return pass_space(), digit() == 0 ? UINT8_MAX : 0;
      if (x % 8 == 0) bits_ = byte();
      return (bits_ >> (7 - x % 8) & 1) == 0 ? UINT8_MAX : 0;
    }
    int64_t v = is_bytes() ? byte() : number();
    if (is_bytes() && most_ > UINT8_MAX) v = 256 * v + byte();
    return static_cast<uint8_t>((std::min(v, most_) * UINT8_MAX * 2 + most_) / (2 * most_));
  }

  std::span<const uint8_t> file_;
  int kind_;
  size_t at_ = 2;
  PictureSize size_;
  int64_t most_ = 1;
  uint8_t bits_ = 0;
};

// ---- Any format.

// Calls `read` with what the file is, null for a portable map, and says in errors what it was.
template <class Read>
void with_format(std::span<const uint8_t> file, const Read& read) {
  for (const Signature& other : kNotHad)
    require(!has(file, other), Status::Unsupported, "pictures in ", other.format,
            " are not supported; JPEG, PNG, BMP and PNM are");
  const StbFormat* format = nullptr;
  const char* name = "PNM";
  constexpr std::pair<const Signature*, StbFormat> kFormats[] = {
      {&kJpeg, StbFormat::Jpeg}, {&kPng, StbFormat::Png}, {&kBmp, StbFormat::Bmp}};
  for (const auto& [signature, known] : kFormats)
    if (has(file, *signature)) {
      format = &known;
      name = signature->format;
    }
  require(format || is_pnm(file), Status::InvalidArgument, "these ", file.size(),
          " bytes are no picture (JPEG, PNG, BMP or PNM)");
  try {
    read(format);
  } catch (const Error& e) {
    throw e.at(cat("a ", name, " of ", file.size(), " bytes"));
  }
}

}  // namespace

PictureSize picture_size(std::span<const uint8_t> file) {
  PictureSize size;
  with_format(file, [&](const StbFormat* format) {
    size = format ? stb_size(file, *format) : Pnm(file).size();
    for (const int64_t side : {size.height, size.width})
      require(side > 0 && side <= kPictureSideMax, Status::InvalidArgument, "it says that it has ",
              size.height, " rows of ", size.width, " pixels; 1 to ", kPictureSideMax,
              " are supported");
    require(3 * size.height * size.width <= INT32_MAX, Status::Limit, "it says that it has ",
            size.height, " rows of ", size.width, " pixels; 2^31 bytes of them are the most");
  });
  return size;
}

void decode_picture(std::span<const uint8_t> file, PictureSize size, PixelFormat format,
                    const Ref<MemoryUse>& use, uint8_t* pixels) {
  const auto put = [&](const uint8_t* rgb) {
    const int64_t count = size.height * size.width;
    switch (format) {
      case PixelFormat::Rgb:
        std::copy_n(rgb, 3 * count, pixels);
        break;
      case PixelFormat::Bgr:
        for (int64_t i = 0; i < 3 * count; ++i) pixels[i] = rgb[i + 2 - 2 * (i % 3)];
        break;
      case PixelFormat::Grayscale:  // by ITU-R 601-2, in 16 bits
        for (int64_t i = 0; i < count; ++i, rgb += 3)
          pixels[i] = static_cast<uint8_t>(
              (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16);
        break;
    }
  };
  with_format(file, [&](const StbFormat* stb) {
    if (stb) return stb_decode(file, *stb, size, use, put);
    Pnm map(file);
    require(map.size() == size, Status::InvalidArgument, "its size is another");
    const int64_t bytes = 3 * size.height * size.width;
    const MemoryRoom room(use, bytes);
    std::vector<uint8_t> rgb(static_cast<size_t>(bytes));
    map.read(rgb.data());
    put(rgb.data());
  });
}

}  // namespace tiny::onnx
