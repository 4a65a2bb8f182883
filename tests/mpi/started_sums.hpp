/// Records the library's nonblocking sums over the ranks.
#pragma once

#include <cstddef>
#include <vector>

/// The sizes of these sums, in their order. Callers clear the list.
std::vector<std::size_t>& started_sums();

/// True if MPI is initialized.
bool mpi_has_begun();
