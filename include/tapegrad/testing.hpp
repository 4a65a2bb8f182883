/// For tests of models and operations: gradients against finite differences, steps against a reference.
#pragma once

#include <tapegrad/inspect/compare.hpp>
#include <tapegrad/inspect/doctest.hpp>
#include <tapegrad/inspect/gradcheck.hpp>

#if __has_include(<tapegrad/inspect/page/gradcheck_page.hpp>) && !defined(TAPEGRAD_NO_PAGE)  // see TAPEGRAD_BUILD_PAGE
#include <tapegrad/inspect/page/gradcheck_page.hpp>
#endif
