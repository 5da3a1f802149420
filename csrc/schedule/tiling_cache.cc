#include "schedule/tiling_cache.h"

#include <algorithm>
#include <cstring>

#include "profile/clock.h"
#include "sync/fork.h"

namespace asc {
namespace {

// A copy of its own: a constant may be a part of a mapped file, which a cache entry must not keep.
HostTensor copy_of(const HostTensor& value) {
  HostTensor copy = HostTensor::allocate(value.dtype, value.shape);
  if (value.bytes()) std::memcpy(copy.mutable_data(), value.data(), value.bytes());
  return copy;
}

bool is_equal(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const HostTensor& x, const HostTensor& y) {
    return !x.buffer == !y.buffer && (!x.buffer || x.same_value(y));
  });
}

uint64_t ns_since(uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<double>(now_ticks() - ticks) * ns_per_tick());
}

}  // namespace

// --- shares --------------------------------------------------------------------------------------------------------

TilingCache::Share::Share(std::shared_ptr<TilingCache> cache, size_t limit_bytes)
    : cache_(std::move(cache)), fork_generation_(fork_generation()), limit_bytes_(limit_bytes) {
  std::lock_guard<std::mutex> lock(cache_->mutex_);
  cache_->shares_.push_back(this);
  cache_->set_limit();
}

TilingCache::Share::~Share() {
  if (fork_generation_ != fork_generation()) return;  // another thread may have held the lock when the process forked
  std::lock_guard<std::mutex> lock(cache_->mutex_);
  cache_->shares_.erase(std::find(cache_->shares_.begin(), cache_->shares_.end(), this));
  // What nobody uses now may be used again by the next executable: only a smaller wish of a user shrinks the cache.
  if (!cache_->shares_.empty()) cache_->set_limit();
}

void TilingCache::Share::resize(size_t limit_bytes) {
  std::lock_guard<std::mutex> lock(cache_->mutex_);
  limit_bytes_ = limit_bytes;
  cache_->set_limit();
}

void TilingCache::set_limit() {
  size_t limit = 0;
  for (const Share* s : shares_) limit = std::max(limit, s->limit_bytes_);
  if (limit != entries_.limit_bytes()) entries_.resize(limit);
}

// --- instances -----------------------------------------------------------------------------------------------------

bool TilingCache::Instance::has_same_meaning(const Instance& o) const {
  return kernel == o.kernel && constant_inputs == o.constant_inputs && options == o.options &&
         input_types == o.input_types && output_types == o.output_types && constant_shapes == o.constant_shapes &&
         attributes.same_value(o.attributes) && is_equal(host_values, o.host_values);
}

TilingCache::InstancePtr TilingCache::intern(const Kernel* kernel, const PlanNode& node, const Plan& plan,
                                             const DeviceOptions& options) {
  auto made = std::make_shared<Instance>();
  made->kernel = kernel;
  made->op = node.node.op;
  made->attributes = node.node.attributes;
  made->options = options;
  made->input_types = node.input_types;
  made->output_types = node.output_types;
  made->constant_inputs = node.constant_inputs;
  if (node.is_on_host) made->constant_inputs |= uint64_t{1} << 63;  // host tilings never pack constants
  for (size_t i = 0; i < node.node.inputs.size() && i < 64; ++i) {
    const bool is_constant = (node.constant_inputs >> i) & 1u, is_read = (node.op->host_inputs >> i) & 1u;
    const auto constant = is_constant ? plan.values[node.node.inputs[i]].constant : nullptr;
    made->constant_shapes.push_back(constant ? constant->shape : Shape{});
    made->host_values.push_back(is_read && constant ? copy_of(*constant) : HostTensor{});
  }
  std::lock_guard<std::mutex> lock(mutex_);
  auto [it, end] = instances_.equal_range(node.node.op);
  while (it != end) {
    const InstancePtr known = it->second.lock();
    if (known && known->has_same_meaning(*made)) return known;
    it = known ? std::next(it) : instances_.erase(it);
  }
  made->number = next_instance_++;
  made->counters = &by_op_[made->op];
  instances_.emplace(made->op, made);
  return made;
}

// --- entries -------------------------------------------------------------------------------------------------------

