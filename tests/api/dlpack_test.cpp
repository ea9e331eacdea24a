// Tensors to and from DLPack: no copies, every element type, strides, ownership, and what is
// refused.
#include "api/dlpack.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "tiny.h"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define HAS_DLPACK 1
#endif

namespace {

namespace dl = tiny::dlpack;

// The layout that the standard fixes for 64 bits.
static_assert(sizeof(dl::Tensor) == 48 && sizeof(DLManagedTensorVersioned) == 80);
static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
static_assert(offsetof(DLManagedTensorVersioned, deleter) == 16);
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24);
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
#ifdef HAS_DLPACK
static_assert(sizeof(dl::Tensor) == sizeof(DLTensor));
static_assert(offsetof(dl::Tensor, device) == offsetof(DLTensor, device));
static_assert(offsetof(dl::Tensor, ndim) == offsetof(DLTensor, ndim));
static_assert(offsetof(dl::Tensor, dtype) == offsetof(DLTensor, dtype));
static_assert(offsetof(dl::Tensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(dl::Tensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(dl::Tensor, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(sizeof(dl::Device) == sizeof(DLDevice) && sizeof(dl::DataType) == sizeof(DLDataType));
static_assert(int{dl::kCpu} == int{kDLCPU} && int{dl::kInt} == int{kDLInt} &&
              int{dl::kUnsigned} == int{kDLUInt} && int{dl::kFloat} == int{kDLFloat} &&
              int{dl::kBfloat} == int{kDLBfloat});
#endif

// Another library's array.
struct Foreign {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int deleted = 0;
  DLManagedTensorVersioned managed = {};

  Foreign(void* data, std::vector<int64_t> dims, dl::DataType type = {dl::kFloat, 32, 1},
          std::vector<int64_t> steps = {})
      : shape(std::move(dims)), strides(std::move(steps)) {
    managed.version = {1, 1};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
    managed.dl_tensor = {data, {dl::kCpu, 0}, static_cast<int32_t>(shape.size()),
                         type, shape.data(),  strides.empty() ? nullptr : strides.data(),
                         0};
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
};

class DLPack : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(tiny_context_create(nullptr, &context_), TINY_OK); }
  void TearDown() override { tiny_context_release(context_); }
  tiny_tensor* take(Foreign& foreign) {
    tiny_tensor* tensor = nullptr;
    EXPECT_EQ(tiny_tensor_from_dlpack(context_, &foreign.managed, &tensor), TINY_OK)
        << tiny_last_error();
    return tensor;
  }
  void refuse(Foreign& foreign, tiny_status status, const std::string& part) {
    auto* tensor = reinterpret_cast<tiny_tensor*>(&foreign);
    EXPECT_EQ(tiny_tensor_from_dlpack(context_, &foreign.managed, &tensor), status);
    EXPECT_EQ(tensor, nullptr);
    EXPECT_NE(std::string(tiny_last_error()).find(part), std::string::npos) << tiny_last_error();
    EXPECT_EQ(foreign.deleted, 0);  // still the caller's
  }
  static std::vector<float> read(const tiny_tensor* tensor, size_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(tiny_tensor_read(tensor, out.data(), count * sizeof(float)), TINY_OK)
        << tiny_last_error();
    return out;
  }
  static DLManagedTensorVersioned* lend(const tiny_tensor* tensor) {
    DLManagedTensorVersioned* out = nullptr;
    EXPECT_EQ(tiny_tensor_to_dlpack(tensor, &out), TINY_OK) << tiny_last_error();
    return out;
  }

  tiny_context* context_ = nullptr;
};

TEST_F(DLPack, BringsForeignMemoryWithoutACopy) {
  float memory[] = {9, 0, 1, 2, 3, 4, 5};
  Foreign foreign(memory, {2, 3}, {dl::kFloat, 32, 1}, {-3, 1});
  foreign.managed.dl_tensor.byte_offset = 4 * sizeof(float);  // element (0, 0) is 3
  tiny_tensor* tensor = take(foreign);
  memory[5] = 40;  // read when work runs
  EXPECT_EQ(read(tensor, 6), (std::vector<float>{3, 40, 5, 0, 1, 2}));
  const void* data = nullptr;
  EXPECT_EQ(tiny_tensor_data(tensor, &data), TINY_OK);
  EXPECT_EQ(data, memory + 4);
  tiny_tensor* five = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, nullptr, 0, 5, &five), TINY_OK);
  ASSERT_EQ(tiny_assign(tensor, five), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_realize(&tensor, 1), TINY_OK);
  EXPECT_EQ(memory[1], 5);
  EXPECT_EQ(memory[0], 9);
  EXPECT_EQ(foreign.deleted, 0);
  tiny_tensor_release(five);
  std::thread([&] { tiny_tensor_release(tensor); }).join();
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, nullptr, 0, 5, &five), TINY_OK);  // a building call
  tiny_tensor_release(five);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(DLPack, DoesNotWriteWhatIsReadOnly) {
  float memory[] = {1, 2, 3, 4};
  Foreign foreign(memory, {2}, {dl::kFloat, 32, 1}, {-2});
  foreign.managed.dl_tensor.data = memory + 2;
  foreign.managed.flags = dl::kReadOnly;
  tiny_tensor* tensor = take(foreign);
  const void* data = nullptr;
  EXPECT_EQ(tiny_tensor_data(tensor, &data), TINY_OK);
  EXPECT_EQ(data, memory + 2);
  DLManagedTensorVersioned* lent = lend(tensor);
  EXPECT_EQ(lent->dl_tensor.data, memory + 2);
  EXPECT_EQ(lent->flags, dl::kReadOnly);
  tiny_dlpack_release(lent);
  tiny_dlpack_release(nullptr);
  tiny_tensor* seven = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, nullptr, 0, 7, &seven), TINY_OK);
  const int64_t begin[] = {1}, end[] = {2};
  tiny_tensor* last = nullptr;
  ASSERT_EQ(tiny_slice(tensor, begin, end, nullptr, 1, &last), TINY_OK);
  ASSERT_EQ(tiny_assign(last, seven), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(tensor, 2), (std::vector<float>{3, 7}));
  EXPECT_EQ(memory[0], 1);
  for (tiny_tensor* t : {tensor, seven, last}) tiny_tensor_release(t);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(DLPack, LendsMemoryThatOutlivesTensorAndContext) {
  const int64_t dims[] = {2, 3}, axes[] = {1, 0};
  const float values[] = {0, 1, 2, 3, 4, 5};
  tiny_tensor* tensor = nullptr;
  tiny_tensor* sum = nullptr;
  tiny_tensor* turned = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, values, sizeof values, &tensor),
            TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, tensor, tensor, &sum), TINY_OK);
  ASSERT_EQ(tiny_permute(sum, axes, 2, &turned), TINY_OK);
  DLManagedTensorVersioned* lent = lend(turned);
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(lent->version.major, 1u);
  EXPECT_EQ(lent->flags, 0u);
  EXPECT_EQ(lent->dl_tensor.ndim, 2);
  EXPECT_EQ(lent->dl_tensor.shape[0], 3);
  EXPECT_EQ(lent->dl_tensor.strides[0], 1);
  EXPECT_EQ(lent->dl_tensor.strides[1], 3);
  EXPECT_EQ(lent->dl_tensor.byte_offset, 0u);
  auto* data = static_cast<float*>(lent->dl_tensor.data);
  EXPECT_EQ(data[2 * 1 + 1 * 3], 10);
  data[0] = 100;  // the tensor's own memory
  EXPECT_EQ(read(sum, 6)[0], 100);
  for (tiny_tensor* t : {tensor, sum, turned}) tiny_tensor_release(t);
  tiny_context_release(context_);
  context_ = nullptr;
  EXPECT_EQ(data[5], 10);
  std::thread([&] { lent->deleter(lent); }).join();
}

