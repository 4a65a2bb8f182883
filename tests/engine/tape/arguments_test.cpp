#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

namespace tg = tapegrad;

TEST_CASE_TEMPLATE("Arguments print on one line", T, float, double) {
  tg::Arguments<T> arguments;
  CHECK(to_string(arguments) == "");
  arguments.add("axis", -1).add("eps", T(1e-5)).add("heads", std::size_t{8}).add("keepdims", true);
  arguments.add("mask", tg::BoolArray(tg::Shape{2, 4}, false))
      .add("reduction", "mean")
      .add("equation", std::string("i"));
  arguments.add("shape", tg::IntList{2, -1}).add("before", tg::Shape{}).add("axes", std::vector<int>{1, 0});
  arguments.add("ids", tg::IntArray(tg::Shape{3}, 0)).add("weight", tg::Array<T>(tg::Shape{}, T(1)));
  CHECK(to_string(arguments) ==
        "axis=-1 eps=1e-05 heads=8 keepdims=true mask=(2, 4) reduction=mean equation=i shape=(2, -1) before=() "
        "axes=(1, 0) ids=(3) weight=()");
}

TEST_CASE_TEMPLATE("Arguments store copies and skip empty ones", T, float, double) {
  tg::Arguments<T> arguments;
  arguments.add("min", std::optional<T>()).add("weight", tg::Value<T>());
  CHECK(arguments.arguments().empty());
  tg::Array<T> weight{1, 2};
  arguments.add("max", std::optional<T>(T(0.5))).add("weight", weight);
  weight(0) = 3;
  REQUIRE(arguments.arguments().size() == 2);
  CHECK(std::get<double>(arguments.arguments()[0].value) == 0.5);
  CHECK((*std::get<tg::Value<T>>(arguments.arguments()[1].value))(0) == 1);
  const tg::Value<T> shared = tg::make_value<T>(weight);
  arguments.add("shared", shared);
  CHECK(std::get<tg::Value<T>>(arguments.arguments()[2].value) == shared);
}

TEST_CASE("Intermediates are computed on request") {
  tg::Arguments<double> arguments;
  int calls = 0;
  arguments.add_intermediate("weights", tg::Shape{}, [&] { return tg::Array<double>(tg::Shape{}, ++calls); })
      .add_intermediate(
          "twice", tg::Shape{2},
          [] {
            return tg::Array<double>{1, 2};
          },
          [](const tg::Array<double>& dy) { return tg::Array<double>(2 * dy); });
  CHECK(calls == 0);
  REQUIRE(arguments.intermediates().size() == 2);
  CHECK(arguments.intermediates()[0].value()() == 1);
  CHECK(!arguments.intermediates()[0].gradient);
  CHECK(arguments.intermediates()[1].gradient(tg::Array<double>{1, 3}) == tg::Array<double>{2, 6});
  CHECK(to_string(arguments) == "");
}
