#include "io/cifar.h"

#include <cstring>

#include "base/error.h"
#include "base/pieces.h"

namespace tiny {

namespace {

constexpr int64_t kPictureBytes = int64_t{3} * 32 * 32;

SharedBytes column(const SharedBytes& bytes, int64_t begin, int64_t size, int64_t record,
                   const FileAccess& access) {
  const int64_t count = bytes.size() / record;
  const auto out = make_ref<NewBytes>(access.memory, count * size);
  for_each_piece_of(count * size, size, access.stop, [&](int64_t at, int64_t piece) {
    for (int64_t i = at / size; i < (at + piece) / size; ++i)
      std::memcpy(out->data() + i * size, bytes.data() + i * record + begin,
                  static_cast<size_t>(size));
  });
  return NewBytes::shared(out);
}

}  // namespace

Archive parse_cifar(const SharedBytes& bytes, const FileAccess& access) {
  const bool may_be_10 = bytes.size() > 0 && bytes.size() % (kPictureBytes + 1) == 0;
  const bool may_be_100 = bytes.size() > 0 && bytes.size() % (kPictureBytes + 2) == 0;
  require(may_be_10 != may_be_100, Status::InvalidModel, "CIFAR: ", bytes.size(), " bytes are ",
          may_be_10 ? "whole records of both kinds, of " : "no whole records, neither of ",
          kPictureBytes + 1, may_be_10 ? " and of " : " nor of ", kPictureBytes + 2, " bytes");
  const int64_t labels = may_be_10 ? 1 : 2;
  const int64_t record = labels + kPictureBytes;
  const int64_t count = bytes.size() / record;
  const auto labels_at = [&](int64_t i) {
    return HostTensor{kUInt8, {count}, column(bytes, i, 1, record, access)};
  };
  Archive archive;
  archive.tensors.push_back(
      {"data",
       {kUInt8, {count, 3, 32, 32}, column(bytes, labels, kPictureBytes, record, access)},
       ""});
  archive.tensors.push_back({may_be_10 ? "labels" : "coarse_labels", labels_at(0), ""});
  if (may_be_100) archive.tensors.push_back({"fine_labels", labels_at(1), ""});
  return archive;
}

}  // namespace tiny
