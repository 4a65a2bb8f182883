// Pages that open at a failure: anomaly mode's errors, and failed gradient checks.
#include <tapegrad/inspect/internal/observers.hpp>
#include <tapegrad/inspect/page/internal/step.hpp>
#include <tapegrad/testing.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "in_double.hpp"
#include "page_data.hpp"
#include "refused.hpp"
#include "special_values.hpp"
#include "temporary_folder.hpp"

namespace {

using nlohmann::json;

constexpr tg::TapeOptions both{.detect_anomaly = true, .keep_values = true};

json told_step_of(const tg::Tape& tape, const tg::PageStep& told = {}) {
  const tg::detail::RecordedStep step{tape.recording(), told};
  return json::parse(tg::detail::page_json({&step, 1}, {}).text())["steps"][0];
}

const json& opened(const json& step) { return step["nodes"][step["opened_at"]["node"].get<std::size_t>()]; }

Tensor doubled(const Tensor& x) {  // its rule lacks the factor 2
  return tg::record("doubled", x.value() * 2.0, {x}, [](const auto& dy, auto& dx) { dx[0] += dy; });
}

// Sets TAPEGRAD_PAGE for its lifetime.
class PageWanted {
 public:
  explicit PageWanted(const std::string& path) { setenv("TAPEGRAD_PAGE", path.c_str(), 1); }
  ~PageWanted() { unsetenv("TAPEGRAD_PAGE"); }
  PageWanted(const PageWanted&) = delete;
  PageWanted& operator=(const PageWanted&) = delete;
};

}  // namespace

TEST_CASE("After an anomaly in the forward pass the page opens at the operation with the first NaN") {
  const Parameter w(Array{1.0, 0.0, -1.0});
  tg::Tape tape(both);
  const Tensor y = w * 2.0;
  const std::string error = error_message([&] { return tg::log(y); });
  const json step = told_step_of(tape);
  CHECK(step["opened_at"]["text"] == error);
  CHECK(step["opened_at"]["backward"] == false);
  CHECK(opened(step)["operation"] == "log");
  CHECK(opened(step)["value"]["statistics"]["infinite"] == 1);
  CHECK(opened(step)["value"]["statistics"]["nan"] == 1);
  CHECK(step["nodes"][opened(step)["inputs"][0].get<std::size_t>()]["value"]["statistics"]["least"] == -2);
}

TEST_CASE("An operation on constants with a NaN result is on the page, too") {
  const Tensor x(Array{-1.0});
  tg::Tape tape(both);
  error_message([&] { return tg::log(x); });
  const json step = told_step_of(tape);
  CHECK(opened(step)["operation"] == "log");
  CHECK(step["nodes"][0]["kind"] == "constant");
}

TEST_CASE("The page opens at a non-finite parameter") {
  Parameter w(Array{1.0}), bad(Array{kNaN});
  bad.set_name("head.bias");
  for (const bool frozen : {false, true}) {
    CAPTURE(frozen);
    bad.set_requires_grad(!frozen);
    tg::Tape tape(both);
    const Tensor y = w * 2.0;
    const std::string error = error_message([&] { return y + bad; });
    const json step = told_step_of(tape);
    CHECK(step["opened_at"]["text"] == error);
    CHECK(opened(step)["name"] == "head.bias");
    CHECK(opened(step)["value"]["statistics"]["nan"] == 1);
  }
}

TEST_CASE("After an anomaly in the backward pass the page opens at the operation whose rule made it") {
  const tg::Parameter<float> w(tg::Array<float>{4.0F, 0.0F});
  tg::Tape tape(both);
  const tg::Tensor<float> y = tg::sqrt(w * 3.0F), loss = tg::sum(y * 2.0F);
  const std::string error = error_message([&] { loss.backward(); });
  const json step = told_step_of(tape);
  CHECK(step["opened_at"]["text"] == error);
  CHECK(step["opened_at"]["backward"] == true);
  CHECK(opened(step)["operation"] == "sqrt");
  CHECK(opened(step)["reached"] == true);
  CHECK(opened(step)["contributions"][0]["statistics"]["infinite"] == 1);
  CHECK(step["nodes"][opened(step)["inputs"][0].get<std::size_t>()]["reached"] == false);
}

