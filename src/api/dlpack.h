// DLPack's structs, version 1, as other libraries lay them out: how arrays are exchanged without a
// copy.  Whoever makes a DLManagedTensorVersioned says how it is released; whoever takes it calls
// that once, from any thread.
#pragma once

#include <cstdint>

namespace tiny::dlpack {

enum DeviceType : int32_t { kCpu = 1 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUnsigned = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13
};
inline constexpr uint64_t kReadOnly = 1;  // of the flags
inline constexpr uint32_t kMajor = 1, kMinor = 0;

struct Version {
  uint32_t major;  // another one has another layout
  uint32_t minor;
};

struct Device {
  int32_t type;  // a DeviceType
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;      // in elements; null: row-major
  uint64_t byte_offset;  // of the first element from `data`
};

}  // namespace tiny::dlpack

struct DLManagedTensorVersioned {
  tiny::dlpack::Version version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  tiny::dlpack::Tensor dl_tensor;
};
