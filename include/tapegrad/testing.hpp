/// For tests of models and operations: gradients against finite differences, steps against a reference.
#pragma once

#include <tapegrad/inspect/compare.hpp>
#include <tapegrad/inspect/doctest.hpp>
#include <tapegrad/inspect/gradcheck.hpp>

#if __has_include(<tapegrad/inspect/page/gradcheck_page.hpp>)  // unless built with TAPEGRAD_BUILD_PAGE=OFF
#include <tapegrad/inspect/page/gradcheck_page.hpp>
#endif
