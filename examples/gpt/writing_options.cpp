#include "writing_options.hpp"

#include "../common/program.hpp"

using examples::number;
using examples::whole_number;

void add_writing_options(CLI::App& app, WritingOptions& options, const std::string& group, const WritingHelp& what) {
  const auto add = [&](const char* name, auto& value, const char* type, const std::string& text) {
    return app.add_option(name, value, text)->type_name(type)->group(group);
  };
  add("--prompt", options.prompt, "TEXT", what.prompt)->check(examples::some_text());
  add("--length", options.length, "N", what.length)->check(whole_number(1));
  add("--temperature", options.temperature, "T",
      "Sampling temperature: 1 samples from the model's distribution, 0\n"
      "always takes the likeliest " +
          what.unit + " (default 0.8)")
      ->check(number(0, 1000));
  add("--top-k", options.top_k, "N", "Sample only from the N likeliest " + what.unit + "s (default: all)")
      ->check(whole_number(1));
  add("--top-p", options.top_p, "P",
      "Sample only from the smallest set of likeliest " + what.unit +
          "s whose\n"
          "total probability reaches P (default 1: all)")
      ->check(number(1e-9, 1));
}
