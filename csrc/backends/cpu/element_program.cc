#include "backends/cpu/element_program.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/cpu/quantize.h"
#include "base/tensor.h"

namespace asc::cpu {
namespace {

constexpr int kMaxGathered = 8;
constexpr size_t kFillUnit = 4;
constexpr size_t kLongTile = 1024;  // of a single step with one operand that is gathered

// `rows` rows of n elements of T, one behind the other, from places `stride` bytes apart. A fill may write kFillUnit
// elements more.
template <typename T>
void gather_rows(bool fills, const char* from, int64_t stride, int64_t rows, size_t n, T* to) {
  for (; rows > 0; --rows, from += stride, to += n) {
    if (!fills) {
      std::memcpy(to, from, n * sizeof(T));
      continue;
    }
    T unit[kFillUnit];
    std::memcpy(unit, from, sizeof(T));
    std::fill_n(unit, kFillUnit, unit[0]);
    for (size_t i = 0; i < n; i += kFillUnit) std::memcpy(to + i, unit, sizeof unit);
  }
}

}  // namespace

int ElementProgram::add_operand(uint32_t table_index, const Shape& shape, size_t element_bytes) {
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i] == table_index) return static_cast<int>(i);
  operands_.push_back(table_index);
  shapes_.push_back(shape);
  sizes_.push_back(static_cast<uint8_t>(element_bytes));
  return static_cast<int>(operands_.size() - 1);
}

int ElementProgram::add_step(const ElementStep& source, const int* inputs, int count) {
  Step s;
  s.source = source;
  for (int i = 0; i < count; ++i) s.in[i] = static_cast<int16_t>(inputs[i]);
  steps_.push_back(s);
  return static_cast<int>(operands_.size() + steps_.size() - 1);
}

void ElementProgram::finish(const Shape& result, int threads) {
  threads_ = threads;
  std::vector<const Shape*> shapes;
  for (const Shape& s : shapes_) shapes.push_back(&s);
  const size_t count = operands_.size();
  strides_.assign(count * kMaxRank, 0);
  const int rank = merge_dims(result, shapes.data(), static_cast<int>(count), outer_dims_, strides_.data());
  outer_rank_ = rank ? rank - 1 : 0;
  row_size_ = rank ? static_cast<size_t>(outer_dims_[rank - 1]) : 1;
  row_count_ = 1;
  for (int d = 0; d < outer_rank_; ++d) row_count_ *= static_cast<size_t>(outer_dims_[d]);
  for (size_t i = 0; i < count; ++i) is_repeated_.push_back(rank && strides_[i * kMaxRank + rank - 1] == 0);
  for (size_t i = 0; i < strides_.size(); ++i) strides_[i] *= sizes_[i / kMaxRank];
  shapes_.clear();
  choose_gathers();
  if (steps_.back().source.conversion == ElementStep::Conversion::kToBytes) result_size_ = 1;
  choose_forms();
  assign_temporaries();
}

// Short rows are worth less than a call for each of them and each step: then a tile is several rows. Longer ones too,
// where that costs nothing.
void ElementProgram::choose_gathers() {
  constexpr size_t kShortRow = 48;
  const size_t count = operands_.size();
  if (row_size_ > kLongTile / 4 || row_count_ == 1) return;
  std::vector<Gather> gathers;
  int gathered = 0;
  for (size_t i = 0; i < count; ++i) {
    bool is_dense = is_repeated_[i] == 0, is_single = is_repeated_[i] != 0;
    int64_t step = static_cast<int64_t>(row_size_) * sizes_[i];
    for (int d = outer_rank_ - 1; d >= 0; step *= outer_dims_[d--]) {
      const int64_t stride = strides_[i * kMaxRank + static_cast<size_t>(d)];
      is_dense = is_dense && stride == step;
      is_single = is_single && stride == 0;
    }
    gathers.push_back(is_dense || is_single ? Gather::kNone : is_repeated_[i] ? Gather::kFill : Gather::kCopy);
    gathered += gathers.back() != Gather::kNone;
  }
  // One row for all, such as a number for each channel, stays gathered from tile to tile.
  const auto only = static_cast<size_t>(std::find(gathers.begin(), gathers.end(), Gather::kCopy) - gathers.begin());
  const bool stays = steps_.size() == 1 && gathered == 1 && only < count && last_stride(only) == 0 &&
                     static_cast<size_t>(outer_dims_[outer_rank_ - 1]) * row_size_ >= kLongTile;
  if (gathered > kMaxGathered || (row_size_ > kShortRow && !stays)) return;
  if (stays) tile_size_ = kLongTile;
  gathers_ = std::move(gathers);
  for (size_t i = 0; i < count; ++i)
    if (gathers_[i] == Gather::kFill) is_repeated_[i] = 0;
}

