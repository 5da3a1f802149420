// A device with a worker thread that misbehaves on demand: "fault=NAME" in the options that follow its name.
#include <ascendsched/device.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

std::atomic<const asc_host*> core{nullptr};  // executors read it while another device is opened
int open_devices = 0, open_streams = 0, live_tilings = 0, live_chains = 0, live_blocks = 0;
std::mutex counting;

void count(int& what, int change) {
  std::lock_guard<std::mutex> lock(counting);
  what += change;
}

struct Device {
  std::string fault;
  bool has(const char* name) const { return fault == std::string("fault=") + name; }
};

int say(char* error, const char* what) {
  std::strcpy(error, what);
  return ASC_FAILED;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

int64_t size_of(const asc_tensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.rank; ++i) n *= t.shape[i];
  return n;
}

int tile(asc_context* context, const asc_tensor* inputs, int32_t, const asc_tensor*, int32_t, void** tiling) {
  if (inputs[0].rank == 3) return context->fail(context, "rank 3 is too much");
  if (inputs[0].rank == 4) throw std::runtime_error("rank 4");
  int64_t perm[2];
  if (context->attribute_ints(context, "perm", perm, 2) == 2 && perm[0] == 0) return 7;
  *tiling = std::malloc(1);
  count(live_tilings, 1);
  return ASC_OK;
}
void free_tiling(void* tiling) {
  count(live_tilings, -1);
  std::free(tiling);
}

int negate(const void*, const asc_tensor* in, int32_t, asc_tensor* out, int32_t, char* error) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  for (int64_t i = 0, n = size_of(in[0]); i < n; ++i) {
    if (x[i] == 100) return say(error, "100 is not liked");
    if (x[i] == 101) throw std::runtime_error("101");
    if (x[i] == 102) return ASC_INVALID_INPUT;
    if (x[i] == 103) return ASC_OUT_OF_MEMORY;
    y[i] = -x[i];
  }
  return ASC_OK;
}
int relu(const void*, const asc_tensor* in, int32_t, asc_tensor* out, int32_t, char*) {
  const auto* x = static_cast<const float*>(in[0].data);
  for (int64_t i = 0, n = size_of(in[0]); i < n; ++i) static_cast<float*>(out[0].data)[i] = x[i] > 0 ? x[i] : 0;
  return ASC_OK;
}
int transpose(const void*, const asc_tensor* in, int32_t, asc_tensor* out, int32_t, char*) {
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t i = 0; i < rows * columns; ++i)
    static_cast<float*>(out[0].data)[i % columns * rows + i / columns] = static_cast<const float*>(in[0].data)[i];
  return ASC_OK;
}
// Of a vector. A first element of 100 makes it say that more was found than there is room for.
int nonzero(const void*, const asc_tensor* in, int32_t, asc_tensor* out, int32_t, char*) {
  const auto* x = static_cast<const float*>(in[0].data);
  int64_t found = 0;
  for (int64_t i = 0; i < in[0].shape[0]; ++i)
    if (x[i] != 0) static_cast<int64_t*>(out[0].data)[found++] = i;
  out[0].shape[1] = in[0].shape[0] > 0 && x[0] == 100 ? 1000 : found;
  return ASC_OK;
}
// Host-read inputs are there for the tiling.
int tile_expand(asc_context* context, const asc_tensor* inputs, int32_t, const asc_tensor*, int32_t, void**) {
  return inputs[1].data && static_cast<const int64_t*>(inputs[1].data)[0] == 3 ? ASC_OK
                                                                               : context->fail(context, "!= 3");
}
int expand(const void*, const asc_tensor* in, int32_t, asc_tensor* out, int32_t, char*) {
  for (int64_t i = 0, n = size_of(out[0]); i < n; ++i)
    static_cast<float*>(out[0].data)[i] = *static_cast<const float*>(in[0].data);
  return ASC_OK;
}

const asc_kernel kernels[] = {
    {"Neg", ASC_TYPE_BIT(ASC_FLOAT32), 0, tile, free_tiling, negate},
    {"Relu", ASC_TYPE_BIT(ASC_FLOAT32), 0, nullptr, nullptr, relu},
    {"Transpose", ASC_TYPE_BIT(ASC_FLOAT32) | ASC_TYPE_BIT(ASC_FLOAT64), 0, tile, free_tiling, transpose},
    {"NonZero", ASC_TYPE_BIT(ASC_FLOAT32), 0, nullptr, nullptr, nonzero},
    {"Expand", ASC_TYPE_BIT(ASC_FLOAT32), 0, tile_expand, nullptr, expand}};

// --- streams ---------------------------------------------------------------------------------------------------------

struct Chain {
  const asc_task* tasks;
  size_t size;
};
struct Entry {
  enum { kTask, kChain, kCopy, kRecord, kEnd } kind;
  asc_run run{};
  asc_task task{};
  const Chain* chain = nullptr;
  void* const* table = nullptr;
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
};

struct Stream {
  explicit Stream(const Device& device) : device(device), thread([this] { work(); }) {}

