// Executable::stats: what its parts count, by name.
#include "runtime/executable.h"

namespace asc {

Stats Executable::stats() {
  Stats stats = counters();
  if (foresight_)
    for (auto& counter : foresight_->stats()) stats.push_back(std::move(counter));
  return stats;
}

Stats Executable::counters() {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  const CacheCounters t = tilings_.cache().counters();
  const CacheCounters s = root_->schedule_counters();
  auto d = [](auto v) { return static_cast<double>(v); };
  return {{"runs", d(counters_.runs)},
          {"warmups", d(counters_.warmups)},
          {"launches", d(counters_.launches)},
          {"replays", d(counters_.replays)},
          {"pipelined", d(pipeline_->runs())},
          {"pipeline_workers", d(pipeline_->helpers() + 1)},
          {"worker_cpu_ns", d(pipeline_->worker_cpu_ns())},
          {"submits", d(counters_.submits)},
          {"submitted_tasks", d(counters_.submitted_tasks)},
          {"streams", d(streams_->count())},
          {"stream_waits", d(counters_.stream_waits)},
          {"loads", d(counters_.loads)},
          {"load_ns", d(counters_.load_ns)},
          {"syncs", d(counters_.syncs)},
          {"first_segments", d(counters_.first_segments)},
          {"first_segment_ns", d(counters_.first_segment_ns)},
          {"repeat_segments", d(counters_.repeat_segments)},
          {"repeat_segment_ns", d(counters_.repeat_segment_ns)},
          {"known_segments", d(counters_.known_segments)},
          {"sampled_segments", d(counters_.sampled_segments)},
          {"sampled_segment_ns", d(counters_.sampled_segment_ns)},
          {"nodes_resolved", d(context_.counters.resolved)},
          {"nodes_skipped", d(context_.counters.skipped)},
          {"host_calls", d(context_.counters.host_calls)},
          {"tiling_hits", d(context_.counters.tiling_hits)},
          {"tiling_misses", d(context_.counters.tiling_misses)},
          {"tiling_bypasses", d(context_.counters.tiling_bypasses)},
          {"twins", d(context_.counters.twins)},
          {"tiling_evictions", d(t.evictions)},
          {"tiling_entries", d(t.entries)},
          {"tiling_bytes", d(t.bytes)},
          {"tiling_limit_bytes", d(tilings_.cache().limit_bytes())},
          {"schedule_hits", d(s.hits)},
          {"schedule_misses", d(s.misses)},
          {"schedule_evictions", d(s.evictions)},
          {"schedule_entries", d(s.entries)},
          {"schedule_bytes", d(s.bytes)},
          {"schedule_spared", d(s.spared)},
          {"schedule_refused", d(s.refused)},
          {"pool_allocations", d(pool_->allocations())},
          {"pool_retries", d(pool_->retries())},
          {"pool_used_blocks", d(pool_->used_blocks())},
          {"pool_rounding_bytes", d(pool_->rounding_bytes())},
          {"pool_used_bytes", d(pool_->used_bytes())},
          {"pool_cached_bytes", d(pool_->cached_bytes())},
          {"arena_bytes", d(arena_->bytes())},
          {"arena_planned_bytes", d(counters_.arena_planned_bytes)},
          {"arena_bound_bytes", d(counters_.arena_bound_bytes)},
          {"packed_bytes", d(packs_.bytes())},
          {"device_bytes", d(device_->used_bytes())}};
}

}  // namespace asc
