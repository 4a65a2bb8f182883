// Ranks that fail, leave, are killed or are launched differently: their output, and no deadlock.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "../support/run_example.hpp"
#include "../support/sanitized.hpp"
#include "../support/text.hpp"

namespace {

/// Runs that many ranks with mpirun, for at most a minute. Binds none, unless options say so.
Run mpirun(int ranks, const std::string& arguments, const std::string& environment = "",
           const std::string& options = "--bind-to none") {
  return run_shell(environment + " timeout 60 " TAPEGRAD_MPIRUN " " + options + " -n " + std::to_string(ranks) +
                   " $examples/mpi_program " + arguments);
}

/// The number of running ranks of the program, given an argument no other run has.
int left_running(const std::string& mark) {
  return std::stoi(run_shell("pgrep --full --count 'mpi_program .*[m]ark_" + mark + "' || true").out);
}

/// Expects a run to fail within so many seconds and to leave no rank behind.
Run check_ends(double seconds, int ranks, const std::string& what, const std::string& environment = "") {
  const std::string mark = std::to_string(getpid()) + what + std::to_string(ranks);
  const auto start = std::chrono::steady_clock::now();
  const Run run = mpirun(ranks, what + " mark_" + mark, environment);
  const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(run.status != 0);
  CHECK(taken < seconds);
  CHECK(left_running(mark) == 0);
  return run;
}

}  // namespace

// ---- failures -------------------------------------------------------------------------------------------------------

TEST_CASE("A rank whose session ends by an exception prints it and ends the others") {
  for (const int ranks : {2, 4}) {
    const Run run = check_ends(20, ranks, "last_throws");
    CHECK(contains(run.err, "mpi_program: the last rank has no data\n"));
    CHECK(contains(run.err, "MPI_Abort\n"));
    CHECK_FALSE(contains(run.err, "within"));
  }
}

TEST_CASE("A killed or exited rank ends the others") {
  CHECK(contains(check_ends(20, 2, "last_is_killed").err, "rank 1 with PID"));
  CHECK(contains(check_ends(20, 4, "last_is_killed").err, "rank 3 with PID"));
  CHECK(contains(check_ends(20, 2, "last_exits").err, "rank 1 with PID"));
}

TEST_CASE("Ranks wait no longer than the timeout for one that left or does something else") {
  for (const std::string what : {"last_leaves", "last_does_something_else"}) {
    const Run run = check_ends(25, 2, what, "TAPEGRAD_MPI_TIMEOUT=2");
    CHECK(contains(
        run.err,
        "tapegrad: rank 0 of 2: [sum] expected the other ranks within 2 seconds, got no answer: a rank may have "
        "exited or called something else; TAPEGRAD_MPI_TIMEOUT=<seconds> sets the limit\n"));
  }
}

TEST_CASE("An error on all ranks is printed once, and a rank that fails alone names itself and ends the others") {
  const Run all = mpirun(4, "all_fail");
  CHECK(all.status != 0);
  CHECK(count(all.err, "mpi_program: there is no such file\n") == 1);
  CHECK_FALSE(contains(all.err, " of 4: "));
  const Run run = check_ends(20, 4, "last_fails");
  CHECK(count(run.err, "mpi_program: rank 3 of 4: there is no such file\n") == 1);
  CHECK(count(run.err, "there is no such file") == 1);
  const Run alone = run_shell("$examples/mpi_program all_fail");
  CHECK(alone.err == "mpi_program: there is no such file\n");
  CHECK(alone.status == 1);
}

TEST_CASE("Ranks wait for late ones until the timeout") {
  const Run run = mpirun(2, "last_is_late", "TAPEGRAD_MPI_TIMEOUT=60");
  CHECK(run.status == 0);
}

TEST_CASE("An abandoned backward pass does not free memory that pending sums write to") {
  for (const int ranks : {2, 4}) {
    const Run run = mpirun(ranks, "abandon");
    CHECK(run.status == 0);
    CHECK(run.out == "goes on\n");
  }
}

