/// What ranks compare instead of arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapegrad::mpi::detail {

/// Of 64 bits; any change of a byte changes it.
std::uint64_t checksum(const void* bytes, std::size_t count);

}  // namespace tapegrad::mpi::detail
