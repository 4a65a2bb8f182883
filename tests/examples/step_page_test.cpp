// Pages of one training step, written by text_classifier and language_model.

#include "../../examples/common/step_page.hpp"

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "../../examples/common/printable.hpp"
#include "language_model_texts.hpp"
#include "page_data.hpp"
#include "run_example.hpp"
#include "text_classifier_data.hpp"

namespace tg = tapegrad;
using page::named;

namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

/// The only step of a page, without its times, as these differ between runs.
json step_of(const TemporaryFolder& folder, const std::string& file) {
  const json steps = page_data(folder.read(file))["steps"];
  REQUIRE(steps.size() == 1);
  json step = steps[0];
  for (json& node : step["nodes"]) {
    CHECK(node.contains("forward_ns") == (node["kind"] == "operation"));
    for (const char* time : {"forward_ns", "backward_ns"}) node.erase(time);
  }
  return step;
}

/// Expects this number of attentions in a step, all with these tokens, and no dropout.
void check_attentions(const json& step, const Texts& tokens, std::size_t count) {
  std::size_t found = 0;
  for (const json& node : step["nodes"]) {
    CHECK(node["operation"] != "dropout");
    if (!node.contains("attention")) continue;
    ++found;
    CHECK(node["attention"]["queries"] == json::array({tokens}));
    CHECK(node["attention"]["keys"] == json::array({tokens}));
    CHECK(node["attention"]["gradient"].is_object());
  }
  CHECK(found == count);
}

/// The loss of a step, as printed by the program.
double loss_of(const json& step, const Run& run) {
  const json& loss = step["nodes"][step["loss"].get<std::size_t>()];
  CHECK(loss["operation"] == "cross_entropy");
  const double number = loss["value"]["statistics"]["mean"];
  CHECK(Run{0, run.out_from("a training step on "), ""}.number_after(": loss ") ==
        doctest::Approx(number).epsilon(1e-4 / number));
  return number;
}

/// The probability of the label printed by text_classifier for its only --classify.
double probability_of(const std::string& label, const Run& run) {
  return Run{0, run.out_from("your words:"), ""}.number_after(" " + label + ' ') / 100;
}

}  // namespace

TEST_CASE("Invisible tokens have visible labels") {
  CHECK(examples::visible("a b\n\t\x1b") == "a␣b↵→\\x1b");
  CHECK(examples::visible(Texts{" ", "ß"}) == Texts{"␣", "ß"});
}

TEST_CASE("A step for a page uses no dropout, and leaves the model, gradients and random numbers unchanged") {
  const TemporaryFolder folder;
  struct Model {
    tg::Linear<> head{3, 2};
    tg::Dropout dropout{0.5};
    TAPEGRAD_FIELDS(head, dropout)
  } model;
  const tg::Tensor<float> x = tg::tensor({{1, 2, 3}});
  {
    tg::Tape tape;
    tg::sum(model.head(x)).backward();
  }
  const tg::Array<float> gradient = model.head.weight.grad();
  const tg::Generator random = tg::default_generator();

  std::ostringstream out;
  std::streambuf* const terminal = std::cout.rdbuf(out.rdbuf());
  const auto loss_of = [&](const Model& m) { return tg::sum(m.dropout(m.head(x * 2.0f))); };
  examples::write_step(folder.path("page"), model, loss_of, {"twice x", {}});
  std::cout.rdbuf(terminal);

  CHECK(out.str().starts_with("\na training step on twice x: loss "));
  CHECK(model.head.weight.grad() == gradient);
  CHECK(model.dropout.training);
  CHECK(tg::default_generator() == random);
  const json step = step_of(folder, "page");
  check_attentions(step, {}, 0);
  CHECK(named(step, "head.weight")["gradient"]["statistics"]["largest"] == 6);
}