TEST_CASE("Leaks of a rank are reported, but not those of Open MPI" * doctest::skip(!kAddressSanitized)) {
  const Run run = mpirun(2, "last_leaks");
  CHECK(run.status != 0);
  CHECK(count(run.err, "SUMMARY: AddressSanitizer: 800 byte(s) leaked in 1 allocation(s).") == 1);
  CHECK(count(run.err, "SUMMARY") == 1);
}

// ---- start ----------------------------------------------------------------------------------------------------------

TEST_CASE("An invalid timeout is refused by every rank, and by a single process") {
  const std::string words = "mpi_program: [Session] expected a timeout above 0 seconds, got TAPEGRAD_MPI_TIMEOUT=";
  for (const std::string timeout : {"x", "0", "-1", "nan", "2s", "1e999", " 2"}) {
    const Run alone = run_shell("TAPEGRAD_MPI_TIMEOUT='" + timeout + "' $examples/mpi_program");
    CHECK(alone.status == 1);
    CHECK(alone.err == words + timeout + "\n");
  }
  const Run run = mpirun(2, "nothing", "TAPEGRAD_MPI_TIMEOUT=x");
  CHECK(run.status != 0);
  CHECK(count(run.err, words + "x\n") >= 1);  // mpirun may end the second rank before its message
  CHECK(run_shell("TAPEGRAD_MPI_TIMEOUT= $examples/mpi_program").status == 0);
  CHECK(run_shell("TAPEGRAD_MPI_TIMEOUT=0.5 $examples/mpi_program").status == 0);
}

TEST_CASE("A timeout set by the program overrides the environment's") {
  const Run bad = run_shell("TAPEGRAD_MPI_TIMEOUT=5 $examples/mpi_program with_timeout -1");
  CHECK(contains(bad.err, "[Session] expected a timeout above 0 seconds, got -1"));
  CHECK(run_shell("TAPEGRAD_MPI_TIMEOUT=x $examples/mpi_program with_timeout 5").status == 0);
}

TEST_CASE("A second session is refused, and so is a group without a session under mpirun") {
  const Run twice = mpirun(2, "two_sessions");
  CHECK(twice.status != 0);
  CHECK(contains(twice.err, "mpi_program: [Session] expected one Session per program, got a second one\n"));
  const Run without = mpirun(2, "no_session");
  CHECK(without.status != 0);
  CHECK(contains(without.err,
                 "mpi_program: [Group] expected a Session in each of the 2 ranks started by mpirun, got none; create a "
                 "tg::mpi::Session in main()\n"));
  CHECK(mpirun(1, "no_session").out == "1\n");
  CHECK(run_shell("$examples/mpi_program no_session").out == "1\n");
}

// ---- processors -----------------------------------------------------------------------------------------------------

TEST_CASE("Ranks share their node's processors, and report if mpirun gives them fewer") {
  const std::string processors = run_shell("nproc").out;
  const int all = std::stoi(processors);
  const auto threads = [](int number) { return "threads: " + std::to_string(number) + "\n"; };
  const std::string note =
      "tapegrad: each rank is bound to 1 of its node's " + std::to_string(all) + " processors but could use ";

  const Run two = mpirun(2, "threads");
  CHECK(count(two.out, threads(std::max(1, all / 2))) == 2);
  CHECK(two.err.empty());
  CHECK(count(mpirun(all + 1, "threads").out, threads(1)) == static_cast<std::size_t>(all) + 1);

  const Run one = mpirun(1, "threads");
  CHECK(one.out == threads(all));
  CHECK(one.err.empty());

  const Run bound = mpirun(1, "threads", "", "--bind-to core");
  CHECK(bound.out == threads(1));
  if (all > 1) {
    CHECK(bound.err == note + std::to_string(all) + "; pass --bind-to none to mpirun\n");
    const Run both = mpirun(2, "threads", "", "--bind-to core");
    CHECK(count(both.err, "tapegrad: ") == (all > 3 ? 1 : 0));
  }

  const Run set = mpirun(2, "threads", "TAPEGRAD_NUM_THREADS=3");
  CHECK(count(set.out, threads(3)) == 2);
  CHECK(mpirun(1, "threads", "TAPEGRAD_NUM_THREADS=3", "--bind-to core").err.empty());
}
