/// Checks of options structs.
#pragma once

#include <doctest/doctest.h>

/// A member of an options struct and its default.
template <class Options, class T> struct Option {
  T Options::*member;
  T value;
};
template <class Options, class T> Option(T Options::*, T) -> Option<Options, T>;
template <class Options> Option(double Options::*, int) -> Option<Options, double>;

/// Checks the defaults.
template <class Options, class... T> void check_defaults(Options options, Option<Options, T>... expected) {
  (CHECK(options.*expected.member == expected.value), ...);
}

/// Checks that the members hold more digits than a float.
template <class Options> void check_digits(Options options, auto... members) {
  ((options.*members = 0.1), ...);
  (CHECK(options.*members == 0.1), ...);
}