void ElementProgram::choose_forms() {
  for (Step& s : steps_) {
    const auto repeats = [&](int i) {
      const auto in = static_cast<size_t>(s.in[i]);
      return in < operands_.size() && is_repeated_[in] != 0;
    };
    if (s.source.conversion != ElementStep::Conversion::kNone) {
      s.form = s.source.conversion == ElementStep::Conversion::kToBytes ? Form::kToBytes : Form::kFromBytes;
    } else if (s.source.vv) {
      s.form = Form::kBinary;
      s.binary = repeats(0) ? s.source.sv : repeats(1) ? s.source.vs : s.source.vv;
    } else {
      s.form = s.source.unary ? Form::kUnary : s.source.param ? Form::kParam : Form::kClip;
      s.unary = s.source.unary;
      s.param = s.source.param ? s.source.param : s.source.clip;
      s.p = s.source.p;
      s.q = s.source.q;
    }
  }
}

// Step numbers become temporaries; one that is read for the last time may be overwritten by the step that reads it.
void ElementProgram::assign_temporaries() {
  const int first = static_cast<int>(operands_.size());
  std::vector<int> last_reader(steps_.size(), -1), place(steps_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (int16_t in : steps_[i].in)
      if (in >= first) last_reader[static_cast<size_t>(in - first)] = static_cast<int>(i);
  std::vector<int> free_places;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& s = steps_[i];
    int freed[3], freed_count = 0;
    for (int16_t& in : s.in) {
      if (in < first) continue;
      const auto from = static_cast<size_t>(in - first);
      in = static_cast<int16_t>(first + place[from]);
      if (last_reader[from] != static_cast<int>(i)) continue;
      last_reader[from] = -1;  // free it once, where it is read twice
      freed[freed_count++] = place[from];
    }
    // A conversion must not write over what it reads: the elements differ in size.
    const bool converts = s.form == Form::kFromBytes || s.form == Form::kToBytes;
    if (!converts) free_places.insert(free_places.end(), freed, freed + freed_count);
    if (i + 1 == steps_.size()) break;
    if (free_places.empty()) free_places.push_back(temporary_count_++);
    place[i] = free_places.back();
    free_places.pop_back();
    s.out = static_cast<int16_t>(place[i]);
    if (converts) free_places.insert(free_places.end(), freed, freed + freed_count);
  }
}

void ElementProgram::convert(const Step& s, const void* const* registers, void* to, size_t n) {
  const DType type = s.source.is_signed ? DType::kInt8 : DType::kUInt8;
  const float scale = *static_cast<const float*>(registers[s.in[1]]);
  const int32_t zero = zero_at(s.in[2] < 0 ? nullptr : registers[s.in[2]], type);
  if (s.form == Form::kToBytes)
    vec_table().quantize_bytes(static_cast<const float*>(registers[s.in[0]]), static_cast<uint8_t*>(to), n, scale,
                               static_cast<float>(zero), s.source.is_signed ? -128.0f : 0.0f);
  else
    vec_table().dequantize_bytes(static_cast<const uint8_t*>(registers[s.in[0]]), s.source.is_signed ? 128 : 0,
                                 static_cast<float*>(to), n, scale, zero + (s.source.is_signed ? 128 : 0));
}

