# tapegrad_embed(<target> <file> [<name>])
#
# Embeds the bytes of a file, such as a model, into a target:
#
#     tapegrad_embed(classifier model.safetensors)
#
#     #include <embedded/model_safetensors.hpp>
#     tg::load(model, embedded::model_safetensors());
#
# The function returns a std::span<const std::byte> of read-only bytes, aligned to 64. The function and its header are
# named <name>, by default the file's name with _ for characters not allowed in C++ names, and are visible to this target
# only. <file> is relative to the current source directory; the target is rebuilt when it changes. The assembler reads the
# file, with g++ and clang++ on Linux at the speed of the disk; its pages are loaded when first accessed.
function(tapegrad_embed target file)
  get_filename_component(path "${file}" ABSOLUTE)
  get_property(generated SOURCE "${path}" PROPERTY GENERATED)
  if(NOT generated AND (NOT EXISTS "${path}" OR IS_DIRECTORY "${path}"))
    message(FATAL_ERROR "tapegrad_embed: expected a file, got ${path}, which does not exist or is a folder. Paths are "
                        "relative to ${CMAKE_CURRENT_SOURCE_DIR}. If the build generates the file, set its source "
                        "property GENERATED")
  endif()
  get_filename_component(name "${file}" NAME)
  if(ARGC GREATER 2)
    set(name "${ARGV2}")
  endif()
  string(MAKE_C_IDENTIFIER "${name}" name)
  get_target_property(names ${target} TAPEGRAD_EMBEDDED)
  if(name IN_LIST names)
    message(FATAL_ERROR "tapegrad_embed: ${target} has two files named ${name}; pass another <name> for one of them")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY TAPEGRAD_EMBEDDED ${name})

  # The target's name distinguishes files with the same name in several parts of a program.
  string(MAKE_C_IDENTIFIER "of_${target}" owner)
  set(symbol "tapegrad_embedded_${owner}_${name}")
  string(REPLACE "\"" "\\\"" quoted "${path}")

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tapegrad_embed/${target}")
  file(CONFIGURE OUTPUT "${folder}/embedded/${name}.hpp" @ONLY CONTENT [=[
#pragma once

#include <cstddef>
#include <span>

namespace embedded {
inline namespace @owner@ {

std::span<const std::byte> @name@();

}  // namespace @owner@
}  // namespace embedded
]=])
  file(CONFIGURE OUTPUT "${folder}/${name}.cpp" @ONLY CONTENT [=[
#include "embedded/@name@.hpp"

#include <cstdint>

asm(R"asm(
  .pushsection .rodata
  .balign 64
  .globl @symbol@, @symbol@_size
  .hidden @symbol@, @symbol@_size
@symbol@:
  .incbin "@quoted@"
@symbol@_end:
  .balign 8
@symbol@_size:
  .8byte @symbol@_end - @symbol@
  .popsection
)asm");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte @symbol@[];
[[gnu::visibility("hidden")]] extern const std::uint64_t @symbol@_size;
}

std::span<const std::byte> embedded::@owner@::@name@() { return {@symbol@, @symbol@_size}; }
]=])
  target_sources(${target} PRIVATE "${folder}/${name}.cpp")
  target_include_directories(${target} PRIVATE "${folder}")
  set_property(SOURCE "${folder}/${name}.cpp" TARGET_DIRECTORY ${target} APPEND PROPERTY OBJECT_DEPENDS "${path}")
endfunction()
