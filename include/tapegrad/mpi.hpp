/// Training one model with several processes over MPI. tapegrad.hpp does not include this component.
#pragma once

#include <tapegrad/optim/mpi/gradient_average.hpp>
#include <tapegrad/optim/mpi/group.hpp>
#include <tapegrad/optim/mpi/session.hpp>
#include <tapegrad/optim/mpi/sharded.hpp>
