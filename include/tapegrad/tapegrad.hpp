/// All of tapegrad except testing.hpp (helpers for tests) and mpi.hpp (several processes).
#pragma once

#include <tapegrad/array_operands.hpp>
#include <tapegrad/engine/array/array.hpp>
#include <tapegrad/engine/array/batches.hpp>
#include <tapegrad/engine/array/mask.hpp>
#include <tapegrad/engine/array/pool.hpp>
#include <tapegrad/engine/array/random.hpp>
#include <tapegrad/engine/array/threads.hpp>
#include <tapegrad/engine/ops/ops.hpp>
#include <tapegrad/engine/tape/constants.hpp>
#include <tapegrad/engine/tape/no_grad.hpp>
#include <tapegrad/engine/tape/parameter_handle.hpp>
#include <tapegrad/engine/tape/print_values.hpp>
#include <tapegrad/engine/tape/record.hpp>
#include <tapegrad/engine/tape/tape.hpp>
#include <tapegrad/engine/tape/tensor.hpp>
#include <tapegrad/inspect/attention_map.hpp>
#include <tapegrad/inspect/derivatives.hpp>
#include <tapegrad/inspect/doctest.hpp>
#include <tapegrad/inspect/gradient_report.hpp>
#include <tapegrad/inspect/listing.hpp>
#include <tapegrad/inspect/recorded.hpp>
#include <tapegrad/layers/attention.hpp>
#include <tapegrad/layers/beam_search.hpp>
#include <tapegrad/layers/dropout.hpp>
#include <tapegrad/layers/embedding.hpp>
#include <tapegrad/layers/initialization.hpp>
#include <tapegrad/layers/key_value_cache.hpp>
#include <tapegrad/layers/layer_norm.hpp>
#include <tapegrad/layers/layer_scope.hpp>
#include <tapegrad/layers/linear.hpp>
#include <tapegrad/layers/low_rank.hpp>
#include <tapegrad/layers/model/checkpoint.hpp>
#include <tapegrad/layers/model/fields.hpp>
#include <tapegrad/layers/model/read_safetensors.hpp>
#include <tapegrad/layers/recompute.hpp>
#include <tapegrad/layers/sample.hpp>
#include <tapegrad/layers/skip_initialization.hpp>
#include <tapegrad/layers/transformer.hpp>
#include <tapegrad/layers/weight.hpp>
#include <tapegrad/optim/adam.hpp>
#include <tapegrad/optim/clip.hpp>
#include <tapegrad/optim/muon.hpp>
#include <tapegrad/optim/optimizer.hpp>
#include <tapegrad/optim/schedules.hpp>
#include <tapegrad/optim/sgd.hpp>

#if __has_include(<tapegrad/inspect/page/page.hpp>) && !defined(TAPEGRAD_NO_PAGE)  // see TAPEGRAD_BUILD_PAGE
#include <tapegrad/inspect/page/page.hpp>
#endif