  void push(const Entry& entry) {
    std::lock_guard<std::mutex> lock(mutex);
    entries.push_back(entry);
    changed.notify_all();
  }
  void wait_until_empty() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return entries.empty(); });
  }
  void work() {
    for (;;) {
      Entry entry{Entry::kEnd};
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return !entries.empty(); });
        entry = entries.front();
      }
      run(entry);
      {
        std::lock_guard<std::mutex> lock(mutex);
        entries.pop_front();
        changed.notify_all();
      }
      if (entry.kind == Entry::kEnd) return;
    }
  }
  void run(const Entry& e) const {
    if (e.kind == Entry::kTask) run_task(e.run, e.task, e.table);
    for (size_t i = 0; e.kind == Entry::kChain && i < e.chain->size; ++i) run_task(e.run, e.chain->tasks[i], e.table);
    if (e.kind == Entry::kCopy && !core.load()->is_stopped(e.run)) std::memcpy(e.to, e.from, e.bytes);
    if (e.kind != Entry::kRecord || device.has("complete_never")) return;
    core.load()->complete(e.run);
    if (device.has("complete_twice")) core.load()->complete(e.run);
    if (device.has("fail_late")) core.load()->fail(e.run, nullptr, ASC_FAILED, "too late");
    if (device.has("complete_other")) core.load()->complete({e.run.number + 1'000'000, 0});
    core.load()->complete({~uint64_t{0}, 0});  // nobody's: it is ignored
  }
  void run_task(asc_run run, const asc_task& task, void* const* table) const {
    if (device.has("task_null")) return core.load()->run_task(run, nullptr, table);
    if (device.has("table_null")) return core.load()->run_task(run, &task, nullptr);
    if (device.has("fail_silent")) return core.load()->fail(run, &task, ASC_FAILED, nullptr);
    if (device.has("complete_early")) core.load()->complete(run);
    core.load()->run_task(run, &task, table);
  }

  const Device& device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> entries;
  std::thread thread;
};

const Device& device_of(void* stream) { return static_cast<Stream*>(stream)->device; }

int create_stream(void* device, void** stream, char* error) {
  const auto& d = *static_cast<Device*>(device);
  if (d.has("stream_null")) return ASC_OK;
  if (d.has("stream_fail")) return say(error, "no stream today");
  *stream = new Stream(d);
  count(open_streams, 1);
  return ASC_OK;
}
void destroy_stream(void* stream) {
  auto* s = static_cast<Stream*>(stream);
  s->push({Entry::kEnd});
  s->thread.join();
  const bool throws = s->device.has("destroy_throw");
  delete s;
  count(open_streams, -1);
  if (throws) throw std::runtime_error("destroyed");
}
int launch(void* stream, const asc_task* task, void* const* table, asc_run run, char* error) {
  if (device_of(stream).has("launch_fail")) return say(error, "the queue is closed");
  if (device_of(stream).has("launch_throw")) throw std::runtime_error("launch");
  if (device_of(stream).has("launch_second") && task->node == 1) return 12345;
  Entry entry{Entry::kTask, run, *task};
  entry.table = table;
  static_cast<Stream*>(stream)->push(entry);
  return ASC_OK;
}
int submit(void* stream, void* chain, void* const* table, asc_run run, char* error) {
  if (device_of(stream).has("submit_fail")) return say(error, "no chains here");
  Entry entry{Entry::kChain, run};
  entry.chain = static_cast<Chain*>(chain);
  entry.table = table;
  static_cast<Stream*>(stream)->push(entry);
  return ASC_OK;
}
int copy(void* stream, void* to, const void* from, size_t bytes, asc_run run, char* error) {
  if (device_of(stream).has("copy_fail")) return say(error, "no copies");
  Entry entry{Entry::kCopy, run};
  entry.to = to;
  entry.from = from;
  entry.bytes = bytes;
  static_cast<Stream*>(stream)->push(entry);
  return ASC_OK;
}
int record(void* stream, asc_run run, char* error) {
  const Device& d = device_of(stream);
  if (d.has("record_fail") || d.has("synchronize_fail")) return say(error, "no events left");
  if (d.has("record_throw")) throw std::runtime_error("record");
  static_cast<Stream*>(stream)->push({Entry::kRecord, run});
  return ASC_OK;
}
int synchronize(void* stream, char* error) {
  if (device_of(stream).has("synchronize_fail")) return say(error, "cannot tell");
  static_cast<Stream*>(stream)->wait_until_empty();
  return ASC_OK;
}

// --- the device ------------------------------------------------------------------------------------------------------

