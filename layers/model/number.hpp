/// The number types of safetensors files.
#pragma once

#include <concepts>

namespace tapegrad::detail {

template <class T, class... Types>
concept OneOf = (std::same_as<T, Types> || ...);

template <class T>
concept Number = OneOf<T, bool, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
                       long long, unsigned long long, float, double>;

}  // namespace tapegrad::detail