TEST_F(DLPack, GoesRoundForEveryElementType) {
  struct {
    tiny_dtype dtype;
    dl::DataType type;
  } const rows[] = {{TINY_BOOL, {dl::kBool, 8, 1}},
                    {TINY_INT8, {dl::kInt, 8, 1}},
                    {TINY_INT16, {dl::kInt, 16, 1}},
                    {TINY_INT32, {dl::kInt, 32, 1}},
                    {TINY_INT64, {dl::kInt, 64, 1}},
                    {TINY_UINT8, {dl::kUnsigned, 8, 1}},
                    {TINY_UINT16, {dl::kUnsigned, 16, 1}},
                    {TINY_UINT32, {dl::kUnsigned, 32, 1}},
                    {TINY_UINT64, {dl::kUnsigned, 64, 1}},
                    {TINY_FLOAT16, {dl::kFloat, 16, 1}},
                    {TINY_BFLOAT16, {dl::kBfloat, 16, 1}},
                    {TINY_FLOAT32, {dl::kFloat, 32, 1}},
                    {TINY_FLOAT64, {dl::kFloat, 64, 1}},
                    {TINY_FLOAT8_E4M3FN, {dl::kFloat8E4M3FN, 8, 1}},
                    {TINY_FLOAT8_E4M3FNUZ, {dl::kFloat8E4M3FNUZ, 8, 1}},
                    {TINY_FLOAT8_E5M2, {dl::kFloat8E5M2, 8, 1}},
                    {TINY_FLOAT8_E5M2FNUZ, {dl::kFloat8E5M2FNUZ, 8, 1}}};
  for (const auto& row : rows) {
    alignas(8) unsigned char memory[16] = {1, 0, 1};
    Foreign foreign(memory, {2}, row.type);
    tiny_tensor* tensor = take(foreign);
    tiny_dtype dtype = 0;
    EXPECT_EQ(tiny_tensor_dtype(tensor, &dtype), TINY_OK);
    EXPECT_EQ(dtype, row.dtype);
    DLManagedTensorVersioned* lent = lend(tensor);
    EXPECT_EQ(lent->dl_tensor.data, memory);
    EXPECT_EQ(lent->dl_tensor.dtype.code, row.type.code);
    EXPECT_EQ(lent->dl_tensor.dtype.bits, row.type.bits);
    EXPECT_EQ(lent->dl_tensor.dtype.lanes, 1);
    tiny_tensor_release(tensor);
    EXPECT_EQ(foreign.deleted, 0);  // lent on
    lent->deleter(lent);
    EXPECT_EQ(foreign.deleted, 1);
  }
  EXPECT_EQ(tiny_dtype_supported(std::size(rows) + 1), 0) << "a new dtype needs its row here";
}