TEST_CASE("text_classifier --page shows a step on a text, with its predicted label") {
  const TemporaryFolder folder;
  const std::string learn = "text_classifier --tokens characters --positions yes --dropout 0.2 --data " +
                            folder.write("words", words_of_three_languages(200)) + tiny,
                    save = " --save " + folder.path("model"),
                    text = " --classify 'KA tö' --page " + folder.path("page");
  run_well(learn + save);
  const std::string model = folder.read("model");
  const Run run = run_well(learn + save + text + " 'KA tö'");
  CHECK(folder.read("model") == model);

  const json step = step_of(folder, "page");
  check_attentions(step, {"⊢", "k", "a", "␣", "t", "ö", "⊣"}, 1);
  const Texts labels{"isle", "nörd", "val"};
  const json& logits = named(step, "logits");
  CHECK(logits["axis_names"] == json{"batch", "label"});
  CHECK(logits["axes"][1] == labels);
  CHECK(named(step, "head.weight")["axes"][0] == labels);
  CHECK(named(step, "embedding.weight")["axes"][0][2] == "⊢");
  CHECK(named(step, "positions.weight")["gradient"].is_object());

  const double loss = loss_of(step, run);
  const std::string about = "'ka tö' with its predicted label, ", said = run.out_from(about);
  REQUIRE(said != "");
  const std::string label = said.substr(about.size(), said.find(':') - about.size());
  CHECK(page_data(folder.read("page"))["title"] == "A training step on " + about + label);
  CHECK(std::exp(-loss) == doctest::Approx(probability_of(label, run)).epsilon(0.002));
  for (const std::string& other : labels) CHECK(probability_of(label, run) >= probability_of(other, run));

  run_well("text_classifier --load " + folder.path("model") + text + " 'KA tö'");
  CHECK((step_of(folder, "page") == step));  // too long to print
}

TEST_CASE("text_classifier --page without a text shows a step on the first test text, with its own label") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 1; i <= 100; ++i) lines += i % 10 ? (i % 2 ? "yes a b\n" : "no c d\n") : "no A new one\n";
  const std::string data = " --data " + folder.write("lines", lines), page = " --page " + folder.path("page"),
                    model = folder.path("model");
  const Run run = run_well("text_classifier" + data + tiny + "--save " + model + page + " --classify 'a new one'");
  const json step = step_of(folder, "page");
  check_attentions(step, {"⊢", "a", "new", "one", "⊣"}, 1);
  CHECK(run.out_from("a training step on 'a new one', the first test text, with its label, no: loss ") != "");
  CHECK(probability_of("no", run) < 0.5);
  CHECK(std::exp(-loss_of(step, run)) == doctest::Approx(probability_of("no", run)).epsilon(0.002 / 0.1));

  run_well("text_classifier --load " + model + data + page);
  CHECK(named(step_of(folder, "page"), "logits") == named(step, "logits"));
  run_well("text_classifier --load " + model + page + " ''");
  check_attentions(step_of(folder, "page"), {"⊢", "⊣"}, 1);
}

TEST_CASE("language_model --page shows a step on a line, without changing the run") {
  const TemporaryFolder folder;
  const std::string files = " --checkpoint " + folder.path("run") + " --save " + folder.path("model"),
                    page = " --page " + folder.path("page"), text = page + " katé",
                    explain = " --explain katé --explain-to " + folder.path("map"),
                    learn = "language_model --length 1 --lines --data " +
                            folder.write("names", joined(names(100)) + "kate\n") + narrow + "--layers 2 --dropout 0.2";
  run_well(learn + files);
  const std::string run_before = folder.read("run"), model_before = folder.read("model");
  const Run run = run_example(learn + files + text + explain);
  CHECK(folder.read("run") == run_before);
  CHECK(folder.read("model") == model_before);

  const json step = step_of(folder, "page");
  check_attentions(step, {"⊢", "k", "a", "t", "é"}, 2);
  const json& logits = named(step, "logits");
  CHECK(logits["axis_names"] == json{"batch", "token", "next token"});
  CHECK(logits["axes"][1] == Texts{"⊢", "k", "a", "t", "é"});
  CHECK(logits["axes"][2] == Texts{"(padding)", "(unknown)", "⊢", "⊣", "L", "a", "k", "o", "r", "t", "u", "ß", "é"});
  CHECK(named(step, "embedding.weight")["axes"][0] == logits["axes"][2]);
  CHECK(named(step, "blocks.1.feed_forward.fc1.weight")["gradient"].is_object());
  CHECK(page_data(folder.read("page"))["title"] == "A training step on 'katé'");
  CHECK(std::exp(loss_of(step, run)) ==
        doctest::Approx(run.number_after("attention on the text (perplexity ")).epsilon(0.002));

  for (const char* source : {" --load ", " --resume "}) {
    run_well("language_model --length 1" + (source + folder.path("run")) + text);
    CHECK((step_of(folder, "page") == step));  // too long to print
  }
}

