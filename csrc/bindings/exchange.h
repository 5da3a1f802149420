// The C interface by which DLPack lets tensor types be read and made without Python objects in between: the table that
// `type(tensor).__dlpack_c_exchange_api__` holds, of major version 1. Layouts are DLPack's; names are ours.
#pragma once

#include <cstdint>

namespace asc::dlpack {

constexpr int32_t kCpu = 1;
constexpr const char* kCapsule = "dlpack_exchange_api";
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kBool = 6 };

struct Version {
  uint32_t major, minor;
};

struct Type {
  uint8_t code, bits;
  uint16_t lanes;
};

struct TensorData {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  Type dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: C-contiguous
  uint64_t byte_offset;
};

struct ManagedTensor {
  Version version;
  void* context;
  void (*deleter)(ManagedTensor* self);
  uint64_t flags;
  TensorData tensor;
};

// Functions return 0, or another number with a Python error set.
struct ExchangeApi {
  Version version;
  void* older;
  int (*allocate)(TensorData* like, ManagedTensor** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*from_object)(void* object, ManagedTensor** out);
  int (*to_object)(ManagedTensor* tensor, void** object);  // takes the tensor
  int (*borrow_object)(void* object, TensorData* out);     // valid while the object lives; the pointer may be null
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace asc::dlpack