std::shared_ptr<const Tiling> TilingCache::find(const Key& key, const Instance& instance) {
  std::lock_guard<std::mutex> lock(mutex_);
  return find_locked(key, instance);
}

std::shared_ptr<const Tiling> TilingCache::find_locked(const Key& key, const Instance& instance) {
  std::shared_ptr<const Entry> found = entries_.find(key);
  if (!found) return nullptr;
  ++instance.counters->hits;
  instance.counters->saved_ns += found->made_ns;
  const Tiling* tiling = found->tiling.get();
  return std::shared_ptr<const Tiling>(std::move(found), tiling);
}

std::shared_ptr<TilingCache::Flight> TilingCache::join_flight(const Key& key, bool* is_mine) {
  const ArrayView<const uint64_t> words = key.words();
  for (const std::shared_ptr<Flight>& f : flights_)
    if (f->key.size() == words.size() && std::equal(words.begin(), words.end(), f->key.begin())) {
      *is_mine = false;
      return f;
    }
  flights_.push_back(std::make_shared<Flight>());
  flights_.back()->key.assign(words.begin(), words.end());
  *is_mine = true;
  return flights_.back();
}

std::shared_ptr<const Tiling> TilingCache::fill(const Key& key, const InstancePtr& instance,
                                                const std::function<std::shared_ptr<const Tiling>()>& make) {
  bool is_mine = false;
  std::shared_ptr<Flight> flight;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::shared_ptr<const Tiling> landed = find_locked(key, *instance)) return landed;
    flight = join_flight(key, &is_mine);
  }
  if (!is_mine) {
    flight->done.wait(-1);
    if (!flight->tiling) return make();  // fails here as well, with this node's name
    std::lock_guard<std::mutex> lock(mutex_);
    ++instance->counters->hits;
    return flight->tiling;
  }
  const auto land = [&](std::shared_ptr<const Tiling> tiling, uint64_t ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    flights_.erase(std::find(flights_.begin(), flights_.end(), flight));
    TilingCounters& c = *instance->counters;
    ++c.misses;
    c.made_ns += ns;
    if (tiling) {
      const size_t bytes = entries_.insert(key, std::make_shared<const Entry>(Entry{tiling, instance, ns}),
                                           tiling->bytes() + sizeof(Entry));
      c.entries += bytes != 0;
      c.bytes += bytes;
      c.bypasses_large += bytes == 0;
    }
    flight->tiling = std::move(tiling);
    flight->done.open();
  };
  const uint64_t start = now_ticks();
  std::shared_ptr<const Tiling> tiling;
  try {
    tiling = make();
  } catch (...) {
    land(nullptr, ns_since(start));
    throw;
  }
  land(tiling, ns_since(start));
  return tiling;
}

std::shared_ptr<const Tiling> TilingCache::bypass(const Instance& instance,
                                                  const std::function<std::shared_ptr<const Tiling>()>& make) {
  const uint64_t start = now_ticks();
  std::shared_ptr<const Tiling> tiling = make();
  std::lock_guard<std::mutex> lock(mutex_);
  ++instance.counters->bypasses_off;
  instance.counters->made_ns += ns_since(start);
  return tiling;
}

void TilingCache::count_removal(void*, const Entry& entry, size_t bytes, bool is_evicted) {
  TilingCounters& c = *entry.instance->counters;
  --c.entries;
  c.bytes -= bytes;
  c.evictions += is_evicted;
}

size_t TilingCache::limit_bytes() {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.limit_bytes();
}

CacheCounters TilingCache::counters() {
  std::lock_guard<std::mutex> lock(mutex_);
  CacheCounters sum = entries_.counters();
  sum.hits = sum.misses = 0;  // a thread that waits for another's tiling looks more than once
  for (const auto& [op, c] : by_op_) {
    sum.hits += c.hits;
    sum.misses += c.misses;
  }
  return sum;
}

std::map<std::string, TilingCounters> TilingCache::counters_by_op() {
  std::lock_guard<std::mutex> lock(mutex_);
  return by_op_;
}

void TilingCache::drop(size_t n) {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.drop(n);
}

}  // namespace asc