TEST_CASE("language_model --page shows the first test text, including unknown characters") {
  const TemporaryFolder folder;
  std::vector<std::string> lines = names(100);
  lines[9] = "kaQ";
  const std::string list = " --lines --data " + folder.write("list", joined(lines)), page = folder.path("page");
  const Run of_list = run_well("language_model --length 1 --page " + page + list + one_block);
  CHECK(of_list.out_from("a training step on 'ka(unknown)', the first test text: loss ") != "");
  check_attentions(step_of(folder, "page"), {"⊢", "k", "a", "(unknown)"}, 1);
}

TEST_CASE("language_model --page truncates a text to the context and the next character, and says so") {
  const TemporaryFolder folder;
  const std::string learn =
      "language_model --length 1 --context 5 --data " + folder.write("text", rhyme(50)) + one_block;
  const auto about = [&](const std::string& text, const Texts& tokens) {
    const Run run = run_example(learn + "--page " + folder.path("page") + " '" + text + "'");
    check_attentions(step_of(folder, "page"), tokens, 1);
    loss_of(step_of(folder, "page"), run);
    const std::string found = run.out_from("a training step on ");
    CHECK(page_data(folder.read("page"))["title"] ==
          examples::one_line("A" + found.substr(1, found.find(": loss") - 1)));
    return found.substr(19, found.find(": loss") - 19);
  };
  CHECK(about("ist\nruh", {"i", "s", "t", "↵", "r"}) == "'ist\\nru', the first 6 of 7 characters");
  CHECK(about("ist ru", {"i", "s", "t", "␣", "r"}) == "'ist ru'");
  CHECK(about("is", {"i"}) == "'is'");
}

TEST_CASE("If the loss is NaN, --page shows the failed step and opens at the first NaN") {
  const TemporaryFolder folder;
  const std::string words = folder.write("words", words_of_three_languages(200)),
                    list = folder.write("list", "anna\nbob\ncarla\ndan\nemma\nfinn\ngina\nhugo\nida\njan\n");
  for (const std::string& learn :
       {"text_classifier --tokens characters --width 16 --heads 2 --dropout 0.3 --lr 1e6 --steps 100 --data " + words,
        "language_model --lines --width 16 --heads 2 --layers 1 --context 8 --optimizer sgd --clip 0 --dropout 0.3 "
        "--accumulate 2 --lr 1e6 --steps 100 --data " +
            list}) {
    const Run run = run_example(learn + " --page " + folder.path("page"));
    check_message(run, learn.substr(0, learn.find(' ')), "; use a lower learning rate");
    CHECK(run.out_from("web page of the step: ") == "web page of the step: " + folder.path("page") + '\n');
    const json data = page_data(folder.read("page")), opened = data["steps"][0]["opened_at"];
    CHECK(data["title"].get<std::string>().starts_with("Failed training step "));
    CHECK(contains(opened["text"].get<std::string>(), "expected finite "));
    CHECK(contains(run.out, opened["text"].get<std::string>() + '\n'));
    const json statistics = data["steps"][0]["nodes"][opened["node"].get<std::size_t>()]["value"]["statistics"];
    CHECK(statistics["nan"].get<int>() + statistics["infinite"].get<int>() > 0);
  }
}