TEST_CASE("A tape continues after an anomaly, and the page shows its next backward pass") {
  const Parameter w(Array{1.0});
  tg::Tape tape(both);
  const Tensor y = w * w;
  const std::size_t size = tape.size();
  error_message([&] { return tg::log(y - 1.0) * w; });
  CHECK(tape.size() == size + 2);  // y - 1 and the faulty log
  y.backward();
  CHECK(w.grad() == Array{2.0});
  CHECK_FALSE(told_step_of(tape).contains("opened_at"));
}

TEST_CASE("A tape without kept values records no anomaly") {
  const Parameter w(Array{-1.0});
  tg::Tape tape({.detect_anomaly = true});
  const Tensor y = w * 2.0;
  const std::size_t size = tape.size();
  error_message([&] { return tg::log(y); });
  CHECK(tape.size() == size);
  CHECK_FALSE(tg::detail::observers_of(tape.recording()->of<double>())->anomaly()->found());
}

TEST_CASE("A page can open at a value by its name, with the available numbers") {
  Parameter w(Array{1.0});
  w.set_name("w");
  tg::Tape tape({.keep_values = true});
  Tensor y = w * 2.0;
  y.set_name("y");
  y.backward();
  CHECK_FALSE(told_step_of(tape).contains("opened_at"));
  CHECK(told_step_of(tape, {.opened_at = "y", .about = "look <here>"})["opened_at"] ==
        json{{"node", 1}, {"backward", false}, {"text", "look <here>"}});
  CHECK(told_step_of(
            tape, {.numeric = {{"w", Array{2.5}}}})["nodes"][0]["compared"]["gradient"]["statistics"]["mean"] == 2.5);
  CHECK_THROWS_WITH_AS(told_step_of(tape, {.numeric = {{"w", Array{1.0, 2.0}}}}),
                       Contains("expected a numeric gradient of the shape (1) of w, got (2)"), std::invalid_argument);
}

TEST_CASE("A page can open at a constant or a frozen parameter") {
  const Parameter w(Array{1.0});
  Parameter frozen(Array{2.0});
  Tensor target(Array{3.0});
  frozen.set_requires_grad(false);
  frozen.set_name("frozen"), target.set_name("target");
  tg::Tape tape(both);
  tg::mse_loss(w * frozen, target).backward();
  for (const char* name : {"frozen", "target"}) {
    const json step = told_step_of(tape, {.opened_at = name, .about = "look here"});
    CHECK(opened(step)["name"] == name);
    CHECK(step["opened_at"]["text"] == "look here");
  }
}

TEST_CASE("A failed gradient check writes a page to TAPEGRAD_PAGE, with both gradients of the wrong parameters") {
  const TemporaryFolder folder;
  const std::string path = folder.path("check.html");
  Parameter right(Array{3.0, 4.0}), less(Array{0.0, 0.1}), wrong(Array{1.0, 2.0});
  const auto f = [&] { return tg::tanh(right) + doubled(wrong) + doubled(less * 0.5); };
  const tg::NamedParameters<double> parameters{{"right", right}, {"less", less}, {"wrong", wrong}};
  const PageWanted wanted(path);
  const auto result = tg::testing::gradcheck_with_page(f, parameters);
  CHECK_FALSE(result);
  CHECK(result.report.find("page: " + path + "\n") != std::string::npos);

  const json step = page_data(folder.read("check.html"))["steps"][0];
  CHECK(opened(step)["name"] == "wrong");
  CHECK(step["opened_at"]["text"].get<std::string>().find("wrong(") != std::string::npos);
  CHECK(opened(step)["compared"]["name"] == "numeric");
  for (const char* of : {"least", "largest"}) {
    const double analytic = opened(step)["gradient"]["statistics"][of],
                 numeric = opened(step)["compared"]["gradient"]["statistics"][of];
    CHECK(numeric == doctest::Approx(2 * analytic).epsilon(1e-6));
  }
  for (const json& node : step["nodes"])
    CHECK(node.contains("compared") == (node["name"] == "wrong" || node["name"] == "less"));

  CHECK(tg::testing::gradcheck_with_page(f, parameters).report.find("check-2.html") != std::string::npos);
  CHECK(folder.read("check-2.html").starts_with("<!DOCTYPE html>"));
}

