// The single-file programs reach a fixed loss on small synthetic data.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "run_example.hpp"

namespace tg = tapegrad;

TEST_CASE("microgpt memorizes a few names and prints names") {
  const TemporaryFolder folder;
  std::ofstream(folder / "names.txt") << "anna\r\nbert\r\ncarla\ndavid\nemma\nfelix\ngreta\nhugo\nInvalid\n";
  const Run run = run_well("microgpt " + folder.path("names.txt"));
  CHECK(run.number_after("step 0, loss ") > 3);
  CHECK(run.number_after("step 2000, loss ") < 0.6);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 16);
  int known = 0;
  for (const char* name :
       {"\nanna\n", "\nbert\n", "\ncarla\n", "\ndavid\n", "\nemma\n", "\nfelix\n", "\ngreta\n", "\nhugo\n"})
    known += contains(run.out, name);
  CHECK(known >= 3);
}

TEST_CASE("tabular predicts Friedman's first function") {
  const TemporaryFolder folder;
  {
    std::ofstream table(folder / "table.csv");
    table << "x1,x2,x3,x4,x5,y\n";
    tg::Generator generator(1);
    const tg::Array<double> x = tg::uniform<double>({1000, 5}, 0, 1, generator);
    for (std::size_t i = 0; i < 1000; ++i) {
      for (std::size_t j = 0; j < 5; ++j) table << x(i, j) << ',';
      table << 10 * std::sin(3.14159265 * x(i, 0) * x(i, 1)) + 20 * std::pow(x(i, 2) - 0.5, 2) + 10 * x(i, 3) +
                   5 * x(i, 4)
            << '\n';
    }
  }
  const Run run = run_well("tabular " + folder.path("table.csv"));
  CHECK(run.number_after("test R² ") > 0.95);
}

TEST_CASE("train_gpt learns a repetitive text, saves its weights and continues from them") {
  const TemporaryFolder folder;
  folder.write("text.txt", repeated("the tape records, the sweep propagates.\n", 400));
  const std::string command = "cd " + folder.path("") + " && $examples/train_gpt text.txt ";
  const Run run = run_shell(command + "60");
  CHECK(run.status == 0);
  CHECK(run.number_after("step 60: validation loss ") < 1.5);
  const Run again = run_shell(command + "1");
  CHECK(contains(again.out, "loaded the weights in text-gpt.safetensors\n"));
  CHECK(again.number_after("step 0: validation loss ") < 1.5);
  const Run sampling = run_shell(command + "0");
  CHECK(sampling.status == 0);
  CHECK(contains(sampling.out, "loaded the weights in text-gpt.safetensors\n"));
  CHECK(!contains(sampling.out, "step 0"));
  std::filesystem::copy_file(folder / "text.txt", folder / "other.txt");
  check_message(run_shell("cd " + folder.path("") + " && $examples/train_gpt other.txt 0"), "train_gpt",
                "expected saved weights in other-gpt.safetensors, got no such file");
  folder.write("text.txt", repeated("Über alles Bytes", 100));
  CHECK(contains(run_shell(command + "1").out, "loaded the weights in text-gpt.safetensors\n"));
}

TEST_CASE("The one-file programs name their expected input") {
  const Run names = run_example("microgpt");
  CHECK(names.status == 2);
  CHECK(names.err == "expected a file of lowercase names: microgpt names.txt\n");
  check_message(run_example("tabular missing.csv"), "tabular", "missing.csv: expected a header line");
  check_message(run_example("train_gpt missing.txt"), "train_gpt",
                "expected a readable text file, got \"missing.txt\"; check the path");
  const TemporaryFolder folder;
  for (const auto& [row, told] : {std::pair("7x,1\n", "lines of 2 or more numbers"),
                                  {"2024-01-15,1\n", "lines of 2 or more numbers"},
                                  {"15.01.2024,1\n", "lines of 2 or more numbers"},
                                  {"7,0\n", "in the last column"}}) {
    const std::string table = folder.write("table.csv", "a,b\n" + repeated(row, 30));
    check_message(run_example("tabular " + table), "tabular", told);
  }
  std::ofstream(folder / "short.txt") << "too short";
  check_message(run_example("train_gpt " + folder.path("short.txt")), "train_gpt",
                "short.txt: expected at least 1280 bytes, got 9; use a longer text");
  for (const char* steps : {"many", "-1", "10k", "1e3", "99999999999999999999"})
    check_message(run_example("train_gpt missing.txt " + std::string(steps)), "train_gpt",
                  "expected a whole number of steps, got \"" + std::string(steps) + '"');
}