TEST_F(DLPack, TakesScalarsAndEmptyArrays) {
  float memory[] = {3};
  Foreign scalar(memory, {});
  tiny_tensor* tensor = take(scalar);
  EXPECT_EQ(read(tensor, 1)[0], 3);
  tiny_tensor_release(tensor);
  Foreign empty(nullptr, {0, 5});
  tensor = take(empty);
  DLManagedTensorVersioned* lent = lend(tensor);
  EXPECT_EQ(lent->dl_tensor.shape[1], 5);
  lent->deleter(lent);
  tiny_tensor_release(tensor);
  EXPECT_EQ(empty.deleted, 1);
}

TEST_F(DLPack, WithoutADeleterNothingIsCalled) {
  float memory[] = {3};
  Foreign foreign(memory, {1});
  foreign.managed.deleter = nullptr;
  tiny_tensor* tensor = take(foreign);
  EXPECT_EQ(read(tensor, 1)[0], 3);
  tiny_tensor_release(tensor);
}

TEST_F(DLPack, RefusesWhatItCannotTake) {
  alignas(8) float memory[4] = {};
  Foreign cuda(memory, {4});
  cuda.managed.dl_tensor.device.type = 2;
  refuse(cuda, TINY_ERROR_DEVICE, "device type 2; memory of the CPU (1) is wanted");
  Foreign future(memory, {4});
  future.managed.version.major = 2;
  refuse(future, TINY_ERROR_UNSUPPORTED, "version 2.1; version 1 is known");
  Foreign complex(memory, {1}, {5, 64, 1});
  refuse(complex, TINY_ERROR_DTYPE, "type code 5 with 64 bits and 1 lanes");
  Foreign vector(memory, {1}, {dl::kFloat, 32, 4});
  refuse(vector, TINY_ERROR_DTYPE, "4 lanes");
  Foreign odd(reinterpret_cast<char*>(memory) + 1, {1});
  refuse(odd, TINY_ERROR_INVALID_ARGUMENT, "not aligned");
  Foreign null(nullptr, {1});
  refuse(null, TINY_ERROR_INVALID_ARGUMENT, "data is NULL");
  Foreign negative(memory, {-1});
  refuse(negative, TINY_ERROR_SHAPE, "negative");
  Foreign deep(memory, std::vector<int64_t>(TINY_RANK_MAX + 1, 1));
  refuse(deep, TINY_ERROR_SHAPE, "at most 16");
  Foreign nameless(memory, {1});
  nameless.managed.dl_tensor.ndim = -1;
  refuse(nameless, TINY_ERROR_SHAPE, "-1 dimensions");
  Foreign shapeless(memory, {1});
  shapeless.managed.dl_tensor.shape = nullptr;
  refuse(shapeless, TINY_ERROR_INVALID_ARGUMENT, "shape is NULL");
  tiny_tensor* tensor = nullptr;
  EXPECT_EQ(tiny_tensor_from_dlpack(context_, nullptr, &tensor), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_tensor_from_dlpack(nullptr, &odd.managed, &tensor), TINY_ERROR_INVALID_ARGUMENT);
  DLManagedTensorVersioned* lent = &odd.managed;
  EXPECT_EQ(tiny_tensor_to_dlpack(nullptr, &lent), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(lent, nullptr);
  ASSERT_EQ(tiny_scalar_int(context_, 1, &tensor), TINY_OK);
  EXPECT_EQ(tiny_tensor_to_dlpack(tensor, &lent), TINY_ERROR_INVALID_ARGUMENT);
  tiny_tensor_release(tensor);
}

}  // namespace
