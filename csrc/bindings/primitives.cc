// The parts of the hot path that benchmarks and plug-in authors use by themselves: keyed cache and ring, and what the
// caches of tilings have counted.
#include <thread>

#include "bindings/arrays.h"
#include "bindings/module.h"
#include "bindings/unlocked.h"
#include "profile/clock.h"
#include "runtime/devices.h"
#include "schedule/keyed_cache.h"
#include "sync/ring.h"

namespace asc {
namespace {

// A Python object in a cache or ring; released under the GIL, as all use of the classes below is.
using Object = py::object;

Key key_of(const py::object& parts) {
  Key key;
  for (const py::handle part : parts) {
    if (py::isinstance<py::int_>(part)) {
      const uint64_t word = PyLong_AsUnsignedLongLongMask(part.ptr());
      if (PyErr_Occurred()) throw py::error_already_set();
      key.add(word);
    } else if (py::isinstance<py::bytes>(part)) {
      const auto text = part.cast<std::string_view>();
      key.add_bytes(text.data(), text.size());
    } else {
      throw GraphError("[cache] a key holds whole numbers and bytes, got " +
                       py::repr(py::type::of(part)).cast<std::string>());
    }
  }
  return key;
}

class PyCache {
 public:
  explicit PyCache(size_t limit_bytes) : cache_(limit_bytes) {}

  py::object get(const py::object& parts) {
    const std::shared_ptr<Object> found = cache_.find(key_of(parts));
    return found ? *found : py::none();
  }
  bool put(const py::object& parts, py::object value, size_t bytes) {
    const Key key = key_of(parts);
    if (cache_.find(key)) return false;
    return cache_.insert(key, std::make_shared<Object>(std::move(value)), bytes) != 0;
  }
  void resize(size_t limit_bytes) { cache_.resize(limit_bytes); }
  py::dict counters() const {
    const CacheCounters& c = cache_.counters();
    py::dict d;
    d["hits"] = c.hits;
    d["misses"] = c.misses;
    d["evictions"] = c.evictions;
    d["entries"] = c.entries;
    d["bytes"] = c.bytes;
    d["limit_bytes"] = cache_.limit_bytes();
    return d;
  }

 private:
  KeyedCache<Object> cache_;
};

class PyRing {
 public:
  explicit PyRing(size_t capacity) : ring_(capacity) {}
  bool push(py::object value) { return ring_.try_push(std::move(value)); }
  py::object pop() {
    Object out;
    return ring_.try_pop(out) ? out : throw py::index_error("the ring is empty");
  }
  size_t capacity() const { return ring_.capacity(); }

 private:
  Ring<Object> ring_;
};

// Looks every key up, inserting what is missing, and returns (hits, nanoseconds per look-up).
py::tuple measure_cache(const py::array_t<uint64_t, py::array::c_style | py::array::forcecast>& keys, size_t entries,
                        size_t value_bytes) {
  KeyedCache<int> probe(~size_t{0} >> 1);
  Key key;
  key.add(0);
  const size_t entry_bytes = probe.insert(key, std::make_shared<int>(0), value_bytes);
  KeyedCache<int> cache(entries * entry_bytes);
  const uint64_t* words = keys.data();
  const auto count = static_cast<size_t>(keys.size());
  const auto value = std::make_shared<int>(0);
  const uint64_t start = now_ticks();
  {
    const Unlocked unlocked;
    for (size_t i = 0; i < count; ++i) {
      key.clear();
      key.add(words[i]);
      if (!cache.find(key)) cache.insert(key, value, value_bytes);
    }
  }
  const double ns = static_cast<double>(now_ticks() - start) * ns_per_tick();
  return py::make_tuple(cache.counters().hits, count ? ns / static_cast<double>(count) : 0.0);
}

// Nanoseconds per element from one thread to another, spinning on both sides.
double measure_ring(size_t capacity, size_t count, size_t batch) {
  const Unlocked unlocked;
  Ring<uint64_t> ring(capacity);
  uint64_t sum = 0;
  const uint64_t start = now_ticks();
  std::thread consumer([&] {
    std::vector<uint64_t> out(batch);
    for (size_t taken = 0; taken < count;) {
      const size_t n = ring.try_pop_batch(out.data(), batch);
      for (size_t i = 0; i < n; ++i) sum += out[i];
      taken += n;
      if (n == 0) std::this_thread::yield();
    }
  });
  for (uint64_t i = 0; i < count; ++i)
    while (!ring.try_push(i)) std::this_thread::yield();
  consumer.join();
  const double ns = static_cast<double>(now_ticks() - start) * ns_per_tick();
  if (sum != count * (count - 1) / 2) throw Error("[ring] elements were lost");
  return ns / static_cast<double>(count);
}

py::dict tilings_by_op(const std::string& device) {
  {
    const Unlocked unlocked;
    create_device(device, {});  // complains of an unknown name
  }
  py::dict all;
  for (const auto& [op, c] : shared_tilings(device)->counters_by_op()) {
    py::dict d;
    d["hits"] = c.hits;
    d["misses"] = c.misses;
    d["bypasses_off"] = c.bypasses_off;
    d["bypasses_too_large"] = c.bypasses_large;
    d["evictions"] = c.evictions;
    d["entries"] = c.entries;
    d["bytes"] = c.bytes;
    d["made_ns"] = c.made_ns;
    d["saved_ns"] = c.saved_ns;
    all[py::str(op)] = d;
  }
  return all;
}

}  // namespace

void bind_primitives(py::module_& m) {
  py::class_<PyCache>(m, "Cache")
      .def(py::init<size_t>(), py::arg("limit_bytes"))
      .def("get", &PyCache::get, py::arg("key"))
      .def("put", &PyCache::put, py::arg("key"), py::arg("value"), py::arg("bytes"))
      .def("resize", &PyCache::resize, py::arg("limit_bytes"))
      .def_property_readonly("counters", &PyCache::counters);
  py::class_<PyRing>(m, "Ring")
      .def(py::init<size_t>(), py::arg("capacity"))
      .def("push", &PyRing::push, py::arg("value"))
      .def("pop", &PyRing::pop)
      .def_property_readonly("capacity", &PyRing::capacity);
  m.def("hash_key", [](const py::object& parts) { return key_of(parts).hash(); }, py::arg("key"));
  m.def("measure_cache", &measure_cache, py::arg("keys"), py::arg("entries"), py::arg("value_bytes"));
  m.def("measure_ring", &measure_ring, py::arg("capacity"), py::arg("count"), py::arg("batch"));
  m.def("tilings_by_op", &tilings_by_op, py::arg("device"));
}

}  // namespace asc