int open_device(const asc_host* host, const asc_device_settings* settings, void** device, char* error) {
  core = host;
  const std::string fault = settings->options;
  if (fault == "fault=open_null") return ASC_OK;
  if (fault == "fault=open_fail") return say(error, "the chip is on fire");
  if (fault == "fault=open_long") return std::memset(error, 'x', ASC_ERROR_BYTES), ASC_FAILED;
  if (fault == "fault=open_throw") throw 3;
  if (fault == "fault=unavailable") return std::strcpy(error, "no chip in this machine"), ASC_UNAVAILABLE;
  *device = new Device{fault};
  count(open_devices, 1);
  return ASC_OK;
}
void close_device(void* device) {
  count(open_devices, -1);
  delete static_cast<Device*>(device);
}
int describe(void* device, asc_device_info* info, char* error) {
  const auto& d = *static_cast<Device*>(device);
  if (d.has("describe_fail")) return say(error, "who am I");
  if (d.has("threads")) info->threads = -4;
  if (d.has("deadline")) info->deadline_ms = 0;
  if (d.has("complete_never")) info->deadline_ms = 200;
  if (d.has("computes_nothing")) info->computes = 0;
  if (d.has("small")) info->memory_limit_bytes = 4096;
  return ASC_OK;
}
int allocate(void* device, size_t bytes, void** data, char* error) {
  const auto& d = *static_cast<Device*>(device);
  static void* const first = std::aligned_alloc(ASC_MEMORY_ALIGNMENT, 1 << 20);
  if (d.has("allocate_null")) return ASC_OK;
  if (d.has("allocate_fail")) return say(error, "no bank is free");
  if (d.has("allocate_throw")) throw std::runtime_error("allocate");
  if (d.has("allocate_oom")) return ASC_OUT_OF_MEMORY;
  if (d.has("allocate_same")) return *data = first, ASC_OK;
  *data = std::aligned_alloc(ASC_MEMORY_ALIGNMENT, (bytes + 127) / 64 * 64);
  count(live_blocks, 1);
  if (d.has("allocate_odd")) *data = static_cast<char*>(*data) + 8;
  return ASC_OK;
}
void release(void* device, void* data, size_t) {
  const auto& d = *static_cast<Device*>(device);
  if (d.has("allocate_same")) return;
  count(live_blocks, -1);
  std::free(d.has("allocate_odd") ? static_cast<char*>(data) - 8 : data);
  if (d.has("release_throw")) throw std::runtime_error("release");
}
int load_chain(void* device, const asc_task* tasks, size_t size, void** chain, char* error) {
  const auto& d = *static_cast<Device*>(device);
  if (d.has("chain_null")) return ASC_OK;
  if (d.has("chain_fail")) return say(error, "no room for chains");
  *chain = new Chain{tasks, size};
  count(live_chains, 1);
  return ASC_OK;
}
void unload_chain(void*, void* chain) {
  count(live_chains, -1);
  delete static_cast<Chain*>(chain);
}

constexpr asc_device make(const char* name) {
  return {ASC_DEVICE_VERSION,
          sizeof(asc_device),
          name,
          "misbehaves on demand",
          kernels,
          5,
          sizeof(asc_kernel),
          open_device,
          close_device,
          describe,
          allocate,
          release,
          create_stream,
          destroy_stream,
          launch,
          submit,
          copy,
          record,
          synchronize,
          load_chain,
          unload_chain};
}
template <typename Change>
asc_device changed(const char* name, Change change) {
  asc_device device = make(name);
  change(device);
  return device;
}
const asc_kernel no_operator[] = {{nullptr, 2, 0, nullptr, nullptr, relu}};
const asc_kernel no_launch[] = {{"Relu", 2, 0, nullptr, nullptr, nullptr}};
const asc_kernel no_type[] = {{"Relu", 0, 0, nullptr, nullptr, relu}};
const asc_kernel unknown[] = {{"Frobnicate", 2, 0, nullptr, nullptr, relu}};

}  // namespace

extern "C" {
asc_device whole = make("wild");
asc_device twin = make("wild");
asc_device newer = changed("newer", [](asc_device& d) { d.size += 64; });
asc_device old = changed("old", [](asc_device& d) { d.version = 0; });
asc_device small = changed("small", [](asc_device& d) { d.size = 16; });
asc_device nameless = changed(nullptr, [](asc_device&) {});
asc_device shouting = changed("WILD!", [](asc_device&) {});
asc_device taken = changed("cpu", [](asc_device&) {});
asc_device closeless = changed("closeless", [](asc_device& d) { d.close = nullptr; });
asc_device recordless = changed("recordless", [](asc_device& d) { d.record = nullptr; });
asc_device kernelless = changed("kernelless", [](asc_device& d) { d.kernels = nullptr; });
asc_device narrow = changed("narrow", [](asc_device& d) { d.kernel_size = 8; });
asc_device greedy = changed("greedy", [](asc_device& d) { d.kernel_count = ~0u; });
asc_device kernel_operator = changed("k1", [](asc_device& d) { d.kernels = no_operator, d.kernel_count = 1; });
asc_device kernel_launch = changed("k2", [](asc_device& d) { d.kernels = no_launch, d.kernel_count = 1; });
asc_device kernel_type = changed("k3", [](asc_device& d) { d.kernels = no_type, d.kernel_count = 1; });
asc_device kernel_unknown = changed("k4", [](asc_device& d) { d.kernels = unknown, d.kernel_count = 1; });

// Devices, streams, chains and blocks that are not given back.
int left_over(void) {
  std::lock_guard<std::mutex> lock(counting);
  return open_devices + open_streams + live_chains + live_blocks;
}
}