TEST_CASE("Checks that pass, and checks without TAPEGRAD_PAGE, write no page") {
  const TemporaryFolder folder;
  Parameter w(Array{1.0});
  {
    const PageWanted wanted(folder.path("none.html"));
    CHECK_GRADIENTS([&] { return w * 2.0; }, {{"w", w}});
  }
  const PageWanted nobody("");
  const auto result = tg::testing::gradcheck_with_page([&] { return doubled(w); }, {{"w", w}});
  CHECK_FALSE(result);
  CHECK(result.report.find("page") == std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE("Anomaly mode names a hook as the cause, on an operation and on a parameter, not the next rule") {
  for (const bool of_parameter : {false, true}) {
    Parameter w(Array{1.0, 2.0});
    w.set_name("head.weight");
    tg::Tape tape(both);
    const tg::LayerScope scope("head");
    Tensor y = w * 2.0;
    const auto spoil = [](auto& gradient) { gradient(1) = kInfinity; };
    of_parameter ? w.register_hook(spoil) : y.register_hook(spoil);
    const std::string error = error_message([&] { tg::sum(tg::exp(y)).backward(); });
    CHECK(error == std::string("[hook] expected finite gradients, a hook produced inf at (1) in the gradient of ") +
                       (of_parameter ? "head.weight (2); in layer head" : "mul #1 (2); in layer head"));
    const json step = told_step_of(tape);
    CHECK(step["opened_at"]["text"] == error);
    CHECK(step["opened_at"]["backward"] == true);
    CHECK(opened(step)["kind"] == (of_parameter ? "parameter" : "operation"));
    CHECK(opened(step)["gradient"]["statistics"]["infinite"] == 1);
  }
}

TEST_CASE("After a backward pass in one number type, the page does not open at an earlier error in the other") {
  const Parameter w(Array{-1.0});
  const tg::Parameter<float> v(tg::Array<float>{1});
  tg::Tape tape(both);
  error_message([&] { return tg::log(w); });
  tg::sum(v * v).backward();
  CHECK_FALSE(told_step_of(tape).contains("opened_at"));
}

TEST_CASE("A page for a value that is not on the tape opens at the loss, or at the last node") {
  const Parameter w(Array{1.0});
  tg::Tape tape(both);
  const tg::PageStep told{.opened_at = "elsewhere", .about = "it is not here"};
  CHECK(told_step_of(tape, told)["opened_at"]["node"] == -1);  // only the text
  const Tensor y = w * 2.0, loss = tg::sum(y), z = w * 3.0;
  CHECK(opened(told_step_of(tape, told))["operation"] == "mul");
  loss.backward();
  const json step = told_step_of(tape, told);
  CHECK(opened(step)["operation"] == "sum");
  CHECK(step["opened_at"]["text"] == "it is not here");
}

TEST_CASE("An unwritable page does not change the report") {
  Parameter w(Array{1.0});
  const PageWanted wanted("/no such folder/check.html");
  const std::string report = tg::testing::gradcheck_with_page([&] { return doubled(w); }, {{"w", w}}).report;
  CHECK(report.starts_with("w(0): analytic "));
  CHECK(report.find("no page: [save_page] ") != std::string::npos);
}

TEST_CASE("A gradient hidden by detach() has its page: the parameter is not on the tape") {
  const TemporaryFolder folder;
  Parameter w(Array{1.0});
  const PageWanted wanted(folder.path("detached.html"));
  const auto result = tg::testing::gradcheck_with_page([&] { return w.detach() * 2.0; }, {{"w", w}});
  CHECK_FALSE(result);
  CHECK(result.report.find("\npage: ") != std::string::npos);
}

TEST_CASE("Names in a check's list appear on its page and in its report, and are removed when it returns") {
  Parameter w(Array{1.0});
  w.set_name("model.w");
  std::string inside;
  tg::testing::gradcheck(
      [&] {
        inside = w.name();
        return w * 2.0;
      },
      {{"listed", w}});
  CHECK(inside == "listed");
  CHECK(w.name() == "model.w");
}