void ElementProgram::run_step(const Step& s, const void* const* registers, void* result, size_t n) const {
  const auto in = [&](int i) { return static_cast<const float*>(registers[s.in[i]]); };
  auto* to = static_cast<float*>(result);
  switch (s.form) {
    case Form::kFromBytes:
    case Form::kToBytes:
      convert(s, registers, result, n);
      break;
    case Form::kUnary:
      s.unary(in(0), to, n);
      break;
    case Form::kParam:
      s.param(in(0), to, n, s.p, s.q);
      break;
    case Form::kBinary:
      s.binary(in(0), in(1), to, n);
      break;
    case Form::kClip: {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      const float low = s.in[1] < 0 ? -kInfinity : *in(1);
      const float high = s.in[2] < 0 ? kInfinity : *in(2);
      s.param(in(0), to, n, low, high);
      break;
    }
  }
}

void ElementProgram::run(const char* const* rows, char* y) const {
  const auto count = static_cast<int64_t>(row_count_), size = static_cast<int64_t>(row_size_);
  if (count == 0 || size == 0) return;  // before a reduction that has a result all the same
  if (threads_ == 1) return run_part(rows, y, {0, count}, {0, size});
  const bool by_rows = row_count_ > 1;
  const int64_t parts = 2 * threads_;
  parallel_for(threads_, parts, [&](int64_t i) {
    const Part part = by_rows ? part_of(count, 1, parts, i) : part_of(size, kTile, parts, i);
    if (part.begin < part.end) run_part(rows, y, by_rows ? part : Part{0, 1}, by_rows ? Part{0, size} : part);
  });
}

void ElementProgram::seek(int64_t first, int64_t* position, const char** row) const {
  for (int d = outer_rank_ - 1; d >= 0; --d) {
    position[d] = first % outer_dims_[d];
    first /= outer_dims_[d];
    for (size_t i = 0; i < operands_.size(); ++i)
      row[i] += position[d] * strides_[i * kMaxRank + static_cast<size_t>(d)];
  }
}

void ElementProgram::advance(int64_t steps, int64_t* position, const char** row) const {
  for (int d = outer_rank_ - 1; d >= 0; --d, steps = 1) {
    position[d] += steps;
    const bool wraps = position[d] == outer_dims_[d];
    if (wraps) steps -= outer_dims_[d];
    for (size_t i = 0; i < operands_.size(); ++i) row[i] += steps * strides_[i * kMaxRank + static_cast<size_t>(d)];
    if (!wraps) return;
    position[d] = 0;
  }
}

void ElementProgram::run_part(const char* const* rows, char* y, Part rows_part, Part elements) const {
  if (!gathers_.empty()) return run_short_rows(rows, y, rows_part);
  const size_t count = operands_.size();
  const auto end = static_cast<size_t>(elements.end);
  // A single step needs no tiles.
  const size_t tile = steps_.size() == 1 ? end : kTile;
  alignas(kAlignment) float temporaries[kMaxTemporaries][kTile];
  const char* row[kMaxOperands];
  const void* registers[kMaxOperands + kMaxTemporaries];
  int64_t position[kMaxRank] = {};
  std::copy(rows, rows + count, row);
  seek(rows_part.begin, position, row);
  y += static_cast<size_t>(rows_part.begin) * row_size_ * result_size_;
  for (int i = 0; i < temporary_count_; ++i) registers[count + static_cast<size_t>(i)] = temporaries[i];
  for (int64_t r = rows_part.begin; r < rows_part.end; ++r, y += row_size_ * result_size_) {
    for (auto begin = static_cast<size_t>(elements.begin); begin < end; begin += tile) {
      for (size_t i = 0; i < count; ++i) registers[i] = is_repeated_[i] ? row[i] : row[i] + begin * sizes_[i];
      const size_t n = std::min(tile, end - begin);
      for (const Step& s : steps_)
        run_step(s, registers, s.out < 0 ? static_cast<void*>(y + begin * result_size_) : temporaries[s.out], n);
    }
    advance(1, position, row);
  }
}

