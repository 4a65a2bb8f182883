/// Several processes that train one model, over MPI: the component mpi, which tapegrad.hpp leaves out.
#pragma once

#include "optim/mpi/gradient_average.hpp"
#include "optim/mpi/group.hpp"
#include "optim/mpi/session.hpp"
#include "optim/mpi/sharded.hpp"
