/// Which sums over the ranks the library has begun.
#pragma once

#include <cstddef>
#include <vector>

/// Of how many numbers each was, in the order in which they began; to be cleared by who looks.
std::vector<std::size_t>& started_sums();

/// Whether MPI has begun.
bool mpi_has_begun();
