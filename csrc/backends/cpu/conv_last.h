// Convolution of float32 tensors with channels last (ops/channels_last.h), as they lie, with what follows it in the
// same pass over the result: by our own code where channels are few, of one position or not mixed, else by oneDNN.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/conv.h"
#include "backends/cpu/conv_end.h"

namespace asc::cpu {

// Whether convolutions are worth bringing into this form: whether oneDNN has code of its own for it here.
bool has_conv_last();

constexpr int kConvInputs = 3;  // x, weights, bias

// Whether the convolution and what follows it are quickest line by line of the output with sums in registers; that.
bool wants_lines(const TilingContext& ctx, const ConvShape& shape, const std::vector<ConvEnd>& ends);
// Whether what follows is long, and quicker in a pass of its own: channels fill less than half of the shortest vector.
bool waste_lines(const ConvShape& shape, const std::vector<ConvEnd>& ends);
std::shared_ptr<const Tiling> tile_lines(const TilingContext& ctx, const ConvShape& shape,
                                         const std::vector<ConvEnd>& ends);

// Of ConvLast and ConvTransposeLast.
ConvShape make_conv_last_shape(const TilingContext& ctx);

// `ctx`: of the convolution alone. The task's inputs are its three (absent ones included), then the operand of each
// kAdd. Null where one launch cannot do it.
std::shared_ptr<const Tiling> try_conv_last(const TilingContext& ctx, const std::vector<ConvEnd>& ends);

// Never null.
std::shared_ptr<const Tiling> tile_conv_last(const TilingContext& ctx);

}  // namespace asc::cpu
