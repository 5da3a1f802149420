// Functions of one byte, as tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asc::cpu {

constexpr size_t kByteTableSize = 256;

// y[i] = table[x[i]]; y may be x.
void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, size_t n);

}  // namespace asc::cpu