void ElementProgram::gather(size_t operand, const char* from, int64_t rows, int64_t first, void* tile) const {
  const int64_t stride = last_stride(operand);
  const bool fills = gathers_[operand] == Gather::kFill;
  const size_t at = static_cast<size_t>(first) * row_size_;
  if (sizes_[operand] == 1)
    gather_rows(fills, from, stride, rows, row_size_, static_cast<uint8_t*>(tile) + at);
  else
    gather_rows(fills, from, stride, rows, row_size_, static_cast<float*>(tile) + at);
}

// Each tile is as many rows as it holds. What is the same for all rows of a tile stays for the next one.
void ElementProgram::run_short_rows(const char* const* rows, char* y, Part rows_part) const {
  const size_t count = operands_.size();
  const auto tile = static_cast<int64_t>(tile_size_ / row_size_);
  alignas(kAlignment) float temporaries[kMaxTemporaries][kTile];
  alignas(kAlignment) float gathered[kMaxGathered * (kTile + kFillUnit)];
  static_assert(kLongTile + kFillUnit <= std::size(gathered));
  const char* held[kMaxOperands] = {};
  const char* row[kMaxOperands];
  const void* registers[kMaxOperands + kMaxTemporaries];
  int64_t position[kMaxRank] = {};
  std::copy(rows, rows + count, row);
  seek(rows_part.begin, position, row);
  y += static_cast<size_t>(rows_part.begin) * row_size_ * result_size_;
  for (int i = 0; i < temporary_count_; ++i) registers[count + static_cast<size_t>(i)] = temporaries[i];
  for (int64_t r = rows_part.begin; r < rows_part.end; r += tile) {
    const int64_t tile_rows = std::min(tile, rows_part.end - r);
    for (size_t i = 0, next = 0; i < count; ++i)
      registers[i] =
          gathers_[i] == Gather::kNone ? static_cast<const void*>(row[i]) : gathered + next++ * (kTile + kFillUnit);
    // Rows along the last outer dimension lie at even distances.
    for (int64_t k = 0, run = 0; k < tile_rows; k += run) {
      run = std::min(tile_rows - k, outer_dims_[outer_rank_ - 1] - position[outer_rank_ - 1]);
      for (size_t i = 0; i < count; ++i)
        if (gathers_[i] != Gather::kNone) {
          const bool stays = run == tile_rows && last_stride(i) == 0;
          if (!stays || held[i] != row[i]) gather(i, row[i], run, k, const_cast<void*>(registers[i]));
          held[i] = stays ? row[i] : nullptr;
        }
      advance(run, position, row);
    }
    const size_t n = static_cast<size_t>(tile_rows) * row_size_;
    for (const Step& s : steps_) run_step(s, registers, s.out < 0 ? static_cast<void*>(y) : temporaries[s.out], n);
    y += n * result_size_;
  }
}

bool ElementProgram::is_step_row(StepRow* row) const {
  const Step& s = steps_[0];
  if (steps_.size() != 1 || row_count_ != 1 || threads_ > 1 || s.form >= Form::kClip) return false;
  row->unary = s.unary;
  row->param = s.param;
  row->binary = s.binary;
  row->left = operands_[static_cast<size_t>(s.in[0])];
  if (s.binary) row->right = operands_[static_cast<size_t>(s.in[1])];
  row->n = row_size_;
  row->p = s.p;
  row->q = s.q;
  return true;
}

size_t ElementProgram::bytes() const {
  return sizeof(*this) + operands_.capacity() * sizeof(uint32_t) + shapes_.capacity() * sizeof(Shape) +
         steps_.capacity() * sizeof(Step) + sizes_.capacity() + strides_.capacity() * sizeof(int64_t) +
         is_repeated_.capacity();
}

}  // namespace asc::cpu
