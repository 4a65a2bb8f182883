#include "writing_options.hpp"

#include "../common/program.hpp"

using examples::number;
using examples::whole_number;

void add_writing_options(CLI::App& app, WritingOptions& options, const std::string& group, const WhatIsWritten& what) {
  const auto add = [&](const char* name, auto& value, const char* type, const std::string& text) {
    return app.add_option(name, value, text)->type_name(type)->group(group);
  };
  add("--prompt", options.prompt, "TEXT", what.prompt)->check(examples::some_text());
  add("--length", options.length, "N", what.length)->check(whole_number(1));
  add("--temperature", options.temperature, "T",
      "How daring the writing is: at 1 each " + what.unit +
          " comes as often as\n"
          "the model expects it, at 0 always the likeliest (default 0.8)")
      ->check(number(0, 1000));
  add("--top-k", options.top_k, "N", "Choose from the N likeliest " + what.unit + "s alone (default: all)")
      ->check(whole_number(1));
  add("--top-p", options.top_p, "P",
      "Choose from the fewest likeliest " + what.unit +
          "s that are as likely as\n"
          "this together (default 1: all)")
      ->check(number(1e-9, 1));
}
