// Options of optimizers and schedules.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include "default_options.hpp"

namespace tg = tapegrad;

TEST_CASE("Optimizers' options have PyTorch's defaults") {
  using Adam = tg::AdamOptions;
  using AdamW = tg::AdamWOptions;
  using Muon = tg::MuonOptions;
  using SGD = tg::SGDOptions;
  const std::array<double, 2> betas{0.9, 0.999};
  check_defaults(Adam{}, Option{&Adam::lr, 1e-3}, Option{&Adam::betas, betas}, Option{&Adam::eps, 1e-8},
                 Option{&Adam::weight_decay, 0});
  check_defaults(AdamW{}, Option{&AdamW::lr, 1e-3}, Option{&AdamW::betas, betas}, Option{&AdamW::eps, 1e-8},
                 Option{&AdamW::weight_decay, 0.01});
  check_defaults(Muon{}, Option{&Muon::lr, 1e-3}, Option{&Muon::weight_decay, 0.1}, Option{&Muon::momentum, 0.95},
                 Option{&Muon::nesterov, true}, Option{&Muon::ns_coefficients, std::array{3.4445, -4.775, 2.0315}},
                 Option{&Muon::eps, 1e-7}, Option{&Muon::ns_steps, std::size_t{5}},
                 Option{&Muon::match_rms_adamw, false});
  check_defaults(SGD{}, Option{&SGD::lr, 1e-3}, Option{&SGD::momentum, 0}, Option{&SGD::dampening, 0},
                 Option{&SGD::weight_decay, 0}, Option{&SGD::nesterov, false});
}

TEST_CASE("Optimizers' options keep all digits of a double, as in PyTorch") {
  check_digits(tg::AdamOptions{}, &tg::AdamOptions::lr, &tg::AdamOptions::eps, &tg::AdamOptions::weight_decay);
  check_digits(tg::AdamWOptions{}, &tg::AdamWOptions::lr, &tg::AdamWOptions::eps, &tg::AdamWOptions::weight_decay);
  using Muon = tg::MuonOptions;
  check_digits(Muon{}, &Muon::lr, &Muon::weight_decay, &Muon::momentum, &Muon::eps);
  using SGD = tg::SGDOptions;
  check_digits(SGD{}, &SGD::lr, &SGD::momentum, &SGD::dampening, &SGD::weight_decay);
  check_digits(tg::StepDecayOptions{}, &tg::StepDecayOptions::peak, &tg::StepDecayOptions::factor);
  check_digits(tg::DecayOptions{}, &tg::DecayOptions::peak, &tg::DecayOptions::floor);
  check_digits(tg::WarmupCosineOptions{}, &tg::WarmupCosineOptions::peak, &tg::WarmupCosineOptions::floor);
}
